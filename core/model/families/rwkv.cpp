// RWKV-4 (arXiv 2305.13048) and xLSTM (arXiv 2405.04517): no layer attends.
#include <cmath>

#include "core/model/families/all_2026.h"
#include "core/model/families/own_layers_forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Project {
  const char* name;
  Quantity in, out;
  Role role;
  Part part;
  bool back = false, bias = false;  // back: into the width of the model
  std::uint64_t units = 0;
};
void add_projection(Module& module, const Project& p) {
  add_linear(module, {.name = p.name,
                      .in = p.in,
                      .out = p.out,
                      .role = p.role,
                      .part = p.part,
                      .partition = p.back ? Partition::rows : Partition::columns,
                      .units = p.units,
                      .bias = p.bias});
}

// Each of its inputs is mixed with that of the token before.
Module rwkv_attention(const Quantity& hidden, const Quantity& width) {
  Module module{"attention", "time mixing", {}, {}, {}};
  for (const char* name : {"time_decay", "time_first"})
    module.tensors.push_back(parameter(name, {width}, Role::decay, Part::attention));
  for (const char* name : {"time_mix_key", "time_mix_value", "time_mix_receptance"})
    module.tensors.push_back(parameter(name, {1, 1, hidden}, Role::residual_mix, Part::attention));
  add_projection(module, {"key", hidden, width, Role::k, Part::attention});
  add_projection(module, {"value", hidden, width, Role::v, Part::attention});
  add_projection(module, {"receptance", hidden, width, Role::recurrent_gate, Part::attention});
  add_projection(module, {"output", width, hidden, Role::recurrent_out, Part::attention, true});
  return module;
}
Module rwkv_mlp(const Quantity& hidden, const Quantity& width) {
  Module module{"feed_forward", "channel mixing", {}, {}, {}};
  for (const char* name : {"time_mix_key", "time_mix_receptance"})
    module.tensors.push_back(parameter(name, {1, 1, hidden}, Role::residual_mix, Part::dense_mlp));
  add_projection(module, {"key", hidden, width, Role::mlp_up, Part::dense_mlp});
  add_linear(module, {.name = "receptance",
                      .in = hidden,
                      .out = hidden,
                      .role = Role::recurrent_gate,
                      .part = Part::dense_mlp});
  add_projection(module, {"value", width, hidden, Role::mlp_down, Part::dense_mlp, true});
  return module;
}

void describe_rwkv(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 50277);
  d.hidden = config.size("hidden_size", 4096);
  d.layers = read_layers(config, "num_hidden_layers", 32);
  d.tied = config.tied_embeddings(false);
  note_sizes(tree, d);
  const Quantity width = config.size("attention_hidden_size", d.hidden);
  const Quantity inner = config.size("intermediate_size", Quantity("4 × hidden_size", 4 * d.hidden.value()));
  const auto groups = group_layers(
      "rwkv.blocks.{layer}", d.layers, [](std::uint64_t i) { return i == 0 ? "first layer" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        if (i == 0) add_norm(layer, "pre_ln", d.hidden, Role::embedding_norm, true);
        add_norm(layer, "ln1", d.hidden, Role::input_norm, true);
        add_norm(layer, "ln2", d.hidden, Role::pre_feedforward_norm, true);
        layer.children = {rwkv_attention(d.hidden, width), rwkv_mlp(d.hidden, inner)};
      });
  add_frame(tree, d, groups,
            {.embedding = "rwkv.embeddings", .final_norm = "rwkv.ln_out", .head = "head", .norm_bias = true});
  // The last input of each block; numerator, denominator and greatest exponent of each channel.
  tree.recurrent.push_back({.title = "RWKV-4",
                            .layers = all_layers(d.layers),
                            .heads = width.value(),
                            .conv_values = 2 * d.hidden.value(),
                            .state_values = 3 * width.value()});
}

double scaled_width(ConfigReader& config, const Quantity& width, std::string_view key, double factor) {
  const double exact = static_cast<double>(width.value()) * config.real(key, factor, 0, 1e6);
  config.require(exact >= 1 && exact < 4e9, std::string(key) + " makes an absurd width");
  return exact;
}
Quantity lstm_width(ConfigReader& config, const Quantity& width, std::string_view key, double factor) {
  return {std::string(key) + " × hidden_size",
          static_cast<std::uint64_t>(scaled_width(config, width, key, factor))};
}
// Up to a whole multiple of ffn_round_up_to_multiple_of (modeling_xlstm.py).
Quantity mlp_width(ConfigReader& config, const Quantity& width) {
  const auto step = static_cast<double>(config.size("ffn_round_up_to_multiple_of", 64).value());
  const double exact = scaled_width(config, width, "ffn_proj_factor", 2.667);
  return {"ffn_proj_factor × hidden_size",
          static_cast<std::uint64_t>(std::floor((exact + step - 1) / step) * step)};
}

struct MatrixLstm {
  Quantity hidden, heads, keys, values, inner;
  bool fused, bias;
};

Module matrix_lstm(const MatrixLstm& m) {
  Module module{"mlstm_layer", "matrix LSTM", {}, {}, {}};
  const std::uint64_t h = m.heads.value(), k = m.keys.value(), v = m.values.value();
  const auto into = [&](const char* name, const Quantity& out, Role role, bool bias) {
    add_projection(module, {name, m.hidden, out, role, Part::attention, false, bias, h});
  };
  if (m.fused) {
    add_linear(module,
               {.name = "qkv_opreact",
                .in = m.hidden,
                .out = Quantity(2) * m.keys + Quantity(2) * m.values,
                .role = Role::recurrent_in,
                .part = Part::attention,
                .partition = Partition::columns,
                .members = {{Role::q, k, h}, {Role::k, k, h}, {Role::v, v, h}, {Role::recurrent_gate, v, h}},
                .bias = m.bias});
    add_linear(module, {.name = "ifgate_preact",
                        .in = m.hidden,
                        .out = Quantity(2) * m.heads,
                        .role = Role::recurrent_decay,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .members = {{Role::recurrent_beta, h, h}, {Role::recurrent_decay, h, h}},
                        .bias = true});
  } else {
    into("q", m.keys, Role::q, m.bias);
    into("k", m.keys, Role::k, m.bias);
    into("v", m.values, Role::v, m.bias);
    into("ogate_preact", m.values, Role::recurrent_gate, m.bias);
    into("igate_preact", m.heads, Role::recurrent_beta, true);
    into("fgate_preact", m.heads, Role::recurrent_decay, true);
  }
  add_norm(module, "multihead_norm", m.values, Role::recurrent_norm, m.bias, Part::attention);
  add_projection(module,
                 {"out_proj", m.values, m.hidden, Role::recurrent_out, Part::attention, true, m.bias, h});
  return module;
}

void describe_xlstm(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 50304);
  d.hidden = config.size("hidden_size|embedding_dim", 4096);
  d.layers = read_layers(config, "num_hidden_layers|num_blocks", 32);
  d.heads = config.size("num_heads", 8);
  d.tied = false;  // whatever a config says
  note_sizes(tree, d);
  const MatrixLstm m{d.hidden,
                     d.heads,
                     lstm_width(config, d.hidden, "qk_dim_factor", 0.5),
                     lstm_width(config, d.hidden, "v_dim_factor", 1),
                     mlp_width(config, d.hidden),
                     config.text("weight_mode", "single") == "fused",
                     config.flag("use_bias", false)};
  config.require_divides(m.heads, m.keys);
  config.require_divides(m.heads, m.values);
  GatedMlp mlp{d.hidden, m.inner, "ffn"};
  mlp.bias = m.bias;
  mlp.gate = "proj_up_gate", mlp.up = "proj_up", mlp.down = "proj_down";
  if (m.fused) mlp.fused = "proj_up_gate_z";
  Module layer = layers("backbone.blocks.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "norm_mlstm", d.hidden, Role::input_norm, m.bias);
  add_norm(layer, "norm_ffn", d.hidden, Role::pre_feedforward_norm, m.bias);
  layer.children = {matrix_lstm(m), gated_mlp(mlp)};
  add_frame(tree, d, {layer},
            {.embedding = "backbone.embeddings", .final_norm = "backbone.out_norm", .head = "lm_head"});
  // A matrix, a vector and a number a head.
  const std::uint64_t keys = m.keys.value(), values = m.values.value(), heads = d.heads.value();
  tree.recurrent.push_back({.title = "matrix LSTM",
                            .layers = all_layers(d.layers),
                            .heads = heads,
                            .state_values = keys * (values / heads) + keys + heads});
}

constexpr std::string_view kRwkvArchitectures[] = {"RwkvForCausalLM"}, kRwkvTypes[] = {"rwkv"};
constexpr std::string_view kXlstmArchitectures[] = {"xLSTMForCausalLM"}, kXlstmTypes[] = {"xlstm"};

}  // namespace

const Family kRwkv = {"rwkv", "RWKV-4", kRwkvArchitectures, kRwkvTypes, {}, describe_rwkv, forward_rwkv};
const Family kXlstm = {"xlstm", "xLSTM", kXlstmArchitectures, kXlstmTypes, {}, describe_xlstm, forward_xlstm};

}  // namespace assay::families
