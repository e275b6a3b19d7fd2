// What each rank of a tensor-parallel group holds of a tensor, as the engines deal it out.
//
//   columns, rows   whole units (heads; single rows elsewhere) in order of rank; where there are fewer
//                   units than ranks (key and value heads), neighbouring ranks hold the same one
//   vocabulary      padded to a multiple of 64, then cut evenly
//   experts         in order over ep groups of tp / ep neighbouring ranks; inside a group each is cut
//                   over its ranks
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/module_tree.h"

namespace assay {

// vLLM, vocab_parallel_embedding.py: DEFAULT_VOCAB_PADDING_SIZE; SGLang has the same.
inline constexpr std::uint64_t kVocabularyPadding = 64;

struct ParallelConfig {
  std::uint64_t tp = 1, ep = 1;
  std::uint64_t ranks_of_an_expert() const { return tp / ep; }
};

// Of what --tp and --ep ask for, whatever the model. Throws Error::usage.
void check_grid(const ParallelConfig& grid);

struct IndexRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

struct RankShare {
  bool holds = true;                  // false: an expert of other ranks
  std::vector<IndexRange> ranges;     // along Parallel::dimension, as they lie on the rank; empty: all of it
  std::uint64_t padding = 0;          // indices of zeros after them
  std::optional<IndexRange> experts;  // of stacked ones, along dimension 0
};
// `size`: of the cut dimension as stored; `expert`: of a tensor that has one in its name. Takes for granted
// what refusal_to_cut() finds nothing against.
RankShare rank_share(const TensorSpec& spec, const ModuleTree& tree, std::uint64_t size, std::uint64_t expert,
                     const ParallelConfig& grid, std::uint64_t rank);

// The ranks that cut `spec`: all, or for a routed expert those of its group; 1: each holds it whole.
std::uint64_t cut_ranks(const TensorSpec& spec, const ParallelConfig& grid);
// The widest rank's share of a member.
std::uint64_t member_share(const PartitionedPart& member, Partition partition, std::uint64_t ranks);

// In the engines' words: of the model as a whole, and of one tensor, whose scales stand over blocks of
// `block` indices of the cut dimension (1: it has none). Empty: nothing against it.
std::vector<std::string> refusals_to_cut(const ModuleTree& tree, const ParallelConfig& grid);
struct CutRefusal {
  std::string arithmetic;  // "intermediate_size 18432/32 = 576 = 4.5 × 128"
  std::string message;     // "Weight output_partition_size = 576 is not divisible by …"
};
std::optional<CutRefusal> refusal_to_cut(const TensorSpec& spec, const ParallelConfig& grid,
                                         std::uint64_t block, bool packed);

}  // namespace assay
