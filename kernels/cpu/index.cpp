#include "kernels/cpu/index.h"

#include <algorithm>
#include <vector>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/team.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/index.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;

#include "kernels/cpu/transpose.h"

std::size_t keys_a_panel() {
  return kIndexVectors * hn::Lanes(F32());
}

// panel [dim, keys_a_panel()], zeros behind the last of `count` rows.
void pack_keys(const float* const* rows, std::size_t count, std::size_t dim, float* panel) {
  transpose_rows(rows, count, dim, keys_a_panel(), panel);
}

// Adds w · relu(q · k) of kHeads heads, one after the other, to the sums of a panel's keys.
template <std::size_t kHeads>
HWY_INLINE void add_heads(const float* q, const float* w, std::size_t dim, const float* panel, V32& low,
                          V32& high) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 of_low[kHeads], of_high[kHeads];
  for (std::size_t h = 0; h < kHeads; ++h) of_low[h] = of_high[h] = hn::Zero(d);
  for (std::size_t i = 0; i < dim; ++i) {
    const V32 a = hn::LoadU(d, panel + i * 2 * lanes), b = hn::LoadU(d, panel + i * 2 * lanes + lanes);
    for (std::size_t h = 0; h < kHeads; ++h) {
      const V32 x = hn::Set(d, q[h * dim + i]);
      of_low[h] = hn::MulAdd(x, a, of_low[h]);
      of_high[h] = hn::MulAdd(x, b, of_high[h]);
    }
  }
  const V32 zero = hn::Zero(d);
  for (std::size_t h = 0; h < kHeads; ++h) {  // NaN stays
    const V32 weight = hn::Set(d, w[h]);
    low = hn::MulAdd(weight, hn::IfThenZeroElse(hn::Le(of_low[h], zero), of_low[h]), low);
    high = hn::MulAdd(weight, hn::IfThenZeroElse(hn::Le(of_high[h], zero), of_high[h]), high);
  }
}

// One query's scores of a panel's keys.
void score_panel(const float* q, const float* w, std::size_t heads, std::size_t dim, const float* panel,
                 float* scores) {
  const F32 d;
  V32 low = hn::Zero(d), high = hn::Zero(d);
  std::size_t h = 0;
  for (; h + kIndexHeads <= heads; h += kIndexHeads)
    add_heads<kIndexHeads>(q + h * dim, w + h, dim, panel, low, high);
  for (; h < heads; ++h) add_heads<1>(q + h * dim, w + h, dim, panel, low, high);
  hn::StoreU(low, d, scores);
  hn::StoreU(high, d, scores + hn::Lanes(d));
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(keys_a_panel);
HWY_EXPORT(pack_keys);
HWY_EXPORT(score_panel);

namespace {

constexpr std::size_t kScoresAtOnce = std::size_t{1} << 22;  // of some queries of a sequence
constexpr std::size_t kPanelsAPiece = 16;

class SequenceIndex {
 public:
  SequenceIndex(const IndexCall& call, const IndexSequence& sequence, int jobs)
      : call_(call), s_(sequence), jobs_(jobs), width_(HWY_DYNAMIC_DISPATCH(keys_a_panel)()) {
    keys_ = seen_by(s_.queries - 1);
    panels_ = (keys_ + width_ - 1) / width_;
    pack();
  }

  void choose(std::vector<std::vector<std::int32_t>>& chosen) {
    const std::size_t at_once = std::max<std::size_t>(1, kScoresAtOnce / std::max<std::size_t>(1, keys_));
    std::vector<float> scores(std::min(at_once, s_.queries) * panels_ * width_);
    for (std::size_t first = 0; first < s_.queries; first += at_once) {
      const std::size_t count = std::min(at_once, s_.queries - first);
      score(first, count, scores);
      team_for(jobs_, count, [&](std::size_t i) {
        const float* row = scores.data() + i * panels_ * width_;
        const std::vector<double> seen(row, row + seen_by(first + i));
        chosen[s_.first + first + i] = best_keys(seen, call_.top_k);
      });
    }
  }

 private:
  std::size_t seen_by(std::size_t query) const { return (s_.position + query + 1) / call_.tokens_a_key; }
  const float* panel(std::size_t p) const { return packed_.data() + p * width_ * call_.head_dim; }

  void pack() {
    packed_.resize(panels_ * width_ * call_.head_dim);
    team_for(jobs_, (panels_ + kPanelsAPiece - 1) / kPanelsAPiece, [&](std::size_t piece) {
      std::vector<const float*> rows(width_);
      for (std::size_t p = piece * kPanelsAPiece; p < std::min(panels_, (piece + 1) * kPanelsAPiece); ++p) {
        const std::size_t count = std::min(width_, keys_ - p * width_);
        for (std::size_t k = 0; k < count; ++k)
          rows[k] = s_.key_rows.base.row<float>(s_.key_rows.row(p * width_ + k));
        HWY_DYNAMIC_DISPATCH(pack_keys)
        (rows.data(), count, call_.head_dim, packed_.data() + p * width_ * call_.head_dim);
      }
    });
  }

  // scores [count, panels_ · width_]: of the keys that each query sees, and some behind them.
  void score(std::size_t first, std::size_t count, std::vector<float>& scores) const {
    const std::size_t pieces = (panels_ + kPanelsAPiece - 1) / kPanelsAPiece;
    const auto of_panel = HWY_DYNAMIC_DISPATCH(score_panel);
    team_for(jobs_, count * pieces, [&](std::size_t item) {
      const std::size_t i = item / pieces, begin = item % pieces * kPanelsAPiece, row = s_.first + first + i;
      const std::size_t seen = (seen_by(first + i) + width_ - 1) / width_;
      for (std::size_t p = begin; p < std::min(seen, begin + kPanelsAPiece); ++p)
        of_panel(call_.q.row<float>(row), call_.weights.row<float>(row), call_.heads, call_.head_dim,
                 panel(p), scores.data() + (i * panels_ + p) * width_);
    });
  }

  const IndexCall& call_;
  const IndexSequence& s_;
  int jobs_;
  std::size_t width_, keys_ = 0, panels_ = 0;
  std::vector<float> packed_;
};

}  // namespace

KeyChoice choose_keys(Ops& ops, const IndexCall& call) {
  check_index(call);
  std::vector<std::vector<std::int32_t>> chosen(call.q.rows());
  for (const IndexSequence& sequence : call.sequences)
    if (sequence.queries > 0) SequenceIndex(call, sequence, ops.jobs()).choose(chosen);
  return with_positions(ops, std::move(chosen), call.top_k);
}

}  // namespace assay::cpu
#endif
