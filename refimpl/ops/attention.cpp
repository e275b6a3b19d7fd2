// out[q] = Σₖ softmaxₖ(mask(cap(scale · q·k))) v[k]      (Vaswani et al. 2017)
//
// Query head h shares the keys and values of head h / (heads / kv_heads): MHA, GQA and MQA in one. The mask
// is causal and aligned at the end; a window lets a query see that many keys, itself included. A sink is one
// more score in the softmax that brings no value. A slope adds slope · k to the score of key k. Under bf16 every step is rounded where PyTorch's "eager"
// attention rounds: product, scale, each step of the cap, probabilities, output.
#include <fmt/format.h>

#include "core/system/threads.h"
#include "refimpl/ops/attention_mass.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/softmax.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

struct Head {
  const AttentionCall& call;
  const Arithmetic& arithmetic;
  const std::vector<double>& sinks;
  std::size_t number;
  std::size_t kv() const { return number / (call.heads / call.kv_heads); }
};

template <class T>
void attend(const Head& head, const SequenceMetadata& span, std::size_t query, T* out) {
  const AttentionCall& call = head.call;
  const std::size_t position = span.keys - span.queries + query;
  const std::size_t first = call.window != 0 && position + 1 > call.window ? position + 1 - call.window : 0;
  const T* q = call.q.row<T>(span.first + query) + head.number * call.qk_dim;

  std::vector<double> p;  // of keys first … position, then the sink
  const double slope = call.slopes.empty() ? 0 : call.slopes[head.number];
  for (std::size_t k = first; k <= position; ++k) {
    const T* key = span.key_rows.base.row<T>(span.key_rows.row(k)) + head.kv() * call.qk_dim;
    p.push_back(attention_score(call, head.arithmetic, dot(q, key, call.qk_dim), slope, k));
  }
  if (!head.sinks.empty()) p.push_back(head.sinks[head.number]);
  softmax_three_pass(p);

  std::vector<double> sum(call.v_dim);
  for (std::size_t k = first; k <= position; ++k) {
    const T* value = span.value_rows.base.row<T>(span.value_rows.row(k)) + head.kv() * call.v_dim;
    const double weight = head.arithmetic.stage(p[k - first]);
    for (std::size_t i = 0; i < call.v_dim; ++i) sum[i] += weight * static_cast<double>(value[i]);
  }
  for (std::size_t i = 0; i < call.v_dim; ++i) out[i] = static_cast<T>(head.arithmetic.round(sum[i]));
}

void check(const AttentionCall& call) {
  check_heads(call);
  if (!call.slopes.empty() && call.slopes.size() != call.heads)
    throw Error::internal(fmt::format("attention: {} slopes for {} heads", call.slopes.size(), call.heads));
  for (const SequenceMetadata& span : call.sequences) {
    if (span.queries > span.keys)
      throw Error::internal(fmt::format("attention: {} queries for {} keys", span.queries, span.keys));
  }
}

}  // namespace

Matrix ReferenceOps::run(const AttentionCall& call) {
  check(call);
  Matrix out = allocate(call.q.rows(), call.heads * call.v_dim);  // [tokens, heads · v_dim]
  const std::vector<double> sinks = vector_of(call.sinks, arithmetic());
  with_elements(out.real(), [&](auto element) {
    using T = decltype(element);
    for (const SequenceMetadata& span : call.sequences) {
      parallel_for(jobs(), span.queries * call.heads, [&](std::size_t i) {
        const std::size_t query = i / call.heads, h = i % call.heads;
        attend<T>({call, arithmetic(), sinks, h}, span, query,
                  out.row<T>(span.first + query) + h * call.v_dim);
      });
    }
  });
  return out;
}

}  // namespace assay
