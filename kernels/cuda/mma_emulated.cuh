// mma.cuh for the emulator. Not included by itself.
//
// A product's sum over k is exact in double for all these types but tf32 and the largest of the others, and
// is rounded to float32 once, with D: hardware adds in groups and truncates, which only a device can show.
#pragma once

#include <cstring>

#include "kernels/cuda/device.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <int kMatrices>
void ldmatrix(std::uint32_t* r, const void* row, bool transposed, Where where) {
  const unsigned lane = thread_id() % 32;
  // Addresses of lanes beyond 8 × matrices are not looked at.
  if (lane < 8 * kMatrices) emulator::require_shared(row, 16, 16, where);
  const std::byte* board =
      emulator::exchange(&row, sizeof row, transposed ? "ldmatrix.trans" : "ldmatrix", where);
  for (unsigned i = 0; i < kMatrices; ++i) {
    std::uint16_t pair[2];
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned at_row = transposed ? 2 * (lane % 4) + j : lane / 4;
      const unsigned at_column = transposed ? lane / 4 : 2 * (lane % 4) + j;
      const std::byte* begin;
      std::memcpy(&begin, board + (8 * i + at_row) * sizeof row, sizeof row);
      std::memcpy(&pair[j], begin + at_column * sizeof pair[j], sizeof pair[j]);
    }
    r[i] = pair[0] | static_cast<std::uint32_t>(pair[1]) << 16;
  }
  emulator::exchange(nullptr, 0, "the end of ldmatrix", where);  // nobody overwrites what others still read
}
inline void ldmatrix_x4(std::uint32_t (&r)[4], const void* row, Where where = Where::here()) {
  ldmatrix<4>(r, row, false, where);
}
inline void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row, Where where = Where::here()) {
  ldmatrix<4>(r, row, true, where);
}
inline void ldmatrix_x2(std::uint32_t (&r)[2], const void* row, Where where = Where::here()) {
  ldmatrix<2>(r, row, false, where);
}
inline void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row, Where where = Where::here()) {
  ldmatrix<2>(r, row, true, where);
}

struct Fragments {
  std::uint32_t a[4], b[2];
};

// Element `i` of a register that holds 32 / bits of them.
template <class T>
double element(std::uint32_t reg, unsigned i) {
  if constexpr (sizeof(T) == 4)
    return float_of(reg & 0xFFFFE000u);
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return static_cast<std::int8_t>(reg >> 8 * i);
  else if constexpr (sizeof(T) == 2)
    return to_float(T{static_cast<std::uint16_t>(reg >> 16 * i)});
  else
    return to_float(T{static_cast<std::uint8_t>(reg >> 8 * i)});
}

// With e elements a register: element (row, k) of A lies in register 2·(k / 4e) + row / 8 of lane
// 4·(row % 8) + k / e % 4, at place k % e; (k, n) of B in register k / 4e of lane 4n + k / e % 4.
template <class T, int kDepth, class Sum>
void multiply(Sum (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], const char* what,
              Where where) {
  constexpr unsigned kElements = 4 / sizeof(T);
  static_assert(kDepth == 8 * kElements);
  Fragments mine;
  std::memcpy(mine.a, a, sizeof mine.a);
  std::memcpy(mine.b, b, sizeof mine.b);
  const std::byte* board = emulator::exchange(&mine, sizeof mine, what, where);
  const auto of_lane = [&](unsigned lane) {
    Fragments theirs;
    std::memcpy(&theirs, board + lane * sizeof theirs, sizeof theirs);
    return theirs;
  };
  const unsigned lane = thread_id() % 32, group = lane / 4;
  double sums[4] = {};
  for (unsigned quad = 0; quad < 4; ++quad) {
    const Fragments row = of_lane(4 * group + quad);
    for (unsigned j = 0; j < 2; ++j) {
      const Fragments column = of_lane(4 * (2 * (lane % 4) + j) + quad);
      for (unsigned half = 0; half < 2; ++half) {
        for (unsigned i = 0; i < kElements; ++i) {
          const double w = element<T>(column.b[half], i);
          sums[j] += element<T>(row.a[2 * half], i) * w;
          sums[2 + j] += element<T>(row.a[2 * half + 1], i) * w;
        }
      }
    }
  }
  for (unsigned i = 0; i < 4; ++i) d[i] = static_cast<Sum>(static_cast<double>(d[i]) + sums[i]);
}

template <class T>
void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  Where where = Where::here()) {
  multiply<T, 16>(d, a, b, "mma.m16n8k16", where);
}
template <class T, class Sum>
void mma_m16n8k32(Sum (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  Where where = Where::here()) {
  multiply<T, 32>(d, a, b, "mma.m16n8k32", where);
}
inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                             Where where = Where::here()) {
  multiply<float, 8>(d, a, b, "mma.m16n8k8", where);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
