// The vectors that BLAKE3 may run on here.
#pragma once

#include <span>

#include "core/formats/blake3_tables.h"

namespace assay::blake3 {

struct LaneKernel {
  std::size_t lanes;
  void (*hash)(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
               std::uint32_t (*out)[8]);
};
std::span<const LaneKernel> lane_kernels();  // of this processor, the widest last
// The narrowest that takes so many inputs, and no wider than `most`; lanes that are left over are given any input.
const LaneKernel& lane_kernel_for(std::size_t inputs, std::size_t most = kMostLanes);

// Four bytes, the least significant first.
std::uint32_t word_at(const std::byte* bytes);

}  // namespace assay::blake3
