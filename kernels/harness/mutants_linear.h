// What the faults of matrix products are made of. Private to mutants_linear*.cpp.
#pragma once

#include <functional>
#include <vector>

#include "kernels/harness/mutants.h"

namespace assay {

using ChangeElement = std::function<float(std::size_t row, std::size_t column, float value)>;
// The result of a right kernel, element by element something else.
Matrix changed(ReferenceOps& ops, const LinearCall& call, const ChangeElement& change);
// Inputs [first, first + count) only.
Matrix over_terms(ReferenceOps& ops, const LinearCall& call, std::size_t first, std::size_t count);
// The sum in pieces of `piece` terms, `join` adding them up.
Matrix in_pieces(ReferenceOps& ops, const LinearCall& call, std::size_t piece,
                 const std::function<float(float, float)>& join);
// The same product with other numbers for a weight: change(weights [rows, columns]).
Matrix with_weights(ReferenceOps& ops, const LinearCall& call,
                    const std::function<void(std::vector<float>&)>& change);
// The scale of an element, of grid [rows, scale columns].
using ScaleOf = std::function<float(const std::vector<float>& grid, std::size_t row, std::size_t column)>;
// The codes' numbers under other scales.
void rescale(const WeightView& view, const ScaleOf& scale_of, std::vector<float>& w);
// The same product under other scales; of a weight without any as it is.
Matrix with_scales(ReferenceOps& ops, const LinearCall& call, const ScaleOf& scale_of);

// Faults that show at some shapes only, and faults under the budget of FP8 tensor cores.
std::vector<Mutant<LinearCall>> linear_shape_faults();
std::vector<Mutant<LinearCall>> tensor_core_faults();

}  // namespace assay
