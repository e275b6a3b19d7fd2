// Every stored format there is: one declaration each, one definition in the file that bears its name.
#pragma once

#include "core/model/formats/format.h"

namespace assay::formats {

extern const StoredFormat kPlain, kScaled, kPackedInts, kNvfp4, kMx, kModeloptInt4, kGptq, kAwq, kQuark, kMlx,
    kBitsandbytes, kTorchao, kGguf;

}  // namespace assay::formats
