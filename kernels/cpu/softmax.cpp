#include "kernels/cpu/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/numeric/simd_disabled_targets.h"
#include "core/system/error.h"
#include "kernels/cpu/team.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;

#include "kernels/cpu/exponentials.h"

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

bool has_nan(const float* x, std::size_t count) {
  bool found = false;
  for (std::size_t i = 0; i < count; ++i) found |= x[i] != x[i];
  return found;
}

// x and y may be the same memory.
void softmax_row(const float* x, std::size_t count, float* y, float* largest_of) {
  float most = kMinusInfinity, sum = 0;
  bool broken = false;
  for (std::size_t i = 0; i < count; i += kSoftmaxBlock) {
    const std::size_t size = std::min(kSoftmaxBlock, count - i);
    broken |= has_nan(x + i, size);
    const float now = std::max(most, largest(x + i, size));
    std::copy_n(x + i, size, y + i);
    largest_of[i / kSoftmaxBlock] = now;
    if (now == kMinusInfinity) continue;
    sum = sum * std::exp(most - now) + exponentials(y + i, size, now);
    most = now;
  }
  if (broken || most == -kMinusInfinity)
    return static_cast<void>(std::fill_n(y, count, std::numeric_limits<float>::quiet_NaN()));
  for (std::size_t i = 0; i < count; i += kSoftmaxBlock) {
    const std::size_t size = std::min(kSoftmaxBlock, count - i);
    if (largest_of[i / kSoftmaxBlock] == kMinusInfinity)
      std::fill_n(y + i, size, 0.0F);
    else
      scale(y + i, size, std::exp(largest_of[i / kSoftmaxBlock] - most) / sum);
  }
}

void sigmoid_row(float* x, std::size_t count) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  const auto one = hn::Set(d, 1.0F);
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)] = {};
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t size = std::min(lanes, count - i);
    std::copy_n(x + i, size, rest);
    const V32 v = hn::Load(d, rest);
    const V32 e = hn::Exp(d, hn::Neg(hn::Max(v, hn::Set(d, -88.0F))));
    const V32 s = hn::Div(one, hn::Add(one, e));
    hn::Store(hn::IfThenElse(hn::Eq(v, v), s, v), d, rest);  // NaN stays
    std::copy_n(rest, size, x + i);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(softmax_row);
HWY_EXPORT(sigmoid_row);

namespace {

void softmax(const float* x, std::size_t count, float* y) {
  std::vector<float> largest(count / kSoftmaxBlock + 1);
  HWY_DYNAMIC_DISPATCH(softmax_row)(x, count, y, largest.data());
}

void score(std::vector<float>& logits, GateRule::Score how) {
  if (how == GateRule::Score::softmax)
    softmax(logits.data(), logits.size(), logits.data());
  else
    HWY_DYNAMIC_DISPATCH(sigmoid_row)(logits.data(), logits.size());
}

// Places of the `count` largest, largest first, the earlier of equals; NaN behind all numbers.
std::vector<std::size_t> largest_places(std::span<const float> values, std::size_t count) {
  const auto before = [&](std::size_t a, std::size_t b) {
    const bool a_nan = std::isnan(values[a]), b_nan = std::isnan(values[b]);
    return a_nan || b_nan ? !a_nan : values[a] > values[b];
  };
  std::vector<std::size_t> best;
  count = std::min(count, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (best.size() == count && !before(i, best.back())) continue;
    if (best.size() == count) best.pop_back();
    best.insert(std::upper_bound(best.begin(), best.end(), i, before), i);
  }
  return best;
}

void mask_groups(std::vector<float>& choice, const GateRule& rule) {
  const std::size_t size = choice.size() / rule.groups;
  const std::size_t counted = rule.group_score == GateRule::GroupScore::largest ? 1 : 2;
  std::vector<float> scores(rule.groups);
  for (std::size_t g = 0; g < rule.groups; ++g) {
    const std::span group = std::span<const float>(choice).subspan(g * size, size);
    for (const std::size_t i : largest_places(group, counted)) scores[g] += group[i];
  }
  std::vector<bool> kept(rule.groups);
  for (const std::size_t g : largest_places(scores, rule.chosen_groups)) kept[g] = true;
  const float masked = rule.masked_is_zero ? 0 : -std::numeric_limits<float>::infinity();
  for (std::size_t e = 0; e < choice.size(); ++e) {
    if (!kept[e / size]) choice[e] = masked;
  }
}

void choose(std::vector<float> scores, std::span<const float> correction, const GateRule& rule,
            std::int32_t* experts, float* weights) {
  if (!rule.top_k_first) score(scores, rule.score);
  std::vector<float> choice = scores;
  for (std::size_t e = 0; e < correction.size(); ++e) choice[e] += correction[e];
  if (rule.groups > 1) mask_groups(choice, rule);
  const std::vector<std::size_t> chosen = largest_places(choice, rule.top_k);
  std::vector<float> kept;
  for (const std::size_t e : chosen) kept.push_back(scores[e]);
  if (rule.top_k_first) score(kept, rule.score);
  double sum = rule.epsilon;
  for (const float w : kept) sum += static_cast<double>(w);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto w = static_cast<double>(kept[i]);
    experts[i] = static_cast<std::int32_t>(chosen[i]);
    weights[i] = static_cast<float>((rule.renormalize ? w / sum : w) * rule.scale);
  }
}

}  // namespace

void online_softmax(const Matrix& x, const Matrix& y, int jobs) {
  const std::size_t step = std::max<std::size_t>(1, kSoftmaxPiece / std::max<std::size_t>(1, x.columns()));
  team_for(jobs, (x.rows() + step - 1) / step, [&](std::size_t piece) {
    for (std::size_t r = piece * step; r < std::min(x.rows(), (piece + 1) * step); ++r)
      softmax(x.row<float>(r), x.columns(), y.row<float>(r));
  });
}

Routing top_k_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule,
                   const Matrix& weights, int jobs) {
  if (rule.top_k == 0 || rule.top_k > logits.columns() || rule.groups == 0 ||
      logits.columns() % rule.groups != 0 || rule.chosen_groups > rule.groups)
    throw Error::internal(fmt::format("a gate takes top {} and {} of {} groups of {} experts", rule.top_k,
                                      rule.chosen_groups, rule.groups, logits.columns()));
  std::vector<float> bias(correction ? correction.rows * correction.columns : 0);
  if (correction) decode_rows(correction, 0, correction.rows, bias.data());
  Routing routing = {rule.top_k, std::vector<std::int32_t>(logits.rows() * rule.top_k), weights};
  team_for(jobs, (logits.rows() + kGatePiece - 1) / kGatePiece, [&](std::size_t piece) {
    for (std::size_t t = piece * kGatePiece; t < std::min(logits.rows(), (piece + 1) * kGatePiece); ++t) {
      const float* row = logits.row<float>(t);
      choose(std::vector<float>(row, row + logits.columns()), bias, rule, &routing.experts[t * rule.top_k],
             weights.row<float>(t));
    }
  });
  return routing;
}

}  // namespace assay::cpu
#endif
