#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/attention_decode.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/team.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
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

float dot(const float* a, const float* b, std::size_t count) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 even = hn::Zero(d), odd = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    even = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), even);
    odd = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), odd);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(const float* x, std::size_t count, float factor, float* sum) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), hn::Set(d, factor), hn::LoadU(d, sum + i)), d, sum + i);
  for (; i < count; ++i) sum[i] += x[i] * factor;
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(largest);
HWY_EXPORT(exponentials);
HWY_EXPORT(scale);
HWY_EXPORT(dot);
HWY_EXPORT(add_scaled);

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Keys of a block: outputs are read and written once for all of them. Steady ones are read whole, so that few are better.
constexpr std::size_t kBlockKeys = 128, kSteadyKeys = 16;

class TileWork {
 public:
  explicit TileWork(const AttendTile& tile)
      : t_(tile),
        width_(std::max(panel_width(), tile.steady ? kSteadyKeys : kBlockKeys)),
        scores_(tile.rows * width_),
        largest_(tile.rows, kMinusInfinity),
        sum_(tile.rows, 0.0F) {}

  void run() {
    std::fill_n(t_.out, t_.rows * t_.v_dim, 0.0F);
    begin_ = std::max(t_.key_begin, *std::min_element(t_.first, t_.first + t_.rows));
    end_ = std::min(t_.key_end, *std::max_element(t_.position, t_.position + t_.rows) + 1);
    if (t_.steady) {
      nothing_.resize(std::max(t_.qk_dim, t_.v_dim));
      for (std::size_t key = begin_ / width_ * width_; key < end_; key += width_) block(key, width_);
    } else {
      for (std::size_t key = begin_; key < end_; key += width_) block(key, std::min(width_, end_ - key));
    }
    finish();
  }

 private:
  bool by_dots() const { return !t_.steady && t_.rows < kPackRows; }
  const float* key_row(std::size_t key) const {
    if (key < begin_ || key >= end_) return nothing_.data();
    return t_.keys.base.row<float>(t_.keys.row(key)) + t_.key_column;
  }
  const float* value_row(std::size_t key) const {
    if (key < begin_ || key >= end_) return nothing_.data();
    return t_.values.base.row<float>(t_.values.row(key)) + t_.value_column;
  }

  void block(std::size_t key, std::size_t count) {
    if (by_dots())
      scores_by_dots(key, count);
    else
      scores_by_panels(key, count);
    for (std::size_t i = 0; i < t_.rows; ++i) weigh(i, key, count);
    if (by_dots())
      values_by_rows(key, count);
    else
      values_by_panels(key, count);
  }

  void scores_by_dots(std::size_t key, std::size_t count) {
    const auto dot = HWY_DYNAMIC_DISPATCH(dot);
    for (std::size_t k = 0; k < count; ++k) {
      const float* row = key_row(key + k);
      for (std::size_t i = 0; i < t_.rows; ++i)
        scores_[i * width_ + k] = dot(t_.q + i * t_.qk_dim, row, t_.qk_dim);
    }
  }

  void scores_by_panels(std::size_t key, std::size_t count) {
    const std::size_t across = panel_width();
    panel_.resize(across * t_.qk_dim);
    rows_.resize(across);
    for (std::size_t k = 0; k < count; k += across) {
      const std::size_t here = std::min(across, count - k);
      for (std::size_t n = 0; n < here; ++n) rows_[n] = key_row(key + k + n);
      pack_panel(rows_.data(), here, t_.qk_dim, panel_.data());
      multiply_panel({.x = t_.q,
                      .tokens = t_.rows,
                      .x_stride = t_.qk_dim,
                      .panel = panel_.data(),
                      .terms = t_.qk_dim,
                      .y = scores_.data() + k,
                      .y_stride = width_,
                      .outputs = here});
    }
  }

  // Row i's scores become weights under its new largest score; what it had is brought under that too.
  void weigh(std::size_t i, std::size_t key, std::size_t count) {
    float* s = scores_.data() + i * width_;
    for (std::size_t k = 0; t_.soft_cap != 0 && k < count; ++k)
      s[k] = t_.soft_cap * std::tanh(s[k] / t_.soft_cap);
    const std::size_t seen = std::clamp(t_.first[i], key, key + count) - key;
    const std::size_t unseen = std::clamp(t_.position[i] + 1, key, key + count) - key;
    std::fill(s, s + seen, kMinusInfinity);
    std::fill(s + unseen, s + count, kMinusInfinity);
    const float most = std::max(largest_[i], HWY_DYNAMIC_DISPATCH(largest)(s, count));
    if (most == kMinusInfinity) return static_cast<void>(std::fill_n(s, count, 0.0F));
    const float correction = std::exp(largest_[i] - most);  // 0 for the first block
    const float sum = HWY_DYNAMIC_DISPATCH(exponentials)(s, count, most);
    if (correction != 1) HWY_DYNAMIC_DISPATCH(scale)(t_.out + i * t_.v_dim, t_.v_dim, correction);
    sum_[i] = sum_[i] * correction + sum;
    largest_[i] = most;
  }

  void values_by_rows(std::size_t key, std::size_t count) {
    const auto add = HWY_DYNAMIC_DISPATCH(add_scaled);
    for (std::size_t k = 0; k < count; ++k) {
      const float* row = value_row(key + k);
      for (std::size_t i = 0; i < t_.rows; ++i)
        add(row, t_.v_dim, scores_[i * width_ + k], t_.out + i * t_.v_dim);
    }
  }

  // Values lie as a panel wants them, keys down and channels across; copied panel by panel, since pages may scatter them,
  // rows lie a power of two apart as a rule, and the last vector must not read beyond a row.
  void values_by_panels(std::size_t key, std::size_t count) {
    const std::size_t across = panel_width(), panels = (t_.v_dim + across - 1) / across;
    values_.resize(panels * width_ * across);
    const auto channels_of = [&](std::size_t p) { return std::min(across, t_.v_dim - p * across); };
    const auto panel_of = [&](std::size_t p) { return values_.data() + p * width_ * across; };
    for (std::size_t k = 0; k < count; ++k) {
      const float* row = value_row(key + k);
      for (std::size_t p = 0; p < panels; ++p)
        std::memcpy(panel_of(p) + k * across, row + p * across, channels_of(p) * sizeof(float));
    }
    for (std::size_t p = 0; p < panels; ++p) {
      multiply_panel({.x = scores_.data(),
                      .tokens = t_.rows,
                      .x_stride = width_,
                      .panel = panel_of(p),
                      .terms = count,
                      .y = t_.out + p * across,
                      .y_stride = t_.v_dim,
                      .outputs = channels_of(p),
                      .accumulate = true});
    }
  }

  // A sink takes its share of the sum, once.
  void finish() {
    if (t_.largest != nullptr) {
      std::copy(largest_.begin(), largest_.end(), t_.largest);
      std::copy(sum_.begin(), sum_.end(), t_.sum);
      return;
    }
    for (std::size_t i = 0; i < t_.rows; ++i) {
      float factor = sum_[i] > 0 ? 1 / sum_[i] : 0.0F;
      if (t_.sinks != nullptr) {
        const float most = std::max(largest_[i], t_.sinks[i]);
        const float kept = std::exp(largest_[i] - most);
        factor = kept / (sum_[i] * kept + std::exp(t_.sinks[i] - most));
      }
      HWY_DYNAMIC_DISPATCH(scale)(t_.out + i * t_.v_dim, t_.v_dim, factor);
    }
  }

  const AttendTile& t_;
  std::size_t width_;
  std::size_t begin_ = 0, end_ = 0;            // of the keys that are read
  std::vector<float> nothing_;                 // for the others of a block
  std::vector<float> scores_, largest_, sum_;  // [rows, width_], [rows], [rows]
  std::vector<float> panel_, values_;
  std::vector<const float*> rows_;
};

struct TilePlace {
  std::size_t span, kv_head, query, queries;
};

// A tile's queries, and what of the keys they see.
struct TileQueries {
  TileQueries(const AttentionCall& call, const TilePlace& place, std::span<const float> sinks)
      : group(call.heads / call.kv_heads), rows(place.queries * group), q(rows * call.qk_dim) {
    const SequenceMetadata& span = call.sequences[place.span];
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t query = place.query + i / group, head = place.kv_head * group + i % group;
      const float* from = call.q.row<float>(span.first + query) + head * call.qk_dim;
      for (std::size_t c = 0; c < call.qk_dim; ++c)
        q[i * call.qk_dim + c] = from[c] * static_cast<float>(call.scale);
      position.push_back(span.keys - span.queries + query);
      first.push_back(call.window != 0 && position[i] + 1 > call.window ? position[i] + 1 - call.window : 0);
      if (!sinks.empty()) sink.push_back(sinks[head]);
    }
  }
  AttendTile tile(const AttentionCall& call, const TilePlace& place, float* out) const {
    const SequenceMetadata& span = call.sequences[place.span];
    return {.rows = rows,
            .q = q.data(),
            .first = first.data(),
            .position = position.data(),
            .keys = span.key_rows,
            .values = span.value_rows,
            .key_column = place.kv_head * call.qk_dim,
            .value_column = place.kv_head * call.v_dim,
            .qk_dim = call.qk_dim,
            .v_dim = call.v_dim,
            .soft_cap = static_cast<float>(call.soft_cap),
            .sinks = sink.empty() ? nullptr : sink.data(),
            .out = out};
  }

  std::size_t group, rows;
  std::vector<float> q, sink;
  std::vector<std::size_t> first, position;
};

// A tile's results to where their tokens' are.
void put_results(const AttentionCall& call, const TilePlace& place, const float* result, const Matrix& out) {
  const std::size_t row = call.heads / call.kv_heads * call.v_dim;
  for (std::size_t i = 0; i < place.queries; ++i) {
    float* to = out.row<float>(call.sequences[place.span].first + place.query + i) + place.kv_head * row;
    std::memcpy(to, result + i * row, row * sizeof(float));
  }
}

void run_place(const AttentionCall& call, const TilePlace& place, std::span<const float> sinks,
               const Matrix& out, bool steady) {
  const TileQueries queries(call, place, sinks);
  std::vector<float> result(queries.rows * call.v_dim);
  AttendTile tile = queries.tile(call, place, result.data());
  tile.steady = steady;
  attend(tile);
  put_results(call, place, result.data(), out);
}

// One part of a tile's keys: sums not yet divided, and under which largest score they were made.
struct Split {
  std::size_t place = 0, key = 0;
  std::vector<float> out, largest, sum;
};

void run_split(const AttentionCall& call, const TilePlace& place, std::span<const float> sinks,
               Split& split) {
  const TileQueries queries(call, place, sinks);
  split.out.resize(queries.rows * call.v_dim);
  split.largest.resize(queries.rows);
  split.sum.resize(queries.rows);
  AttendTile tile = queries.tile(call, place, split.out.data());
  tile.key_begin = split.key;
  tile.key_end = split.key + kSplitKeys;
  tile.largest = split.largest.data();
  tile.sum = split.sum.data();
  attend(tile);
}

// out = Σ_s e^(m_s - m)·o_s / Σ_s e^(m_s - m)·l_s, m = max m_s; the sink is one more term of the lower sum.
void merge(const AttentionCall& call, const TilePlace& place, std::span<const Split> splits,
           std::span<const float> sinks, const Matrix& out) {
  const TileQueries queries(call, place, sinks);
  std::vector<float> result(queries.rows * call.v_dim);
  for (std::size_t i = 0; i < queries.rows; ++i) {
    float most = queries.sink.empty() ? kMinusInfinity : queries.sink[i], sum = 0;
    for (const Split& s : splits) most = std::max(most, s.largest[i]);
    if (!queries.sink.empty()) sum = std::exp(queries.sink[i] - most);
    float* row = &result[i * call.v_dim];
    for (const Split& s : splits) {
      if (s.largest[i] == kMinusInfinity) continue;
      const float share = std::exp(s.largest[i] - most);
      sum += share * s.sum[i];
      HWY_DYNAMIC_DISPATCH(add_scaled)(&s.out[i * call.v_dim], call.v_dim, share, row);
    }
    HWY_DYNAMIC_DISPATCH(scale)(row, call.v_dim, sum > 0 ? 1 / sum : 0.0F);
  }
  put_results(call, place, result.data(), out);
}

std::vector<float> read_sinks(const AttentionCall& call) {
  std::vector<float> sinks(call.sinks ? call.heads : 0);
  if (call.sinks) decode_rows(call.sinks, 0, 1, sinks.data());
  return sinks;
}

// The tiles of the sequences that are split, or of the others.
std::vector<TilePlace> tiles_of(const AttentionCall& call,
                                const std::function<bool(const SequenceMetadata&)>& wanted) {
  const std::size_t group = call.heads / call.kv_heads;
  const std::size_t step = std::max<std::size_t>(1, kTileQueries / group);
  std::vector<TilePlace> places;
  for (std::size_t s = 0; s < call.sequences.size(); ++s) {
    if (!wanted(call.sequences[s])) continue;
    for (std::size_t kv = 0; kv < call.kv_heads; ++kv) {
      for (std::size_t query = 0; query < call.sequences[s].queries; query += step)
        places.push_back({s, kv, query, std::min(step, call.sequences[s].queries - query)});
    }
  }
  return places;
}

void attend_whole(const AttentionCall& call, const std::vector<TilePlace>& places, const Matrix& out,
                  int jobs, bool steady = false) {
  const std::vector<float> sinks = read_sinks(call);
  team_for(jobs, places.size(), [&](std::size_t i) { run_place(call, places[i], sinks, out, steady); });
}

void attend_split(const AttentionCall& call, const std::vector<TilePlace>& places, const Matrix& out,
                  int jobs) {
  const std::vector<float> sinks = read_sinks(call);
  std::vector<Split> splits;
  std::vector<std::size_t> first_of(places.size() + 1);
  for (std::size_t p = 0; p < places.size(); ++p) {
    for (std::size_t key = 0; key < call.sequences[places[p].span].keys; key += kSplitKeys)
      splits.push_back({p, key, {}, {}, {}});
    first_of[p + 1] = splits.size();
  }
  team_for(jobs, splits.size(),
           [&](std::size_t i) { run_split(call, places[splits[i].place], sinks, splits[i]); });
  team_for(jobs, places.size(), [&](std::size_t p) {
    merge(call, places[p], std::span(splits).subspan(first_of[p], first_of[p + 1] - first_of[p]), sinks, out);
  });
}

}  // namespace

void attend(const AttendTile& tile) {
  if (tile.rows != 0) TileWork(tile).run();
}

void attention(const AttentionCall& call, const Matrix& out, int jobs) {
  // By what a sequence is, never by the threads or the others of its batch.
  const auto is_split = [](const SequenceMetadata& span) {
    return span.queries == 1 && span.keys >= kSplitFrom;
  };
  const bool few_heads = call.heads / call.kv_heads < kPackRows;
  const auto is_decoding = [&](const SequenceMetadata& span) {
    return span.queries == 1 && few_heads && !is_split(span);
  };
  std::vector<std::size_t> decoding;
  for (std::size_t s = 0; s < call.sequences.size(); ++s) {
    if (is_decoding(call.sequences[s])) decoding.push_back(s);
  }
  if (!decoding.empty()) attend_decoding(call, decoding, read_sinks(call), out, jobs);
  const std::vector<TilePlace> split = tiles_of(call, is_split);
  attend_whole(call,
               tiles_of(call, [&](const SequenceMetadata& s) { return !is_split(s) && !is_decoding(s); }),
               out, jobs);
  if (!split.empty()) attend_split(call, split, out, jobs);
}

void split_attention(const AttentionCall& call, const Matrix& out, int jobs) {
  attend_split(call, tiles_of(call, [](const SequenceMetadata&) { return true; }), out, jobs);
}

void steady_attention(const AttentionCall& call, const Matrix& out, int jobs) {
  attend_whole(call, tiles_of(call, [](const SequenceMetadata&) { return true; }), out, jobs, true);
}

}  // namespace assay::cpu
#endif
