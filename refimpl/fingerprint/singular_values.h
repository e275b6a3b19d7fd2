// The singular values of a matrix, largest first.
//
// Householder QR with column pivoting, then one-sided Jacobi rotations of Rᵀ's columns until each is orthogonal to every
// other (Drmač, Veselić: "New fast and accurate Jacobi SVD algorithm", SIAM J. Matrix Anal. Appl. 29, 2008). What matters
// here is that the small ones are as exact as float64 allows: bidiagonalization would do, A·Aᵀ would not, whose eigenvalues
// are squares.
#pragma once

#include <vector>

#include "refimpl/fingerprint/dense_matrix.h"

namespace assay {

std::vector<double> singular_values(DenseMatrix a, int jobs);

// The vectors of the `count` largest: A ≈ left Σ rightᵀ, orthonormal columns.
struct LeadingVectors {
  DenseMatrix left, right;
};
LeadingVectors leading_vectors(const DenseMatrix& a, std::size_t count, int jobs);

}  // namespace assay
