// Tensors and their SHA-256, one by one: what `assay manifest --tensors` writes, and what engines and training
// programs print of the weights they hold in memory. Read are
//
//   assay.tensors/1                                           our own
//   {"name": "hex", …}                                        a script's
//   {"0:name": "hex"}, {"dp=0/pp=0/tp=1/ep=0:name": "hex"}    vLLM's weight checker: the rank before the name
//   {"checksums": {"name": "16 digits"}, "parallelism_info": {"tp_rank": 1, …}}
//                                                             SGLang's: the first 8 bytes of a SHA-256 on a CPU, on a
//                                                             GPU a hash of its own
//   lists of these, one a rank; a line each of {"name": …, "sha256": …, "rank": 1}; "hex  name" as sha256sum writes
//
// Names are compared as they are; of a rank only its place in the tensor-parallel group counts: pipeline stages
// number their layers as the model does, and replicas hold the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ListedTensor {
  std::string name;
  std::vector<std::uint64_t> ranks;  // that hold these bytes; of a list that says nothing of ranks {0}
  std::string digits;                // 64 of a SHA-256, or the first 16
};
struct UnlistedTensor {
  std::string name, why;
};
struct TensorList {
  std::vector<ListedTensor> tensors;     // in the order of the text
  std::vector<UnlistedTensor> unlisted;  // what was not told, and why (assay.tensors/1)
  // Of which replicas (data parallelism, two dumps in one file) hold different bytes; the first of them is listed.
  std::vector<std::string> contradicted;
  std::string engine;       // whose names they are; empty: not said
  std::uint64_t ranks = 1;  // one more than the largest rank named
};

inline constexpr const char* kTensorListSchema = "assay.tensors/1";

// Throws Error::input where the text is none of these.
TensorList parse_tensor_list(std::string_view text, const std::filesystem::path& source);

}  // namespace assay
