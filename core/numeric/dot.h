// Sums of products in double, in one order whatever the vectors' width.
#pragma once

#include <cstddef>

namespace assay {

// Σ x[i] w[i] as eight sums of every eighth product, added up at the end: ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)). Products
// and sums are rounded one by one, nothing is fused.
double dot(const float* x, const float* w, std::size_t n);
double dot(const double* x, const double* w, std::size_t n);
double dot(const double* x, const float* w, std::size_t n);
// sums[r] = dot(x, w + r n, n)
void dot_rows(const float* x, const float* w, std::size_t n, std::size_t rows, double* sums);
void dot_rows(const double* x, const double* w, std::size_t n, std::size_t rows, double* sums);

}  // namespace assay
