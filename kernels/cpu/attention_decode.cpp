#include "kernels/cpu/attention_decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/team.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_decode.cpp"
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
#include "kernels/cpu/logistic.h"

// The sum of each of four vectors.
HWY_INLINE void store_sums(V32 a, V32 b, V32 c, V32 e, float* sums) {
#if HWY_TARGET == HWY_SCALAR
  const V32 of[] = {a, b, c, e};
  for (std::size_t i = 0; i < kDecodeKeys; ++i) sums[i] = hn::GetLane(of[i]);
#else
  const F32 d;
  const hn::Repartition<double, F32> wide;
  const auto two = [&](V32 v, V32 w) HWY_ATTR {
    return hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, v, w), hn::InterleaveUpper(d, v, w)));
  };
  const auto low = two(a, b), high = two(c, e);
  const V32 four = hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, low, high)),
                           hn::BitCast(d, hn::InterleaveUpper(wide, low, high)));  // of every 128 bits
  HWY_ALIGN float parts[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(four, d, parts);
  const hn::FixedTag<float, 4> d4;
  auto sum = hn::Load(d4, parts);
  for (std::size_t i = 4; i < hn::Lanes(d); i += 4) sum = hn::Add(sum, hn::Load(d4, parts + i));
  hn::StoreU(sum, d4, sums);
#endif
}

// q · k of one query and four keys.
void four_scores(const float* q, const float* const* keys, std::size_t dim, float* scores) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  for (std::size_t i = 0; i < dim; i += lanes) {
    const std::size_t here = std::min(lanes, dim - i);
    const V32 of_query = load_some(q + i, here);
    a = hn::MulAdd(of_query, load_some(keys[0] + i, here), a);
    b = hn::MulAdd(of_query, load_some(keys[1] + i, here), b);
    c = hn::MulAdd(of_query, load_some(keys[2] + i, here), c);
    e = hn::MulAdd(of_query, load_some(keys[3] + i, here), e);
  }
  store_sums(a, b, c, e, scores);
}

// out += Σ weights[k] · values[k], key by key.
void add_four(const float* weights, const float* const* values, std::size_t dim, float* out) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < dim; i += lanes) {
    const std::size_t here = std::min(lanes, dim - i);
    V32 sum = load_some(out + i, here);
    for (std::size_t k = 0; k < kDecodeKeys; ++k)
      sum = hn::MulAdd(hn::Set(d, weights[k]), load_some(values[k] + i, here), sum);
    store_some(sum, out + i, here);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(largest);
HWY_EXPORT(exponentials);
HWY_EXPORT(scale);
HWY_EXPORT(four_scores);
HWY_EXPORT(add_four);

namespace {

// One query's heads over the key heads [first_kv, first_kv + kv_heads).
class DecodeWork {
 public:
  DecodeWork(const AttentionCall& call, const SequenceMetadata& span, std::size_t first_kv,
             std::size_t kv_heads, std::span<const float> sinks, const Matrix& out)
      : call_(call),
        span_(span),
        group_(call.heads / call.kv_heads),
        first_kv_(first_kv),
        kv_heads_(kv_heads),
        sinks_(sinks),
        out_(out.row<float>(span.first) + first_kv * group_ * call.v_dim) {
    begin_ = call.window != 0 && span.keys > call.window ? span.keys - call.window : 0;
    count_ = span.keys - begin_;
    padded_ = (count_ + kDecodeKeys - 1) / kDecodeKeys * kDecodeKeys;
    scores_.resize(kv_heads_ * group_ * padded_);
    factors_.resize(kv_heads_ * group_);
    const float* q = call.q.row<float>(span.first) + first_kv * group_ * call.qk_dim;
    q_.assign(q, q + kv_heads_ * group_ * call.qk_dim);
    for (float& x : q_) x *= static_cast<float>(call.scale);
  }

  void run() {
    for (std::size_t k = 0; k < count_; k += kDecodeKeys) score(k);
    for (std::size_t h = 0; h < kv_heads_ * group_; ++h) weigh(h);
    std::fill_n(out_, kv_heads_ * group_ * call_.v_dim, 0.0F);
    for (std::size_t k = 0; k < count_; k += kDecodeKeys) add_values(k);
    for (std::size_t h = 0; h < factors_.size(); ++h)
      HWY_DYNAMIC_DISPATCH(scale)(out_ + h * call_.v_dim, call_.v_dim, factors_[h]);
  }

 private:
  // Of keys k … k + 3 a key head's part; behind the last key its own again, under weights of zero.
  void rows_of(const PagedKvView& view, std::size_t k, std::size_t column, const float** rows) const {
    for (std::size_t i = 0; i < kDecodeKeys; ++i)
      rows[i] = view.base.row<float>(view.row(begin_ + std::min(k + i, count_ - 1))) + column;
  }

  void score(std::size_t k) {
    const auto four_scores = HWY_DYNAMIC_DISPATCH(four_scores);
    const float* keys[kDecodeKeys];
    rows_of(span_.key_rows, k, first_kv_ * call_.qk_dim, keys);
    for (std::size_t h = 0; h < kv_heads_ * group_; ++h) {
      four_scores(&q_[h * call_.qk_dim], keys, call_.qk_dim, &scores_[h * padded_ + k]);
      if ((h + 1) % group_ == 0) {
        for (const float*& key : keys) key += call_.qk_dim;
      }
    }
  }

  void weigh(std::size_t h) {
    float* s = &scores_[h * padded_];
    const auto cap = static_cast<float>(call_.soft_cap);
    for (std::size_t k = 0; cap != 0 && k < count_; ++k) s[k] = cap * std::tanh(s[k] / cap);
    const float* sink = sinks_.empty() ? nullptr : &sinks_[first_kv_ * group_ + h];
    float most = HWY_DYNAMIC_DISPATCH(largest)(s, count_);
    if (sink != nullptr) most = std::max(most, *sink);
    float sum = HWY_DYNAMIC_DISPATCH(exponentials)(s, count_, most);
    if (sink != nullptr) sum += std::exp(*sink - most);
    std::fill(s + count_, s + padded_, 0.0F);
    factors_[h] = 1 / sum;
  }

  void add_values(std::size_t k) {
    const auto add_four = HWY_DYNAMIC_DISPATCH(add_four);
    const float* values[kDecodeKeys];
    rows_of(span_.value_rows, k, first_kv_ * call_.v_dim, values);
    for (std::size_t h = 0; h < kv_heads_ * group_; ++h) {
      add_four(&scores_[h * padded_ + k], values, call_.v_dim, out_ + h * call_.v_dim);
      if ((h + 1) % group_ == 0) {
        for (const float*& value : values) value += call_.v_dim;
      }
    }
  }

  const AttentionCall& call_;
  const SequenceMetadata& span_;
  std::size_t group_, first_kv_, kv_heads_;
  std::span<const float> sinks_;
  float* out_;
  std::size_t begin_ = 0, count_ = 0, padded_ = 0;  // keys that the query sees
  std::vector<float> q_, scores_, factors_;         // [heads, qk_dim], [heads, padded_], [heads]
};

}  // namespace

void attend_decoding(const AttentionCall& call, std::span<const std::size_t> sequences,
                     std::span<const float> sinks, const Matrix& out, int jobs) {
  // Few sequences are cut by heads, so that all threads have some.
  const auto threads = static_cast<std::size_t>(std::max(1, jobs));
  const std::size_t parts = sequences.size() >= 2 * threads ? 1 : std::min(call.kv_heads, threads);
  team_for(jobs, sequences.size() * parts, [&](std::size_t i) {
    const std::size_t part = i % parts, first = call.kv_heads * part / parts;
    DecodeWork(call, call.sequences[sequences[i / parts]], first, call.kv_heads * (part + 1) / parts - first,
               sinks, out)
        .run();
  });
}

}  // namespace assay::cpu
#endif
