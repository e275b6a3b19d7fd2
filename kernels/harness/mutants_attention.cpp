// Faults of attention: windows, masks, sinks, splits, pages, and the softmax that is taken in pieces.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/harness/made_weight.h"
#include "kernels/harness/mutants.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// Attention over `split` keys at a time, each split under an online softmax of `block` keys, the splits
// merged by their log-sum-exp. Right, unless one of these says otherwise.
struct Faults {
  std::size_t split = 16, block = 4;
  bool lost_rescale = false;        // old sums are not shrunk when the maximum grows
  bool no_maximum = false;          // exponentials of the scores as they are
  bool plain_average = false;       // splits merged without their weights
  bool sink_in_each_split = false;  // instead of once
  bool no_sink = false;
  bool empty_split_counts = false;  // one split more, with nothing in it, divides 0 by 0
  bool last_split_dropped = false;
  bool cap_after_scale_lost = false;  // no cap
  bool heads_in_turn = false;         // query head h looks at key head h mod kv_heads
  bool page_edge = false;             // the first position of a page is looked for in the page before
  bool pages_ignored = false;
  bool one_key_more = false;    // the row behind the last
  bool first_sequence = false;  // every sequence sees the first one's keys
  bool mask_at_top = false;     // query i sees keys 0 … i, whatever came before
  int window_change = 0;
  bool no_window = false;
  int causal_change = 0;  // sees so many keys more, or fewer
  int value_shift = 0;
  double scale_factor = 1;
  bool reciprocal_scale = false;
};

struct Partial {
  double maximum = kNothing, sum = 0;
  std::vector<double> out;
};

class FaultyAttention {
 public:
  FaultyAttention(const AttentionCall& call, const Faults& faults) : call_(call), f_(faults) {
    if (call.sinks) sinks_ = decode_vector(call.sinks);
  }

  Matrix run(ReferenceOps& ops) const {
    Matrix out = ops.allocate(call_.q.rows(), call_.heads * call_.v_dim);
    for (const SequenceMetadata& span : call_.sequences) {
      for (std::size_t i = 0; i < span.queries; ++i) {
        for (std::size_t h = 0; h < call_.heads; ++h)
          attend(span, i, h, out.row<float>(span.first + i) + h * call_.v_dim);
      }
    }
    return out;
  }

 private:
  // A table of pages ends with the sequence's last key: what lies behind that is the next row in memory.
  std::size_t row_of(const PagedKvView& cache, std::size_t keys, std::size_t position) const {
    if (cache.pages == nullptr || f_.pages_ignored) return position;
    if (position >= keys) return cache.row(keys - 1) + (position - keys) + 1;
    if (f_.page_edge && position != 0 && position % cache.page_rows == 0)
      return static_cast<std::size_t>(cache.pages[position / cache.page_rows - 1]) * cache.page_rows +
             cache.page_rows - 1;
    return cache.row(position);
  }
  const float* head_of(const PagedKvView& cache, std::size_t keys, std::size_t position, std::size_t head,
                       std::size_t width) const {
    const std::size_t kv = f_.heads_in_turn ? head % call_.kv_heads : head / (call_.heads / call_.kv_heads);
    const std::size_t row = std::min(row_of(cache, keys, position), cache.base.rows() - 1);
    return cache.base.row<float>(row) + kv * width;
  }

  double score(const SequenceMetadata& span, std::size_t query, std::size_t head, std::size_t key) const {
    const float* q = call_.q.row<float>(span.first + query) + head * call_.qk_dim;
    const SequenceMetadata& keys = f_.first_sequence ? call_.sequences[0] : span;
    const double scale = f_.reciprocal_scale ? 1 : call_.scale * f_.scale_factor;
    const double s = dot(q, head_of(keys.key_rows, keys.keys, key, head, call_.qk_dim), call_.qk_dim) * scale;
    const double bias = call_.slopes.empty() ? 0 : call_.slopes[head] * static_cast<double>(key);
    if (call_.soft_cap == 0 || f_.cap_after_scale_lost) return s + bias;
    return call_.soft_cap * std::tanh(s / call_.soft_cap) + bias;
  }

  // Keys [first, last) into a partial result, `block` of them at a time.
  Partial over(const SequenceMetadata& span, std::size_t query, std::size_t head, std::size_t first,
               std::size_t last) const {
    Partial p;
    p.out.resize(call_.v_dim);
    for (std::size_t begin = first; begin < last; begin += f_.block) {
      const std::size_t end = std::min(last, begin + f_.block);
      std::vector<double> scores;
      double maximum = f_.no_maximum ? 0 : p.maximum;
      for (std::size_t k = begin; k < end; ++k) {
        scores.push_back(score(span, query, head, k));
        if (!f_.no_maximum) maximum = std::max(maximum, scores.back());
      }
      const double shrink = p.maximum == kNothing || f_.lost_rescale ? 1 : std::exp(p.maximum - maximum);
      p.sum *= shrink;
      for (double& o : p.out) o *= shrink;
      p.maximum = maximum;
      for (std::size_t k = begin; k < end; ++k) {
        const double weight = static_cast<float>(std::exp(scores[k - begin] - maximum));
        const auto shifted = static_cast<std::ptrdiff_t>(k) + f_.value_shift;
        const SequenceMetadata& values = f_.first_sequence ? call_.sequences[0] : span;
        const float* v =
            head_of(values.value_rows, values.keys,
                    static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, shifted)), head, call_.v_dim);
        p.sum += weight;
        for (std::size_t i = 0; i < call_.v_dim; ++i) p.out[i] += weight * static_cast<double>(v[i]);
      }
    }
    return p;
  }

  void attend(const SequenceMetadata& span, std::size_t query, std::size_t head, float* out) const {
    std::size_t position = f_.mask_at_top ? query : span.keys - span.queries + query;
    position = static_cast<std::size_t>(
        std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(position) + f_.causal_change));
    if (f_.causal_change > 0) position = std::min(position, span.keys - 1);
    const std::size_t last = position + 1 + (f_.one_key_more ? 1 : 0);
    std::size_t first = 0;
    const auto window = static_cast<std::size_t>(
        std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(call_.window) + f_.window_change));
    if (call_.window != 0 && !f_.no_window && position + 1 > window) first = position + 1 - window;

    std::vector<Partial> splits;
    for (std::size_t begin = first; begin < last; begin += f_.split)
      splits.push_back(over(span, query, head, begin, std::min(last, begin + f_.split)));
    if (f_.last_split_dropped && splits.size() > 1) splits.pop_back();
    const bool sink = !sinks_.empty() && !f_.no_sink;
    double maximum = sink ? sinks_[head] : kNothing;
    for (const Partial& p : splits) maximum = std::max(maximum, p.maximum);
    double sum = sink ? std::exp(sinks_[head] - maximum) *
                            (f_.sink_in_each_split ? static_cast<double>(splits.size()) : 1)
                      : 0;
    std::vector<double> total(call_.v_dim);
    for (const Partial& p : splits) {
      const double weight =
          f_.plain_average ? 1 / (p.sum * static_cast<double>(splits.size())) : std::exp(p.maximum - maximum);
      sum += weight * p.sum;
      for (std::size_t i = 0; i < call_.v_dim; ++i) total[i] += weight * p.out[i];
    }
    if (f_.plain_average) sum = 1;
    const double empty = f_.empty_split_counts && first != 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
    for (std::size_t i = 0; i < call_.v_dim; ++i) out[i] = static_cast<float>(total[i] / sum + empty);
  }

  const AttentionCall& call_;
  const Faults& f_;
  std::vector<double> sinks_;
};

Mutant<AttentionCall> planted(std::string_view name, std::string_view family, const Faults& faults) {
  return {
      .name = name, .family = family, .run = [faults](ReferenceOps& ops, const AttentionCall& call, double) {
        return FaultyAttention(call, faults).run(ops);
      }};
}

// Head h of the result is head from(call, h) of the right one.
Mutant<AttentionCall> heads_moved(std::string_view name,
                                  const std::function<std::size_t(const AttentionCall&, std::size_t)>& from) {
  return {.name = name,
          .family = "grouped queries (23)",
          .run = [from](ReferenceOps& ops, const AttentionCall& call, double) {
            const Matrix right = run_reference(ops, call);
            Matrix y = ops.allocate(right.rows(), right.columns());
            for (std::size_t r = 0; r < y.rows(); ++r) {
              for (std::size_t h = 0; h < call.heads; ++h)
                std::copy_n(right.row<float>(r) + from(call, h) * call.v_dim, call.v_dim,
                            y.row<float>(r) + h * call.v_dim);
            }
            return y;
          }};
}

}  // namespace

template <>
std::vector<Mutant<AttentionCall>> mutants_of() {
  std::vector<Mutant<AttentionCall>> all = {
      planted("the window one key too wide", "sliding window (9)", {.window_change = 1}),
      planted("the window one key too narrow", "sliding window (9)", {.window_change = -1}),
      planted("the window ignored", "sliding window (9)", {.no_window = true}),
      planted("each query sees the key after it", "causal mask", {.causal_change = 1}),
      planted("no query sees its own key", "causal mask", {.causal_change = -1}),
      planted("the mask aligned at the first key", "chunked prefill (10)", {.mask_at_top = true}),
      planted("sums not rescaled when the maximum grows", "online softmax (11)", {.lost_rescale = true}),
      planted("exponentials without the maximum", "online softmax (11)", {.no_maximum = true}),
      planted("splits averaged without their weights", "split KV (11)", {.plain_average = true}),
      planted("the last split dropped", "split KV (11)", {.last_split_dropped = true}),
      planted("an empty split divides zero by zero", "split KV (11)", {.empty_split_counts = true}),
      planted("the sink counted once a split", "attention sink (12)", {.sink_in_each_split = true}),
      planted("the sink dropped", "attention sink (12)", {.no_sink = true}),
      planted("the soft cap ignored", "soft cap", {.cap_after_scale_lost = true}),
      planted("key heads taken in turn", "grouped queries (23)", {.heads_in_turn = true}),
      planted("the first row of a page looked for in the page before", "paging edge (15)",
              {.page_edge = true}),
      planted("the page table ignored", "slot mapping (10)", {.pages_ignored = true}),
      planted("one key read behind the last", "padded rows (13)", {.one_key_more = true}),
      planted("every sequence sees the first one's keys", "cache mix-up (14, 16)", {.first_sequence = true}),
      planted("values one position off", "slot mapping (10)", {.value_shift = 1}),
      planted("scores not scaled", "softmax scale (7)", {.reciprocal_scale = true}),
  };
  all.push_back({.name = "the scale × (1 + size)",
                 .family = "softmax scale (7)",
                 .unit = "× 1 +",
                 .sizes = {0.1, 0x1p-6, 0x1p-8, 0x1p-10, 0x1p-12, 0x1p-14, 0x1p-16},
                 .run = [](ReferenceOps& ops, const AttentionCall& call, double size) {
                   return FaultyAttention(call, {.scale_factor = 1 + size}).run(ops);
                 }});
  all.push_back(
      heads_moved("heads of a key head beyond 64 wrap", [](const AttentionCall& call, std::size_t h) {
        const std::size_t group = call.heads / call.kv_heads;
        return h / group * group + h % group % 64;
      }));
  all.push_back(heads_moved("the last of 5 or 7 heads of a key head is its neighbour",
                            [](const AttentionCall& call, std::size_t h) {
                              const std::size_t group = call.heads / call.kv_heads;
                              return (group == 5 || group == 7) && h % group + 1 == group ? h - 1 : h;
                            }));
  all.push_back(
      {.name = "bfloat16 results not rounded",
       .family = "bfloat16",
       .takes = [](const Arithmetic& arithmetic, const AttentionCall&) { return arithmetic.bfloat16(); },
       .run =
           [](ReferenceOps& ops, const AttentionCall& call, double) {
             ReferenceOps wide(Arithmetic{Precision::f32}, ops.jobs());
             const Matrix right = run_reference(wide, call);
             Matrix y = ops.allocate(right.rows(), right.columns());
             for (std::size_t r = 0; r < y.rows(); ++r)
               std::copy_n(right.row<float>(r), y.columns(), y.row<float>(r));
             return y;
           }});
  all.push_back({.name = "results rounded on the way out",
                 .family = "silent BF16",
                 .unit = "mantissa bits",
                 .sizes = {7, 10, 13, 16},
                 .run = [](ReferenceOps& ops, const AttentionCall& call, double bits) {
                   Matrix y = FaultyAttention(call, {}).run(ops);
                   const double step = std::exp2(bits);
                   for (std::size_t r = 0; r < y.rows(); ++r) {
                     for (std::size_t c = 0; c < y.columns(); ++c) {
                       int exponent = 0;
                       const double fraction = std::frexp(y.row<float>(r)[c], &exponent);
                       y.row<float>(r)[c] = static_cast<float>(
                           std::ldexp(std::nearbyint(fraction * 2 * step) / (2 * step), exponent));
                     }
                   }
                   return y;
                 }});
  return all;
}

template <>
std::vector<Mutant<MlaCall>> mutants_of() {
  const auto add = [](std::string_view name, std::string_view family,
                      const std::function<void(ReferenceOps&, MlaCall&)>& change) {
    return Mutant<MlaCall>{
        .name = name, .family = family, .run = [change](ReferenceOps& ops, const MlaCall& call, double) {
          MlaCall wrong = call;
          change(ops, wrong);
          return run_reference(ops, wrong);
        }};
  };
  const auto without = [](ReferenceOps& ops, MlaCall& call, std::size_t first, std::size_t count) {
    const Matrix q = ops.allocate(call.q.rows(), call.q.columns());
    const std::size_t width = call.nope_dim + call.rope_dim;
    for (std::size_t r = 0; r < q.rows(); ++r) {
      for (std::size_t c = 0; c < q.columns(); ++c) {
        const std::size_t in_head = c % width;
        q.row<float>(r)[c] = in_head >= first && in_head < first + count ? 0 : call.q.row<float>(r)[c];
      }
    }
    call.q = q;
  };
  // The first head's W_k, or one number of it, of latents of at least so many numbers.
  const auto weights_off = [](std::string_view name, std::size_t least_rank, bool all) {
    return Mutant<MlaCall>{.name = name,
                           .family = "MLA (10)",
                           .run = [least_rank, all](ReferenceOps& ops, const MlaCall& call, double) {
                             const WeightView& view = call.k_b ? call.k_b : call.kv_b;
                             if (call.kv_rank < least_rank) return run_reference(ops, call);
                             std::vector<float> w(view.rows * view.columns);
                             decode_rows(view, 0, view.rows, w.data());
                             for (std::size_t i = 0; i < (all ? call.nope_dim * call.kv_rank : 1); ++i)
                               w[i] *= 1.01F;
                             const MadeWeight changed(std::move(w), view.rows, view.columns);
                             MlaCall wrong = call;
                             (call.k_b ? wrong.k_b : wrong.kv_b) = changed.view();
                             return run_reference(ops, wrong);
                           }};
  };
  return {
      weights_off("one number of W_k 1 % off", 0, false),
      weights_off("W_k of one head 1 % off, latents of 512", 512, true),
      add("scaled by the width of the latent", "softmax scale (7)",
          [](ReferenceOps&, MlaCall& c) {
            c.scale = 1 / std::sqrt(static_cast<double>(c.kv_rank + c.rope_dim));
          }),
      add("scaled by the unrotated part alone", "softmax scale (7)",
          [](ReferenceOps&, MlaCall& c) { c.scale = 1 / std::sqrt(static_cast<double>(c.nope_dim)); }),
      add("the scale applied twice", "YaRN mscale (7)",
          [](ReferenceOps&, MlaCall& c) { c.scale *= c.scale; }),
      add("the rotary part of queries left out", "MLA (10)",
          [without](ReferenceOps& ops, MlaCall& c) { without(ops, c, c.nope_dim, c.rope_dim); }),
      add("the unrotated part of queries left out", "MLA (10)",
          [without](ReferenceOps& ops, MlaCall& c) { without(ops, c, 0, c.nope_dim); }),
      add("the last cached token not seen", "chunked prefill (10)",
          [](ReferenceOps&, MlaCall& c) {
            SequenceMetadata& span = c.sequences[0];
            if (span.keys > span.queries) --span.keys;
          }),
  };
}

}  // namespace assay
