// Scales that no quantizer writes: below zero, or zero over codes that are not. Their values decode, and are
// wrong.
#pragma once

#include "core/model/stored_reader.h"

namespace assay {

// Of FP8, INT8 and FP4 with a scale a block; forms of other kinds have scales of either sign. Throws
// Error::refused, naming the scale and its place.
void check_scales(const CheckpointReader& source, const LogicalTensor& tensor);

}  // namespace assay
