// What the JSON files of a model have loaders run: Python that lies beside them, in another repository, or
// wherever an installed package of that name comes from.
//
//   *config.json      auto_map, custom_pipelines     transformers, under trust_remote_code
//   modules.json      "type" of each module          sentence-transformers; of a local folder without asking
//   *config.json      "types" of a router, activation_function, tokenizer_class    sentence-transformers
//   model_index.json  _class_name, components        diffusers
//
// Source: PyPI's transformers (dynamic_module_utils), sentence-transformers (_load_module_class_from_ref,
// import_from_string), diffusers (pipeline_loading_utils).
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/system/file.h"
#include "core/system/finding.h"

namespace assay {

struct RemoteCode {
  bool asked = false;            // Python in the file's own folder runs
  std::set<std::string> python;  // and in the folders of these files ("unet/mine.py"), where they are here
  Findings findings;             // code that is not among these files
};

bool may_name_code(std::string_view name);  // config.json, tokenizer_config.json, modules.json, …
// `name` relative to the root, as are the names in `python`.
RemoteCode read_remote_code(const std::string& name, const fs::path& path);

}  // namespace assay
