#include "kernels/plugin/calls.h"

namespace assay {
namespace {

Matrix shaped(Ops* ops, std::size_t rows, std::size_t columns) {
  return ops == nullptr ? Matrix({}, Real::f32, rows, columns) : ops->allocate(rows, columns);
}
Matrix like(Ops* ops, const Matrix& x) {
  return shaped(ops, x.rows(), x.columns());
}

std::int32_t abi_kind(Activation kind) {
  switch (kind) {
    case Activation::silu: return ASSAY_SILU;
    case Activation::gelu: return ASSAY_GELU;
    case Activation::gelu_tanh: return ASSAY_GELU_TANH;
    case Activation::relu: return ASSAY_RELU;
    default: break;  // gpt_oss; those behind it are never asked for (adapt.cpp)
  }
  return ASSAY_GPT_OSS;
}

// A struct with its size written in it, all else zero.
template <class Struct>
Struct sized() {
  Struct a = {};
  a.size = sizeof a;
  return a;
}

std::size_t blocks(std::size_t total, std::size_t block) {
  return block == 0 ? (total == 0 ? 0 : 1) : (total + block - 1) / block;
}

}  // namespace

// --- linear

template <>
Matrix result_of(Ops* ops, const LinearCall& call) {
  return shaped(ops, call.x.rows(), call.weight.outputs());
}
template <>
assay_linear described(MarshalledCall& marshalled, const LinearCall& call, Matrix& y) {
  auto a = sized<assay_linear>();
  const bool keep = call.rounding == ResultRounding::float32;
  a.keep_float32 = keep ? 1 : 0;
  a.x = marshalled.input(call.x);
  a.weight = marshalled.weight(call.weight);
  a.bias = marshalled.weight(call.bias);
  a.y = keep ? marshalled.float_output(y) : marshalled.output(y);
  return a;
}

// --- norms

template <>
Matrix result_of(Ops* ops, const RmsNormCall& call) {
  return like(ops, call.x);
}
template <>
assay_rms_norm described(MarshalledCall& marshalled, const RmsNormCall& call, Matrix& y) {
  auto a = sized<assay_rms_norm>();
  a.form = call.form == NormForm::weight_last     ? ASSAY_NORM_WEIGHT_LAST
           : call.form == NormForm::weight_inside ? ASSAY_NORM_WEIGHT_INSIDE
                                                  : ASSAY_NORM_ONE_PLUS_WEIGHT;
  a.x = marshalled.input(call.x);
  a.weight = marshalled.weight(call.weight);
  a.epsilon = call.epsilon;
  a.y = marshalled.output(y);
  return a;
}

template <>
Matrix result_of(Ops* ops, const LayerNormCall& call) {
  return like(ops, call.x);
}
template <>
assay_layer_norm described(MarshalledCall& marshalled, const LayerNormCall& call, Matrix& y) {
  auto a = sized<assay_layer_norm>();
  a.x = marshalled.input(call.x);
  a.weight = marshalled.weight(call.weight);
  a.bias = marshalled.weight(call.bias);
  a.epsilon = call.epsilon;
  a.y = marshalled.output(y);
  return a;
}

// --- rope: in place

template <>
Matrix result_of(Ops*, const RotaryCall& call) {
  return call.x;
}
template <>
assay_rope described(MarshalledCall& marshalled, const RotaryCall& call, Matrix& x) {
  auto a = sized<assay_rope>();
  a.interleaved = call.angles.layout == RopeLayout::interleaved ? 1 : 0;
  a.x = marshalled.changed(x);
  a.heads = call.angles.heads;
  a.head_dim = call.angles.head_dim;
  a.offset = call.angles.offset;
  a.cos = marshalled.input(call.angles.cos);
  a.sin = marshalled.input(call.angles.sin);
  return a;
}

// --- attention

template <>
Matrix result_of(Ops* ops, const AttentionCall& call) {
  return shaped(ops, call.q.rows(), call.heads * call.v_dim);
}
template <>
assay_attention described(MarshalledCall& marshalled, const AttentionCall& call, Matrix& y) {
  auto a = sized<assay_attention>();
  a.q = marshalled.input(call.q);
  a.sequences = marshalled.sequences(call.sequences);
  a.sequence_count = call.sequences.size();
  a.heads = call.heads;
  a.kv_heads = call.kv_heads;
  a.qk_dim = call.qk_dim;
  a.v_dim = call.v_dim;
  a.scale = call.scale;
  a.window = call.window;
  a.soft_cap = call.soft_cap;
  a.sinks = marshalled.weight(call.sinks);
  a.y = marshalled.output(y);
  return a;
}

template <>
Matrix result_of(Ops* ops, const MlaCall& call) {
  return shaped(ops, call.q.rows(), call.heads * call.v_dim);
}
template <>
assay_mla described(MarshalledCall& marshalled, const MlaCall& call, Matrix& y) {
  auto a = sized<assay_mla>();
  a.absorbed = call.form == MlaForm::absorbed ? 1 : 0;
  a.q = marshalled.input(call.q);
  a.sequences = marshalled.sequences(call.sequences);
  a.sequence_count = call.sequences.size();
  a.kv_b = marshalled.weight(call.kv_b);
  a.k_b = marshalled.weight(call.k_b);
  a.v_b = marshalled.weight(call.v_b);
  a.heads = call.heads;
  a.kv_rank = call.kv_rank;
  a.nope_dim = call.nope_dim;
  a.rope_dim = call.rope_dim;
  a.v_dim = call.v_dim;
  a.scale = call.scale;
  a.y = marshalled.output(y);
  return a;
}

// --- element by element, row by row

template <>
Matrix result_of(Ops* ops, const ActivationCall& call) {
  return like(ops, call.x);
}
template <>
assay_activation described(MarshalledCall& marshalled, const ActivationCall& call, Matrix& y) {
  auto a = sized<assay_activation>();
  a.kind = abi_kind(call.kind);
  a.x = marshalled.input(call.x);
  a.y = marshalled.output(y);
  return a;
}

template <>
Matrix result_of(Ops* ops, const GatedActivationCall& call) {
  return like(ops, call.gate);
}
template <>
assay_gated_activation described(MarshalledCall& marshalled, const GatedActivationCall& call, Matrix& y) {
  auto a = sized<assay_gated_activation>();
  a.kind = abi_kind(call.form.activation);
  a.limit = call.form.limit;
  a.gate = marshalled.input(call.gate);
  a.up = marshalled.input(call.up);
  a.y = marshalled.output(y);
  return a;
}

template <>
Matrix result_of(Ops* ops, const SoftmaxCall& call) {
  return like(ops, call.x);
}
template <>
assay_softmax described(MarshalledCall& marshalled, const SoftmaxCall& call, Matrix& y) {
  auto a = sized<assay_softmax>();
  a.x = marshalled.input(call.x);
  a.y = marshalled.output(y);
  return a;
}

// --- mixtures of experts

template <>
Routing result_of(Ops* ops, const MoeGateCall& call) {
  return {call.rule.top_k, std::vector<std::int32_t>(call.logits.rows() * call.rule.top_k),
          shaped(ops, call.logits.rows(), call.rule.top_k)};
}
template <>
assay_moe_gate described(MarshalledCall& marshalled, const MoeGateCall& call, Routing& routing) {
  auto a = sized<assay_moe_gate>();
  const GateRule& rule = call.rule;
  a.score = rule.score == GateRule::Score::softmax ? ASSAY_SCORE_SOFTMAX : ASSAY_SCORE_SIGMOID;
  a.logits = marshalled.float_input(call.logits);
  a.correction = marshalled.weight(call.correction);
  a.top_k_first = rule.top_k_first ? 1 : 0;
  a.renormalize = rule.renormalize ? 1 : 0;
  a.epsilon = rule.epsilon;
  a.scale = rule.scale;
  a.top_k = rule.top_k;
  a.groups = rule.groups;
  a.chosen_groups = rule.chosen_groups;
  a.group_score =
      rule.group_score == GateRule::GroupScore::largest ? ASSAY_GROUP_LARGEST : ASSAY_GROUP_SUM_OF_TWO;
  a.round_weights = rule.rounding == ResultRounding::as_arithmetic ? 1 : 0;
  a.masked_is_zero = rule.masked_is_zero ? 1 : 0;
  a.experts = marshalled.result_array(std::span(routing.experts));
  a.weights = marshalled.float_output(routing.weights);
  return a;
}

template <>
Matrix result_of(Ops* ops, const FusedMoeCall& call) {
  return like(ops, call.x);
}
template <>
assay_fused_moe described(MarshalledCall& marshalled, const FusedMoeCall& call, Matrix& y) {
  auto a = sized<assay_fused_moe>();
  const ExpertWeights& e = call.experts;
  a.form = call.form == MoeForm::sparse  ? ASSAY_MOE_SPARSE
           : call.form == MoeForm::dense ? ASSAY_MOE_DENSE
                                         : ASSAY_MOE_SOFT;
  a.x = marshalled.input(call.x);
  a.top_k = call.routing.top_k;
  a.experts = e.down.size();
  a.chosen = marshalled.array(std::span<const std::int32_t>(call.routing.experts));
  a.weights = marshalled.float_input(call.routing.weights);
  a.gate = marshalled.weights(e.gate);
  a.up = marshalled.weights(e.up);
  a.gate_up = marshalled.weights(e.gate_up);
  a.down = marshalled.weights(e.down);
  a.gate_bias = marshalled.weights(e.gate_bias);
  a.up_bias = marshalled.weights(e.up_bias);
  a.gate_up_bias = marshalled.weights(e.gate_up_bias);
  a.down_bias = marshalled.weights(e.down_bias);
  a.interleaved = e.interleaved ? 1 : 0;
  a.kind = abi_kind(e.form.activation);
  a.limit = e.form.limit;
  a.y = marshalled.output(y);
  return a;
}

// --- quantized activations

template <>
QuantizedMatrix result_of(Ops*, const QuantizeCall& call) {
  const std::size_t rows = call.x.rows(), columns = call.x.columns();
  return {call.rule, rows, columns, std::vector<std::byte>(rows * columns),
          std::vector<float>(blocks(rows, call.rule.block_rows) * blocks(columns, call.rule.block_columns))};
}
template <>
assay_quantize described(MarshalledCall& marshalled, const QuantizeCall& call, QuantizedMatrix& result) {
  auto a = sized<assay_quantize>();
  a.type = abi_type(call.rule.codes).value_or(0);
  a.x = marshalled.input(call.x);
  a.block_rows = call.rule.block_rows;
  a.block_columns = call.rule.block_columns;
  a.power_of_two = call.rule.power_of_two ? 1 : 0;
  a.codes = marshalled.result_array(std::span(result.codes));
  a.scales = marshalled.result_array(std::span(result.scales));
  return a;
}

template <>
Matrix result_of(Ops* ops, const DequantizeCall& call) {
  return shaped(ops, call.x.rows, call.x.columns);
}
template <>
assay_dequantize described(MarshalledCall& marshalled, const DequantizeCall& call, Matrix& y) {
  auto a = sized<assay_dequantize>();
  a.type = abi_type(call.x.rule.codes).value_or(0);
  a.rows = call.x.rows;
  a.columns = call.x.columns;
  a.block_rows = call.x.rule.block_rows;
  a.block_columns = call.x.rule.block_columns;
  a.codes = marshalled.array(std::span<const std::byte>(call.x.codes));
  a.scales = marshalled.array(std::span<const float>(call.x.scales));
  a.y = marshalled.output(y);
  return a;
}

// --- embedding

template <>
Matrix result_of(Ops* ops, const EmbeddingCall& call) {
  return shaped(ops, call.tokens.size(), call.table.columns);
}
template <>
assay_embedding described(MarshalledCall& marshalled, const EmbeddingCall& call, Matrix& y) {
  auto a = sized<assay_embedding>();
  a.tokens = marshalled.array(std::span<const TokenId>(call.tokens));
  a.token_count = call.tokens.size();
  a.table = marshalled.weight(call.table);
  a.y = marshalled.output(y);
  return a;
}

}  // namespace assay
