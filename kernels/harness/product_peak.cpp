#include "kernels/harness/product_peak.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace assay {
namespace {

// Sums that do not wait for each other, more than the instruction takes clocks.
constexpr std::size_t kChains = 12;

// One step of a sum in a register of its own, which no compiler leaves out.
#define ASSAY_STEP(instruction, sum) instruction " %[l], %[r], %%zmm" sum "\n\t"
#define ASSAY_STEPS(instruction, a, b)                                                                       \
  asm volatile(ASSAY_STEP(instruction, "16") ASSAY_STEP(instruction, "17") ASSAY_STEP(instruction, "18")     \
                   ASSAY_STEP(instruction, "19") ASSAY_STEP(instruction, "20") ASSAY_STEP(instruction, "21") \
                       ASSAY_STEP(instruction, "22") ASSAY_STEP(instruction, "23")                           \
                           ASSAY_STEP(instruction, "24") ASSAY_STEP(instruction, "25")                       \
                               ASSAY_STEP(instruction, "26") ASSAY_STEP(instruction, "27")                   \
               :                                                                                             \
               : [l] "v"(a), [r] "v"(b)                                                                      \
               : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
                 "xmm26", "xmm27")

__attribute__((target("avx512f"))) void bf16_steps(std::size_t steps) {
  const __m512i ones = _mm512_set1_epi32(0x3F803F80), zeros = _mm512_setzero_si512();
  for (std::size_t i = 0; i < steps; ++i) ASSAY_STEPS("vdpbf16ps", ones, zeros);
}
__attribute__((target("avx512f"))) void byte_steps(std::size_t steps) {
  const __m512i ones = _mm512_set1_epi32(0x01010101), zeros = _mm512_setzero_si512();
  for (std::size_t i = 0; i < steps; ++i) ASSAY_STEPS("vpdpbusd", ones, zeros);
}
#undef ASSAY_STEPS
#undef ASSAY_STEP

}  // namespace

double multiply_bf16_pairs(std::size_t steps) {
  if (!__builtin_cpu_supports("avx512bf16")) return 0;
  bf16_steps(steps);
  return 32.0 * static_cast<double>(kChains * steps);
}
double multiply_bytes(std::size_t steps) {
  if (!__builtin_cpu_supports("avx512vnni")) return 0;
  byte_steps(steps);
  return 64.0 * static_cast<double>(kChains * steps);
}

}  // namespace assay
#else
namespace assay {

double multiply_bf16_pairs(std::size_t /*steps*/) {
  return 0;
}
double multiply_bytes(std::size_t /*steps*/) {
  return 0;
}

}  // namespace assay
#endif
