// In place of simd_disabled_targets.h, before foreach_target.h, by files that multiply integers: AVX-512
// machines with VNNI's dot products get a copy of their own, under Highway's name AVX3_DL. Such a file
// includes vnni_highway.h for Highway. That files differ in their targets does no harm: what depends on them
// in Highway's headers is always inlined, or belongs to a file's own table.
#pragma once

#include "core/numeric/simd_disabled_targets.h"

// A build for AVX-512 only has no copy for AVX3 that another could be made from.
#if !defined(__AVX512F__) && !defined(ASSAY_FEW_SIMD_TARGETS)
#define HWY_WANT_AVX3_DL
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_SSSE3
#endif
