#include "refimpl/models/relative_attention.h"

#include <algorithm>
#include <cmath>

#include "refimpl/models/biased_attention.h"

namespace assay {

RelativeAttention::RelativeAttention(const Weights& weights, std::size_t layer,
                                     const AttentionGeometry& geometry, const RelativeForm& form)
    : layer_(layer),
      windowed_(geometry.window != 0),
      form_(form),
      projection_(get_projection(weights, Role::attention_gate, layer)),
      profile_(weights.get({.role = Role::attention_gate, .layer = layer, .half = 1})) {
  profile_.input_major = true;
  if (layer >= weights.tree().layers)
    form_.floor = 0;  // layers of prediction: vLLM 0.32's mtp.py gives them no τ
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

Matrix RelativeAttention::operator()(const AttentionCall& call, const Matrix& relative, Ops& ops) const {
  const std::size_t width = relative.columns() / call.heads, extent = profile_.columns;
  const auto of_head = [&](const SequenceMetadata& s, std::size_t head) -> ScoreBias {
    const Matrix own = relative.row_range(s.first, s.queries).part(head * width, width);
    return [this, extent, biases = ops.download(ops.linear(own, profile_))](
               std::size_t query, std::size_t position, std::size_t key) {
      const std::size_t distance = position - key;
      return distance < extent ? biases[query * extent + distance] * tau(position) : 0;
    };
  };
  return attend_with_bias(call, of_head, ops);
}

}  // namespace assay
