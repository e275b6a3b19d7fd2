// Is each weight file well formed, and do the files fit together? Headers and indexes only: milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/safetensors.h"
#include "core/formats/shard_index.h"
#include "core/numeric/element_type.h"
#include "core/system/file.h"
#include "core/system/finding.h"
#include "verify/claims/claim.h"

namespace assay {

// A tensor as a range of its file's bytes, whatever the container: here `begin` and `end` are absolute. A
// header may hold a million of them, which need not be written out anew.
using TensorRange = safetensors::Tensor;

struct PresentFile {
  std::string name;  // relative to the root
  fs::path path;
};

struct WeightFolder {
  std::optional<ShardIndex> index;  // of its (first) index, where it could be read
};

struct Structure {
  std::map<std::string, Findings> per_file;                 // by PresentFile::name
  std::map<std::string, std::vector<TensorRange>> tensors;  // of well-formed weight files, by offset
  std::map<std::string, FileClaims> declared;               // what files say of their own tensors
  std::map<std::string, WeightFolder> folders;              // that hold weights or an index: "", "unet/"
  Findings whole;                                           // indexes, numbering
};

bool is_weight_name(std::string_view name);  // .safetensors, .gguf

// Looks at the weight files and indexes among `files`, folder by folder (a diffusion pipeline has several).
Structure check_structure(const std::vector<PresentFile>& files, safetensors::Reading reading, int jobs);

}  // namespace assay
