// SHA-256 of tensors as an engine holds them (held_tensors.h), each stored byte read once whatever the ranks.
#pragma once

#include "core/formats/tensor_list.h"
#include "core/model/held_tensors.h"
#include "core/system/progress.h"

namespace assay {

struct TensorDigests {
  struct Entry {
    std::string name;
    ElementType type;
    std::vector<std::uint64_t> shape, ranks;
    std::string sha256;
  };
  std::vector<Entry> tensors;  // by name, then by first rank
  std::vector<NotHeld> not_told;
  std::uint64_t bytes_read = 0;
  bool interrupted = false;
};
// Throws Error::input where a file changes while it is read; memory: 4 MiB a job.
TensorDigests tensor_digests(const OpenedModel& model, const HeldAs& as, int jobs, ProgressMode progress);

TensorList as_list(const TensorDigests& digests, const HeldAs& as);
std::string_view name(HeldNames names);  // "stored", "vllm", "sglang"

}  // namespace assay
