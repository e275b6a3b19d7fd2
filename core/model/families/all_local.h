// Families that llama.cpp and MLX run, and the large engines have no class for.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

// local_dense.cpp
extern const Family kPlamo, kPlm, kMaincoder, kCodeshell, kRefact, kTalkie, kBaichuanM1;
// local_mixtures.cpp
extern const Family kGroveMoe, kKlear, kMaple, kPhiMsft;

}  // namespace assay::families
