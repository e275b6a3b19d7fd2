#include "core/numeric/dot.h"

#include <algorithm>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/dot.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kSums = 8;
using F64 = hn::CappedTag<double, kSums>;
using V64 = hn::Vec<F64>;

HWY_INLINE V64 load_double(const double* at) {
  return hn::LoadU(F64(), at);
}
HWY_INLINE V64 load_double(const float* at) {
  return hn::PromoteTo(F64(), hn::LoadU(hn::Rebind<float, F64>(), at));
}

// Of kRows rows at once: x is loaded once for all of them.
template <std::size_t kRows, class X, class W>
void sum_products(const X* HWY_RESTRICT x, const W* HWY_RESTRICT w, std::size_t n, double* sums) {
  const F64 d;
  constexpr std::size_t kLanes = hn::MaxLanes(F64()), kParts = kSums / kLanes;
  V64 of[kRows][kParts];
  for (auto& row : of)
    for (V64& part : row) part = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (std::size_t p = 0; p < kParts; ++p) {
      const V64 factor = load_double(x + i + p * kLanes);
      for (std::size_t r = 0; r < kRows; ++r)
        of[r][p] = hn::Add(of[r][p], hn::Mul(factor, load_double(w + r * n + i + p * kLanes)));
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    double s[kSums];
    for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(of[r][p], d, s + p * kLanes);
    for (std::size_t k = i; k < n; ++k)
      s[k - i] += static_cast<double>(x[k]) * static_cast<double>(w[r * n + k]);
    sums[r] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
  }
}

template <class X, class W>
void sum_all(const X* x, const W* w, std::size_t n, std::size_t rows, double* sums) {
  std::size_t r = 0;
  for (; r + 2 <= rows; r += 2) sum_products<2>(x, w + r * n, n, sums + r);
  if (r < rows) sum_products<1>(x, w + r * n, n, sums + r);
}

void sum_floats(const float* x, const float* w, std::size_t n, std::size_t rows, double* sums) {
  sum_all(x, w, n, rows, sums);
}
void sum_doubles(const double* x, const double* w, std::size_t n, std::size_t rows, double* sums) {
  sum_all(x, w, n, rows, sums);
}
double sum_mixed(const double* x, const float* w, std::size_t n) {
  double sum = 0;
  sum_products<1>(x, w, n, &sum);
  return sum;
}

}  // namespace assay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay {

HWY_EXPORT(sum_floats);
HWY_EXPORT(sum_doubles);
HWY_EXPORT(sum_mixed);

void dot_rows(const float* x, const float* w, std::size_t n, std::size_t rows, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_floats)(x, w, n, rows, sums);
}
void dot_rows(const double* x, const double* w, std::size_t n, std::size_t rows, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_doubles)(x, w, n, rows, sums);
}

double dot(const float* x, const float* w, std::size_t n) {
  double sum = 0;
  dot_rows(x, w, n, 1, &sum);
  return sum;
}
double dot(const double* x, const double* w, std::size_t n) {
  double sum = 0;
  dot_rows(x, w, n, 1, &sum);
  return sum;
}
double dot(const double* x, const float* w, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_mixed)(x, w, n);
}

}  // namespace assay
#endif
