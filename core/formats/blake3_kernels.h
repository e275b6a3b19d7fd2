// The vectors that BLAKE3 may run on here.
#pragma once

#include <vector>

#include "core/formats/blake3_tables.h"

namespace assay::blake3 {

struct LaneKernel {
  std::size_t lanes;
  void (*hash)(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
               std::uint32_t (*out)[8]);
};
const LaneKernel& lane_kernel();         // the widest of this processor
std::vector<LaneKernel> lane_kernels();  // all of them, the widest last

// Four bytes, the least significant first.
std::uint32_t word_at(const std::byte* bytes);

}  // namespace assay::blake3
