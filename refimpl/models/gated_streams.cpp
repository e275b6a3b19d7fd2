#include "refimpl/models/gated_streams.h"

#include <cmath>

#include "core/system/error.h"
#include "refimpl/ops/recurrence.h"

namespace assay {

GatedStreams GatedStreams::read(const Weights& weights, const std::string& name, std::size_t streams,
                                const NormRule& rule) {
  const auto get = [&](const std::string& tensor) {
    const WeightView view = weights.find_named(name + "." + tensor + ".weight");
    if (!view) throw Error::input("is missing").tensor(name + "." + tensor + ".weight");
    return view;
  };
  GatedStreams s;
  s.streams_ = streams;
  s.norm_ = Norm::of_row(get("hc_norm"), streams, rule);
  s.down_ = get("input_mix_weight_down");
  s.up_ = get("input_mix_weight_up");
  s.inject_ = weights.find_named(name + ".block_inject_weight.weight");
  return s;
}

GatedStreams::Reading GatedStreams::operator()(const Matrix& streams, Ops& ops) const {
  const double share = 1 / static_cast<double>(streams_);
  const Matrix n = norm_(streams, ops);  // [tokens, streams · width]
  const Matrix low = ops.activation(ops.multiply(ops.linear(n, down_), share), Activation::silu);
  const std::vector<double> gated = ops.download(ops.output_gate(n, ops.linear(low, up_)));
  const std::size_t width = n.columns() / streams_, tokens = n.rows();
  std::vector<double> mean(tokens * width);
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t i = 0; i < n.columns(); ++i)
      mean[t * width + i % width] += gated[t * n.columns() + i] * share;
  Reading reading = {ops.upload(mean, tokens, width), {}};
  if (!inject_) return reading;
  std::vector<double> shares = ops.download(ops.multiply(ops.linear(n, inject_), share));
  for (double& x : shares) x = 2 * logistic(x);
  reading.shares = ops.upload(shares, tokens, streams_);
  return reading;
}

Matrix GatedStreams::written(const Matrix& streams, const Matrix& y, const Matrix& shares, Ops& ops) {
  return ops.add(streams, ops.scale(in_each(y, shares.columns(), ops), shares));
}

Matrix GatedStreams::in_each(const Matrix& x, std::size_t streams, Ops& ops) {
  Matrix all = x;
  for (std::size_t i = 1; i < streams; ++i) all = ops.concatenate(all, x);
  return all;
}

}  // namespace assay
