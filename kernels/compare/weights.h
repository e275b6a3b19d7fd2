// `assay compare model` of two checkpoints: the weights themselves, beside what is computed with them. A text
// meets few of a model's weights in a way that shows: one wrong scale of thousands is within what the
// format's rounding explains at a tap.
#pragma once

#include "core/system/command_line.h"
#include "kernels/model_compare/model_compare.h"
#include "refimpl/models/weights.h"

namespace assay {

// Tensors that both hold under one name, by tile and by row (core/model/value_judge.h): faults make the
// result a failure. A GGUF names its tensors otherwise; where one side is one, nothing is compared here, and
// a note says so.
void judge_weights(const Weights& test, const Weights& reference, const CommonOptions& common,
                   ModelComparison& result);

}  // namespace assay
