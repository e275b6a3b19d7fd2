// Included before Highway by every file that computes with it: SSSE3 machines are served by the portable
// target, AVX3_DL ones by AVX3, whose instructions are all that these loops use (those that want VNNI:
// vnni_targets.h). Two copies less of each loop.
//
// With ASSAY_FEW_SIMD_TARGETS there are two copies only, the portable one and AVX2's: the demonstration is not to
// wait for more, and AddressSanitizer makes minutes of a compilation of seconds.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_FEW_SIMD_TARGETS
#endif
#endif

#ifdef ASSAY_FEW_SIMD_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SSE4 | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
