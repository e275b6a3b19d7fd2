// A model opened once, for whoever needs its weights or its description.
//
//   const OpenedModel model(path, jobs);                  files, how each weight is stored, a reader
//   const DescribedModel said = describe_model(model.checkpoint);     config and module tree
#pragma once

#include <optional>
#include <string>

#include "core/model/config.h"
#include "core/model/module_tree.h"
#include "core/model/stored_form.h"
#include "core/model/stored_reader.h"

namespace assay {

struct DescribedModel {
  ModelConfig config;
  ModuleTree tree;  // as published: in_layout_of() gives a checkpoint's own
};

// Of its GGUF metadata or its config.json. Throws Error::input where there is none, or it describes no
// architecture known here.
ModelConfig read_config(const Checkpoint& checkpoint);
DescribedModel describe_model(const Checkpoint& checkpoint);
// nullopt instead of Error::input, and why in `why_not`.
std::optional<DescribedModel> try_describe(const Checkpoint& checkpoint, std::string* why_not = nullptr);

// The weights. Findings are left where they are: throw_errors() for who cannot go on with any.
struct OpenedModel {
  OpenedModel(const fs::path& path, int jobs);
  OpenedModel(const OpenedModel&) = delete;
  OpenedModel& operator=(const OpenedModel&) = delete;
  void throw_errors() const;

  Checkpoint checkpoint;
  StoredTensors stored;
  CheckpointReader reader;
};

}  // namespace assay
