// `assay compare tensors A B`: the weights that two hold, told from the SHA-256 of each tensor.
//
// A and B are lists (core/formats/tensor_list.h) or models; a model is read as its other side holds it: under the
// names of --engine, cut by --tp. What both hold must agree at every rank, and nothing that A tells may be missing
// in B; where bytes differ it is said under which other name they lie, which is how a swap or a shifted layer shows.
#pragma once

#include <string>
#include <vector>

#include "core/formats/tensor_list.h"
#include "core/system/command_line.h"

namespace assay {

struct TensorDifference {
  enum class Kind : std::uint8_t { differs, only_in_a, only_in_b, replicas } kind = Kind::differs;
  std::string name;
  std::uint64_t rank = 0;
  std::string elsewhere = {};  // B's name for A's bytes; empty: B has them nowhere
};
struct TensorComparison {
  std::uint64_t equal = 0;       // by name and rank
  std::uint64_t short_only = 0;  // of these, by 64 bits alone
  std::uint64_t buffers = 0;     // only in one, and no weights: rotary tables, scales of the KV cache
  std::uint64_t not_told = 0;    // in the one list, and told in the other why it is not listed
  std::vector<TensorDifference> differences;
  bool passed() const { return differences.empty() && equal > 0; }
};
TensorComparison compare_lists(const TensorList& a, const TensorList& b);

void add_compare_tensors(CLI::App& compare, Action& action);

}  // namespace assay
