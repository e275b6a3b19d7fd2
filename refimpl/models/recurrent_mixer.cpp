#include "refimpl/models/recurrent_mixer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay {

std::unique_ptr<RecurrentMixer> read_recurrent_mixer(const Weights& weights, std::size_t layer,
                                                     const RecurrentForm& form) {
  const auto has = [&](Role role) { return static_cast<bool>(weights.find({.role = role, .layer = layer})); };
  if (!has(Role::recurrent_out)) return nullptr;
  if (!has(Role::decay) && has(Role::recurrent_decay) && !has(Role::convolution))
    return read_matrix_lstm(weights, layer, form);
  if (!has(Role::decay) && !has(Role::convolution))
    return form.heads_in_turn ? read_minimax_attention(weights, layer, form)
                              : read_lightning_attention(weights, layer, form);
  if (!has(Role::decay)) return read_short_convolution(weights, layer);
  if (!has(Role::time_bias) && !has(Role::skip)) return read_linear_recurrence(weights, layer, form);
  if (!has(Role::recurrent_in)) return read_delta_net_apart(weights, layer, form);
  if (!has(Role::skip)) return read_gated_delta_net(weights, layer, form);
  return has(Role::recurrent_decay) ? read_mamba1(weights, layer, form) : read_mamba2(weights, layer, form);
}

BiasedWeight BiasedWeight::get(const Weights& weights, const WeightKey& key) {
  WeightKey bias = key;
  bias.bias = true;
  return {weights.get(key), weights.find(bias)};
}

CausalConvolution CausalConvolution::get(const Weights& weights, std::size_t layer, int number) {
  CausalConvolution c;
  c.weight = weights.get({.role = Role::convolution, .layer = layer, .half = number});
  c.bias = weights.find({.role = Role::convolution, .layer = layer, .bias = true, .half = number});
  c.channels = c.weight.rows;
  c.kernel = c.weight.columns;
  require_shape(c.kernel > 0 && c.channels > 0, c.weight);
  return c;
}

Matrix CausalConvolution::operator()(const Matrix& x, std::size_t layer, std::size_t part, bool silu,
                                     const Batch& batch, Ops& ops) const {
  return ops.run(ConvolutionCall{x, weight, bias, silu, states_of(batch, layer, part)});
}

Matrix CausalConvolution::activated(const Matrix& x, std::size_t layer, std::size_t part,
                                    Activation activation, const Batch& batch, Ops& ops) const {
  const bool silu = activation == Activation::silu;
  const Matrix y = (*this)(x, layer, part, silu, batch, ops);
  return silu ? y : ops.activation(y, activation);
}

void require_all_heads(const Weights& weights, std::size_t layer) {
  if (key_heads_of(weights.tree(), layer) != key_heads_of(weights.whole_tree(), layer))
    throw Error::input(fmt::format("layer {} cannot be cut over ranks", layer)).in(weights.config().source());
}

std::size_t key_heads_of(const ModuleTree& tree, std::size_t layer) {
  for (const RecurrentGeometry& geometry : tree.recurrent) {
    if (std::find(geometry.layers.begin(), geometry.layers.end(), layer) != geometry.layers.end())
      return geometry.heads;
  }
  return 0;
}

Matrix LightningScan::run(Ops& ops) const {
  const std::size_t heads = decay_log.columns, width = v.columns() / heads;
  return ops.run(StateSpaceCall{.x = v,
                                .b = k,
                                .c = q,
                                .step = ops.upload(std::vector<double>(v.rows() * heads), v.rows(), heads),
                                .decay_log = decay_log,
                                .skip = nothing,
                                .step_bias = nothing,
                                .least_step = 1,
                                .most_step = 1,
                                .heads = heads,
                                .head_dim = width,
                                .groups = heads,
                                .state = width,
                                .form = form,
                                .rounding = rounding,
                                .sequences = states});
}

std::vector<SequenceState> states_of(const Batch& batch, std::size_t layer, std::size_t part) {
  std::vector<SequenceState> states;
  for (const Batch::Sequence& s : batch.sequences)
    states.push_back(s.cache->state(layer, part, s.first, s.count));
  return states;
}

void require_shape(bool holds, const WeightView& weight) {
  if (!holds) throw Error::input("its shape does not fit the layer's others").tensor(*weight.name);
}

}  // namespace assay
