// Which scales go with the part of a matrix that a rank holds, along one of its axes. One scale stands over a block of
// indices; where the part's borders are no blocks' borders no code changes, and scales are repeated over smaller blocks,
// as vLLM refines those of FP8 experts (fused_moe/oracle/fp8.py: refine_fp8_moe_block_shape).
//
//   128 in a block, [192, 384) of 512         blocks of 64: scales 1 2 2
//   the same, [32, 64)                        one block: scale 0
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/parallel_cut.h"

namespace assay {

struct ScaleCut {
  std::uint64_t block = 1;          // indices under one of the part's scales; divides the whole's block
  std::vector<std::uint64_t> from;  // of each of them, its number along this axis of the whole
};
// `ranges`: ascending, of `size` indices; the last one may end with the whole inside a block.
ScaleCut cut_scales(const std::vector<IndexRange>& ranges, std::uint64_t block, std::uint64_t size);
// How many scales those are, without a list of them: sizes may be whatever a config says.
std::uint64_t count_scales(const std::vector<IndexRange>& ranges, std::uint64_t block, std::uint64_t size);

}  // namespace assay
