#include "refimpl/models/relative_attention.h"

#include <algorithm>
#include <cmath>

#include "refimpl/ops/softmax.h"

namespace assay {

// One sequence's queries, and the rows of keys and values that they may look at.
struct RelativeAttention::Span {
  std::size_t first_row = 0;  // of the call's queries
  std::size_t begin = 0;      // position of the first query
  std::size_t first_key = 0;  // position of the first row
  std::vector<double> q, keys, values;
  std::vector<double> biases;  // of one head: [queries, extent]
};

RelativeAttention::RelativeAttention(const Weights& weights, std::size_t layer,
                                     const AttentionGeometry& geometry, const RelativeForm& form)
    : layer_(layer),
      windowed_(geometry.window != 0),
      form_(form),
      projection_(get_projection(weights, Role::attention_gate, layer)),
      profile_(weights.get({.role = Role::attention_gate, .layer = layer, .half = 1})) {
  profile_.input_major = true;
  const auto convolution = [&](int number) {
    const WeightKey key = {
        .role = Role::convolution, .part = Part::attention, .layer = layer, .half = number};
    return ResidualConvolution(weights, key, static_cast<std::size_t>(number));
  };
  keys_ = convolution(0), values_ = convolution(1);
}

double RelativeAttention::tau(std::size_t position) const {
  if (windowed_ || form_.floor == 0) return 1;
  return 1 + form_.alpha * std::log(std::max(1.0, (static_cast<double>(position) + 1) / form_.floor));
}

Matrix RelativeAttention::warmed(const Matrix& q, const Batch& batch, Ops& ops) const {
  if (windowed_ || form_.floor == 0) return q;
  std::vector<double> values = ops.download(q);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= tau(batch.positions[i / q.columns()]);
  return ops.upload(values, q.rows(), q.columns());
}

void RelativeAttention::attend(const AttentionCall& call, const Span& span, std::size_t query,
                               std::size_t head, Ops& ops, std::vector<double>& out) const {
  const std::size_t position = span.begin + query, key_head = head / (call.heads / call.kv_heads);
  const std::size_t first = call.window != 0 && position + 1 > call.window ? position + 1 - call.window : 0;
  const std::size_t extent = profile_.columns, skipped = first - span.first_key;
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  const double* q = &span.q[(query * call.heads + head) * call.qk_dim];
  const double* biases = &span.biases[query * extent];
  std::vector<double> p(position + 1 - first);
  for (std::size_t k = 0; k < p.size(); ++k) {
    const double* key = &span.keys[((skipped + k) * call.kv_heads + key_head) * call.qk_dim];
    const std::size_t distance = position - first - k;
    double product = 0;
    for (std::size_t i = 0; i < call.qk_dim; ++i) product += q[i] * key[i];
    const double bias = distance < extent ? stage(biases[distance] * tau(position)) : 0;
    p[k] = stage(stage(stage(product) * call.scale) + bias);
  }
  softmax_three_pass(p);
  double* sum = &out[((span.first_row + query) * call.heads + head) * call.v_dim];
  for (std::size_t k = 0; k < p.size(); ++k) {
    const double* value = &span.values[((skipped + k) * call.kv_heads + key_head) * call.v_dim];
    for (std::size_t i = 0; i < call.v_dim; ++i) sum[i] += stage(p[k]) * value[i];
  }
}

RelativeAttention::Span RelativeAttention::span_of(const AttentionCall& call, const SequenceMetadata& of,
                                                   Ops& ops) const {
  Span span;
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

Matrix RelativeAttention::operator()(const AttentionCall& call, const Matrix& relative, Ops& ops) const {
  std::vector<double> out(call.q.rows() * call.heads * call.v_dim);
  const std::size_t width = relative.columns() / call.heads;
  for (const SequenceMetadata& s : call.sequences) {
    Span span = span_of(call, s, ops);
    const Matrix own = relative.row_range(s.first, s.queries);
    for (std::size_t head = 0; head < call.heads; ++head) {
      span.biases = ops.download(ops.linear(own.part(head * width, width), profile_));
      for (std::size_t query = 0; query < s.queries; ++query) attend(call, span, query, head, ops, out);
    }
  }
  return ops.upload(out, call.q.rows(), call.heads * call.v_dim);
}

}  // namespace assay
