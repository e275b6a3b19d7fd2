// Included before Highway by every file that computes with it: SSSE3 machines are served by the portable
// target, AVX3_DL ones by AVX3, whose instructions are all that these loops use (those that want VNNI:
// vnni_targets.h). Two copies less of each loop.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
