#include "kernels/cpu/attention_decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
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
#include "kernels/cpu/unrolled.h"

// The sum of each of four vectors.
HWY_INLINE void store_sums(V32 a, V32 b, V32 c, V32 e, float* sums) {
#if HWY_TARGET == HWY_SCALAR
  const V32 of[] = {a, b, c, e};
  for (std::size_t i = 0; i < 4; ++i) sums[i] = hn::GetLane(of[i]);
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

// Keys beside two heads whose sums, or weights, stay in registers.
constexpr std::size_t kKeys = HWY_TARGET <= HWY_AVX3 ? kDecodeKeys : kDecodeKeys / 2;
static_assert(kKeys % 4 == 0);

// q · k of `Heads` queries, one after the other, and kKeys keys; scores of a query are `stride` from the last one's.
template <std::size_t Heads>
HWY_INLINE void scores_of(const float* q, const float* const* keys, std::size_t dim, float* scores,
                          std::size_t stride) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 sums[Heads * kKeys];
  unrolled<Heads * kKeys>([&](auto i) UNROLLED { sums[i] = hn::Zero(d); });
  const auto add = [&](std::size_t i, std::size_t count) UNROLLED {
    V32 of_query[Heads];
    unrolled<Heads>([&](auto h) UNROLLED { of_query[h] = load_some(q + h * dim + i, count); });
    unrolled<kKeys>([&](auto k) UNROLLED {
      const V32 key = load_some(keys[k] + i, count);
      unrolled<Heads>(
          [&](auto h) UNROLLED { sums[h * kKeys + k] = hn::MulAdd(of_query[h], key, sums[h * kKeys + k]); });
    });
  };
  std::size_t i = 0;
  for (; i + lanes <= dim; i += lanes) add(i, lanes);
  if (i < dim) add(i, dim - i);
  unrolled<Heads>([&](auto h) UNROLLED {
    unrolled<kKeys / 4>([&](auto four) UNROLLED {
      const V32* of = sums + h * kKeys + 4 * four;
      store_sums(of[0], of[1], of[2], of[3], scores + h * stride + 4 * four);
    });
  });
}

// Of a key head's queries and kDecodeKeys keys.
void key_scores(const float* q, std::size_t heads, const float* const* keys, std::size_t dim, float* scores,
                std::size_t stride) {
  for (std::size_t h = 0; h < heads; h += 2) {
    for (std::size_t k = 0; k < kDecodeKeys; k += kKeys)
      h + 2 <= heads ? scores_of<2>(q + h * dim, keys + k, dim, scores + h * stride + k, stride)
                     : scores_of<1>(q + h * dim, keys + k, dim, scores + h * stride + k, stride);
  }
}

// out += Σ weights[k] · values[k], key by key, of `Heads` heads.
template <std::size_t Heads>
HWY_INLINE void add_values_of(const float* weights, std::size_t stride, const float* const* values,
                              std::size_t dim, float* out) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 w[Heads * kKeys];
  unrolled<Heads>([&](auto h) UNROLLED {
    unrolled<kKeys>([&](auto k) UNROLLED { w[h * kKeys + k] = hn::Set(d, weights[h * stride + k]); });
  });
  const auto add = [&](std::size_t i, std::size_t count) UNROLLED {
    V32 sums[Heads];
    unrolled<Heads>([&](auto h) UNROLLED { sums[h] = load_some(out + h * dim + i, count); });
    unrolled<kKeys>([&](auto k) UNROLLED {
      const V32 value = load_some(values[k] + i, count);
      unrolled<Heads>([&](auto h) UNROLLED { sums[h] = hn::MulAdd(w[h * kKeys + k], value, sums[h]); });
    });
    unrolled<Heads>([&](auto h) UNROLLED { store_some(sums[h], out + h * dim + i, count); });
  };
  std::size_t i = 0;
  for (; i + lanes <= dim; i += lanes) add(i, lanes);
  if (i < dim) add(i, dim - i);
}

void add_weighted(const float* weights, std::size_t stride, std::size_t heads, const float* const* values,
                  std::size_t dim, float* out) {
  for (std::size_t h = 0; h < heads; h += 2) {
    for (std::size_t k = 0; k < kDecodeKeys; k += kKeys)
      h + 2 <= heads ? add_values_of<2>(weights + h * stride + k, stride, values + k, dim, out + h * dim)
                     : add_values_of<1>(weights + h * stride + k, stride, values + k, dim, out + h * dim);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(largest);
HWY_EXPORT(exponentials);
HWY_EXPORT(scale);
HWY_EXPORT(key_scores);
HWY_EXPORT(add_weighted);

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
  // Of the keys from k on a key head's part; behind the last key its own again, under weights of zero.
  void rows_of(const PagedKvView& view, std::size_t k, std::size_t column, const float** rows) const {
    for (std::size_t i = 0; i < kDecodeKeys; ++i)
      rows[i] = view.base.row<float>(view.row(begin_ + std::min(k + i, count_ - 1))) + column;
  }

  void score(std::size_t k) {
    const auto key_scores = HWY_DYNAMIC_DISPATCH(key_scores);
    const float* keys[kDecodeKeys];
    rows_of(span_.key_rows, k, first_kv_ * call_.qk_dim, keys);
    for (std::size_t h = 0; h < kv_heads_ * group_; h += group_) {
      key_scores(&q_[h * call_.qk_dim], group_, keys, call_.qk_dim, &scores_[h * padded_ + k], padded_);
      for (const float*& key : keys) key += call_.qk_dim;
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
    const auto add_weighted = HWY_DYNAMIC_DISPATCH(add_weighted);
    const float* values[kDecodeKeys];
    rows_of(span_.value_rows, k, first_kv_ * call_.v_dim, values);
    for (std::size_t h = 0; h < kv_heads_ * group_; h += group_) {
      add_weighted(&scores_[h * padded_ + k], padded_, group_, values, call_.v_dim, out_ + h * call_.v_dim);
      for (const float*& value : values) value += call_.v_dim;
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
