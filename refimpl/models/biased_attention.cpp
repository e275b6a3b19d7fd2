#include "refimpl/models/biased_attention.h"

#include <vector>

#include "refimpl/ops/softmax.h"
#include "refimpl/step/kv_cache.h"

namespace assay {
namespace {

// One sequence's queries, and the rows of keys and values that they may look at.
struct BiasedSpan {
  std::size_t first_row = 0;  // of the call's queries
  std::size_t begin = 0;      // position of the first query
  std::size_t first_key = 0;  // position of the first row
  std::vector<double> q, keys, values;
};

BiasedSpan span_of(const AttentionCall& call, const SequenceMetadata& of, Ops& ops) {
  BiasedSpan span;
  span.first_row = of.first, span.begin = of.keys - of.queries;
  if (call.window != 0 && span.begin + 1 > call.window) span.first_key = span.begin + 1 - call.window;
  const auto rows = [&](const PagedKvView& all) {
    const std::vector<std::int32_t> table = row_table(all, span.first_key, of.keys - span.first_key);
    return ops.download(ops.gather(all.base, std::vector<std::size_t>(table.begin(), table.end())));
  };
  span.keys = rows(of.key_rows), span.values = rows(of.value_rows);
  span.q = ops.download(call.q.row_range(of.first, of.queries));
  return span;
}

void attend(const AttentionCall& call, const BiasedSpan& span, std::size_t query, std::size_t head,
            const ScoreBias& bias, Ops& ops, std::vector<double>& out) {
  const std::size_t position = span.begin + query, key_head = head / (call.heads / call.kv_heads);
  const std::size_t first = call.window != 0 && position + 1 > call.window ? position + 1 - call.window : 0;
  const std::size_t skipped = first - span.first_key;
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  const double* q = &span.q[(query * call.heads + head) * call.qk_dim];
  std::vector<double> p(position + 1 - first);
  for (std::size_t k = 0; k < p.size(); ++k) {
    const double* key = &span.keys[((skipped + k) * call.kv_heads + key_head) * call.qk_dim];
    double product = 0;
    for (std::size_t i = 0; i < call.qk_dim; ++i) product += q[i] * key[i];
    p[k] = stage(stage(stage(product) * call.scale) + stage(bias(query, position, first + k)));
  }
  softmax_three_pass(p);
  double* sum = &out[((span.first_row + query) * call.heads + head) * call.v_dim];
  for (std::size_t k = 0; k < p.size(); ++k) {
    const double* value = &span.values[((skipped + k) * call.kv_heads + key_head) * call.v_dim];
    for (std::size_t i = 0; i < call.v_dim; ++i) sum[i] += stage(p[k]) * value[i];
  }
}

}  // namespace

Matrix attend_with_bias(const AttentionCall& call, const ScoreBiases& biases, Ops& ops) {
  std::vector<double> out(call.q.rows() * call.heads * call.v_dim);
  for (const SequenceMetadata& s : call.sequences) {
    const BiasedSpan span = span_of(call, s, ops);
    for (std::size_t head = 0; head < call.heads; ++head) {
      const ScoreBias bias = biases(s, head);
      for (std::size_t query = 0; query < s.queries; ++query) attend(call, span, query, head, bias, ops, out);
    }
  }
  return ops.upload(out, call.q.rows(), call.heads * call.v_dim);
}

}  // namespace assay
