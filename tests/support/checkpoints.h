// Checkpoints without bytes: only what headers say, for tests of what is derived from them.
#pragma once

#include <string>
#include <vector>

#include "core/formats/checkpoint.h"

namespace assay::test {

struct StoredTensor {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
};
// All in one file, "model.safetensors".
Checkpoint make_checkpoint(const std::vector<StoredTensor>& tensors);
// The list that ../shared/cases/deepseek-v3-tensors.tsv.gz holds (needs gzip).
std::vector<StoredTensor> read_tensor_list(const fs::path& tsv_gz);

}  // namespace assay::test
