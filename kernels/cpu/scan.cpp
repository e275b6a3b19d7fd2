#include "kernels/cpu/scan.h"

#include <algorithm>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/gemm_f32.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/scan.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;

#include "kernels/cpu/logistic.h"

// Two vectors of columns at a time: a panel.
void lower(const LowerProduct& p) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t c = 0; c < p.width; c += 2 * lanes) {
    for (std::size_t i = 0; i < p.rows; ++i) {
      float* y = p.y + i * p.width + c;
      V32 low = hn::LoadU(d, y), high = hn::LoadU(d, y + lanes);
      for (std::size_t j = 0; j < i + (p.inclusive ? 1 : 0); ++j) {
        const V32 a = hn::Set(d, p.a[i * p.a_stride + j]);
        const float* x = p.x + j * p.width + c;
        low = hn::MulAdd(a, hn::LoadU(d, x), low);
        high = hn::MulAdd(a, hn::LoadU(d, x + lanes), high);
      }
      hn::StoreU(low, d, y);
      hn::StoreU(high, d, y + lanes);
    }
  }
}

void exponentials_in_place(float* x, std::size_t count) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  const V32 least = hn::Set(d, -87.33F);
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t size = std::min(lanes, count - i);
    const V32 v = load_some(x + i, size);
    const V32 e = hn::IfThenElseZero(hn::Ge(v, least), hn::Exp(d, hn::Max(v, least)));
    store_some(hn::IfThenElse(hn::Eq(v, v), e, v), x + i, size);  // NaN stays
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(lower);
HWY_EXPORT(exponentials_in_place);

StatePath::StatePath(const SequenceState& sequence, std::size_t first_row, std::size_t rows,
                     std::size_t columns)
    : sequence_(sequence), first_row_(first_row), columns_(columns) {
  // Memory of its own where the state of some token is asked of nobody, or begins at zero.
  if (sequence.before.empty() || sequence.after.size() < sequence.tokens) own_.resize(rows * columns);
  at_ = sequence.before.empty() ? own_.data() : sequence.before.row<float>(first_row);
  stride_ = sequence.before.empty() ? columns : sequence.before.stride();
}

StatePath::Place StatePath::of_token(std::size_t t) {
  Place place = {at_, stride_, own_.data(), columns_};
  const std::size_t first_kept = sequence_.tokens - sequence_.after.size();
  if (t >= first_kept) {
    const Matrix& after = sequence_.after[t - first_kept];
    place.to = after.row<float>(first_row_);
    place.to_stride = after.stride();
  }
  at_ = place.to;
  stride_ = place.to_stride;
  return place;
}

std::size_t padded_width(std::size_t columns) {
  const std::size_t panel = panel_width();
  return (columns + panel - 1) / panel * panel;
}

PaddedState::PaddedState(std::size_t terms_of, std::size_t columns_of)
    : terms(terms_of), columns(columns_of), width(padded_width(columns_of)), values(terms * width) {}

void PaddedState::load(const SequenceState& sequence, std::size_t first_row) {
  std::fill(values.begin(), values.end(), 0.0F);
  for (std::size_t r = 0; r < terms && !sequence.before.empty(); ++r)
    std::copy_n(sequence.before.row<float>(first_row + r), columns, &values[r * width]);
}
void PaddedState::store(const Matrix& to, std::size_t first_row) const {
  for (std::size_t r = 0; r < terms; ++r)
    std::copy_n(&values[r * width], columns, to.row<float>(first_row + r));
}
void PaddedState::load_transposed(const SequenceState& sequence, std::size_t first_row) {
  std::fill(values.begin(), values.end(), 0.0F);
  for (std::size_t c = 0; c < columns && !sequence.before.empty(); ++c) {
    const float* row = sequence.before.row<float>(first_row + c);
    for (std::size_t r = 0; r < terms; ++r) values[r * width + c] = row[r];
  }
}
void PaddedState::store_transposed(const Matrix& to, std::size_t first_row) const {
  for (std::size_t c = 0; c < columns; ++c) {
    float* row = to.row<float>(first_row + c);
    for (std::size_t r = 0; r < terms; ++r) row[r] = values[r * width + c];
  }
}

std::size_t chunk_at(const SequenceState& sequence, std::size_t t, std::size_t most) {
  const std::size_t first_asked = sequence.tokens - sequence.after.size();
  const std::size_t end = t > first_asked ? t + 1 : first_asked + 1;
  return std::min(most, end - t);
}

void multiply(const Product& p) {
  const std::size_t panel = panel_width();
  for (std::size_t c = 0; c < p.width; c += panel)
    multiply_panel({.x = p.x,
                    .tokens = p.rows,
                    .x_stride = p.x_stride,
                    .panel = p.s + c,
                    .terms = p.terms,
                    .y = p.y + c,
                    .y_stride = p.width,
                    .outputs = panel,
                    .panel_stride = p.width,
                    .accumulate = p.accumulate});
}

void multiply_lower(const LowerProduct& product) {
  HWY_DYNAMIC_DISPATCH(lower)(product);
}

void exponentials_of(std::span<float> x) {
  HWY_DYNAMIC_DISPATCH(exponentials_in_place)(x.data(), x.size());
}

}  // namespace assay::cpu
#endif
