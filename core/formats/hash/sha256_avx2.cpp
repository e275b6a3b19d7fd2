// AVX2, eight lanes: for CPUs with neither SHA-NI nor AVX-512 (Haswell to Skylake). A rotation is three
// instructions.
#if defined(__x86_64__)

#include "core/formats/hash/sha256_ymm.h"

namespace assay::sha256 {
namespace {

struct YmmPlain : Ymm {
  template <int n>
  static ASSAY_INLINE Vec rotate_right(Vec x) {
    return _mm256_or_si256(_mm256_srli_epi32(x, n), _mm256_slli_epi32(x, 32 - n));
  }
  static ASSAY_INLINE Vec xor3(Vec x, Vec y, Vec z) { return _mm256_xor_si256(_mm256_xor_si256(x, y), z); }
  // (x & y) ^ (~x & z) and (x & y) ^ (x & z) ^ (y & z), with one operation fewer each.
  static ASSAY_INLINE Vec choose(Vec x, Vec y, Vec z) {
    return _mm256_xor_si256(z, _mm256_and_si256(x, _mm256_xor_si256(y, z)));
  }
  static ASSAY_INLINE Vec majority(Vec x, Vec y, Vec z) {
    return _mm256_or_si256(_mm256_and_si256(x, y), _mm256_and_si256(z, _mm256_or_si256(x, y)));
  }
};

}  // namespace

void compress_avx2_x8(std::uint32_t* const* state, const std::byte* const* data, std::size_t blocks) {
  compress_lanes<YmmPlain>(state, data, blocks);
}

}  // namespace assay::sha256

#endif
