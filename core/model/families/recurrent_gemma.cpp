// RecurrentGemma (Griffin, arXiv 2402.19427): gated linear recurrences in two layers of three, attention with a window in
// the third.
#include "core/model/families/all_2026.h"
#include "core/model/families/forward_2026.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// out(conv(x) through the recurrence · gelu(y)); the recurrence forgets by two gates, each a small matrix a head.
Module griffin_block(const Quantity& hidden, const Quantity& width, const Quantity& heads,
                     const Quantity& block, const Quantity& kernel) {
  Module module{"temporal_block", "gated linear recurrence", {}, {}, {}};
  for (const auto& [name, role] :
       {std::pair{"linear_y", Role::recurrent_gate}, {"linear_x", Role::recurrent_in}})
    add_linear(module, {.name = name,
                        .in = hidden,
                        .out = width,
                        .role = role,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = heads.value(),
                        .bias = true});
  const auto add = [&](const std::string& name, const std::vector<Quantity>& shape, Role role, bool bias) {
    module.tensors.push_back(parameter(name, shape, role, Part::attention));
    module.tensors.back().bias = bias;
  };
  add("conv_1d.weight", {width, 1, kernel}, Role::convolution, false);
  add("conv_1d.bias", {width}, Role::convolution, true);
  add("rg_lru.recurrent_param", {width}, Role::decay, false);
  for (const auto& [name, role] :
       {std::pair{"input_gate", Role::recurrent_beta}, {"recurrent_gate", Role::recurrent_decay}}) {
    add(std::string("rg_lru.") + name + "_weight", {heads, block, block}, role, false);
    module.tensors.back().input_major = true;
    add(std::string("rg_lru.") + name + "_bias", {heads, block}, role, true);
  }
  add_linear(module, {.name = "linear_out",
                      .in = width,
                      .out = hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = heads.value(),
                      .bias = true});
  return module;
}

void describe_recurrent_gemma(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 256000, .hidden = 2560, .intermediate = 7680, .layers = 26, .heads = 10, .tied = true});
  d.head_dim = Quantity("hidden_size / num_attention_heads", d.hidden.value() / d.heads.value());
  HeadAttention a = d.attention();
  a.qkv_bias = config.flag("attention_bias", false);
  a.output_bias = true;
  a.path = "temporal_block";
  const Quantity width = config.size("lru_width", d.hidden),
                 block = config.quotient(width, d.heads, "block width"),
                 kernel = config.size("conv1d_width", 4);
  // Half of what the config says.
  GatedMlp mlp{d.hidden, Quantity("intermediate_size / 2", d.intermediate.value() / 2), "mlp_block"};
  mlp.bias = true;
  config.require(mlp.intermediate.value() > 0, "intermediate_size is 1, and the MLP half as wide");
  const auto pattern = config.texts("block_types|_block_types")
                           .value_or(std::vector<std::string>{"recurrent", "recurrent", "attention"});
  config.require(!pattern.empty(), "block_types is empty");
  const auto attends = [&](std::uint64_t i) { return pattern[i % pattern.size()] == "attention"; };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return attends(i) ? "attention layers" : "recurrent layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "temporal_pre_norm", d.hidden, Role::input_norm);
        add_norm(layer, "channel_pre_norm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {attends(i) ? attention(a) : griffin_block(d.hidden, width, d.heads, block, kernel),
                          gated_mlp(mlp)};
      });
  Frame frame;
  frame.final_norm = "model.final_norm";
  add_frame(tree, d, groups, frame);
  const std::uint64_t window = config.number("attention_window_size|sliding_window", 2048);
  const auto full = layers_where(d.layers, attends);
  const auto recurrent = layers_where(d.layers, [&](std::uint64_t i) { return !attends(i); });
  if (!full.empty()) tree.attention.push_back(geometry(a, full, window));
  if (recurrent.empty()) return;
  tree.recurrent.push_back({.title = "gated linear recurrence",
                            .layers = recurrent,
                            .heads = d.heads.value(),
                            .conv_values = (width * Quantity(kernel.value() - 1)).value(),
                            .state_values = width.value()});
}

constexpr std::string_view kGriffinArchitectures[] = {"RecurrentGemmaForCausalLM"},
                           kGriffinTypes[] = {"recurrent_gemma"};

}  // namespace

const Family kRecurrentGemma = {
    "recurrent_gemma",        "RecurrentGemma",       kGriffinArchitectures, kGriffinTypes, {},
    describe_recurrent_gemma, forward_recurrent_gemma};

}  // namespace assay::families
