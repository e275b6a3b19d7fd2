// The three functions of Highway that its headers do not hold: which targets this processor supports, a mask
// for tests, and the choice in force.
//
// Highway's shared library has them too, beside a benchmark timer that calibrates itself for 4 ms whenever
// the library is loaded: more than `assay paramcount` may take in all. What each target needs is told in
// hwy/detect_targets.h.
#include <atomic>

#include "core/numeric/vnni_targets.h"
//
#include <hwy/highway.h>
#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace hwy {
namespace {

std::atomic<std::int64_t> g_only{0};  // set by SetSupportedTargetsForTest; 0: no restriction

#if HWY_ARCH_X86
// Not among the names that every compiler's __builtin_cpu_supports knows. CPUID leaf 1, ECX bit 29; leaf
// 0x80000001, ECX bit 5.
bool has_f16c_and_lzcnt() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx >> 29 & 1) == 0) return false;
  return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 5 & 1) != 0;
}
#endif

std::int64_t detect() {
  std::int64_t targets = HWY_STATIC_TARGET;
#if HWY_ARCH_X86
  // The compiler's run-time asks the operating system too whether it saves the wide registers.
  __builtin_cpu_init();
  const bool sse4 = __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                    __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("pclmul") &&
                    __builtin_cpu_supports("aes");
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c_and_lzcnt();
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd");
  if (sse4) targets |= HWY_SSE4;
  if (avx2) targets |= HWY_AVX2;
  if (avx3) targets |= HWY_AVX3;
  if (avx3 && __builtin_cpu_supports("avx512vnni")) targets |= HWY_AVX3_DL;  // as vnni_highway.h has it
#endif
  return targets;
}

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t supported = detect();
  const std::int64_t only = g_only.load(std::memory_order_relaxed);
  return only != 0 ? only : supported;
}

void SetSupportedTargetsForTest(std::int64_t targets) {
  g_only.store(targets, std::memory_order_relaxed);
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
