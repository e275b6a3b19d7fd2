// A product whose inputs are cut over ranks, as a sum of parts.
//
//   y[t, o] = Σᵢ x[t, i] W[o, i] = Σ_leaves Σ_{i in leaf} x[t, i] W[o, i]
//
// Into how many leaves the inputs are cut depends on the model alone, and so does the tree in which they are added:
// halves of the list of leaves, and halves of those. Whatever number of ranks holds the leaves, the bits are the same.
// Engines add what each rank has in all, in the order of ranks: other bits with every number of ranks.
// Sources: sglang#15041 ("TBIK"), vllm#50299, of which both are proposals.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

// Of inputs that may be cut at `units` places, into so many leaves: all numbers of ranks of 1, 2, 3, 4, 6, 8 that
// divide the units divide it.
std::size_t leaves_of(std::size_t units);

// Each leaf's products, [leaves][tokens · outputs]: the arithmetic's weights, sums in float64, without bias, unrounded.
std::vector<std::vector<double>> leaf_products(const Matrix& x, const WeightView& weight, std::size_t leaves,
                                               const Arithmetic& arithmetic, int jobs);

// Σ |x| |W| of all inputs: [tokens · outputs].
std::vector<double> leaf_magnitudes(const Matrix& x, const WeightView& weight, const Arithmetic& arithmetic,
                                    int jobs);

// The fixed tree over the leaves.
std::vector<double> tree_sum(std::span<const std::vector<double>> leaves);

}  // namespace assay
