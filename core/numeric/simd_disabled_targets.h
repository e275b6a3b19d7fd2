// Included before Highway by every file that computes with it: SSSE3 machines are served by the portable
// target, AVX3_DL ones by AVX3, whose instructions are all that our loops use. Two copies less of each loop.
//
// AddressSanitizer makes minutes of a file's compilation that takes seconds: with it there are two copies only, the
// portable one and AVX2's.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SSE4 | HWY_AVX3)
#endif
#endif

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
