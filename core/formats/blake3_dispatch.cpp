// Which vectors BLAKE3 runs on here; and the plain ones, of four words, that every processor has.
#include <algorithm>
#include <bit>
#include <vector>

#include "core/formats/blake3_kernels.h"
#include "core/formats/blake3_lanes.h"

namespace assay::blake3 {
namespace {

using Vector4 = std::uint32_t __attribute__((vector_size(16)));

void hash_lanes_plain(const std::uint32_t* key, std::uint32_t flags, const LaneInput* inputs,
                      std::uint32_t (*out)[8]) {
  hash_lanes<Vector4, 4>(key, flags, inputs, out,
                         [](const LaneInput* in, std::size_t block, Vector4* message) {
                           for (std::size_t i = 0; i < 16; ++i) {
                             for (std::size_t lane = 0; lane < 4; ++lane)
                               message[i][lane] = word_at(in[lane].at + block + 4 * i);
                           }
                         });
}

}  // namespace

std::uint32_t word_at(const std::byte* bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, 4);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
  return word;
}

std::span<const LaneKernel> lane_kernels() {
  static const std::vector<LaneKernel> all = [] {
    std::vector<LaneKernel> kernels{{4, hash_lanes_plain}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) kernels.push_back({8, hash_lanes_avx2});
    if (__builtin_cpu_supports("avx512f")) {
      kernels.push_back({16, hash_lanes_avx512});
      kernels.push_back({32, hash_twice_avx512});
    }
#endif
    return kernels;
  }();
  return all;
}

const LaneKernel& lane_kernel_for(std::size_t inputs, std::size_t most) {
  const std::span<const LaneKernel> kernels = lane_kernels();
  return *std::find_if(kernels.begin(), kernels.end() - 1,
                       [&](const LaneKernel& kernel) { return kernel.lanes >= std::min(inputs, most); });
}

}  // namespace assay::blake3
