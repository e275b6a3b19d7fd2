// Which instruction sets the vector code of core/numeric may use: for tests, which go through all of them,
// and for benchmarks. Ordinary code never asks; the best one is picked at the first call.
#pragma once

#include <string>
#include <vector>

namespace assay {

// Built in and supported by this processor, best first: "AVX3_DL" (AVX-512 with VNNI), "AVX3" (AVX-512),
// "AVX2", "SSE4", ..., and last a portable one.
std::vector<std::string> simd_targets();

// None better than `name`, one of the above, from here on; "" returns to the best. Not while other threads
// compute.
void use_simd_target(const std::string& name);

}  // namespace assay
