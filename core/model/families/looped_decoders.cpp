// Llamas whose layers a token passes several times, each pass with a cache of its own: Nanbeige 4.2, IQuest-Coder Loop, Ouro;
// and Huginn.
// Weights are stored once; what is computed is told of one pass, as hrm_text tells it.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/all_hub.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/own_code_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

// How often a token passes the layers: each has the caches of all its passes, those behind the first of `window` tokens
// (0: all).
void add_passes(ConfigReader& config, ModuleTree& tree, const Decoder& d, const Quantity& passes,
                std::uint64_t window) {
  config.require(passes.value() <= 100,
                 fmt::format("{} is {}: no model passes its layers so often", passes.name(), passes.value()));
  if (passes.value() == 1) return;
  for (std::uint64_t pass = 1; pass < passes.value(); ++pass)
    tree.attention.push_back(geometry(d.attention(), all_layers(d.layers), window));
  tree.not_counted.push_back(
      {fmt::format("passes behind the first: a token passes the layers {} times, and what "
                   "is computed is told of one",
                   passes.value()),
       0});
}

// Nanbeige's class has much that its published models leave off: n-gram embeddings, hyper-connections, attention
// across depth, loops over a part of the layers.
void refuse_options_of_nanbeige(ConfigReader& config) {
  const auto refuse = [&](bool set, const char* key) {
    config.require(!set, fmt::format("{} is set: Nanbeige has been described without", key));
  };
  for (const char* key : {"enable_hyper_connection", "enable_depth_attention", "enable_double_loop_split",
                          "loop_share_kv", "ngram_insert_all_layers", "qk_layernorm"})
    refuse(config.flag(key, false), key);
  for (const char* key : {"emb_neighbor_num", "emb_split_num", "loop_middle_layers"})
    refuse(config.optional_number(key).has_value(), key);
  const auto losses = config.numbers("loop_loss_weights");  // one fewer than loops, whatever num_loops says
  refuse(losses && !losses->empty(), "loop_loss_weights");
}

void describe_nanbeige(ConfigReader& config, ModuleTree& tree) {
  refuse_options_of_nanbeige(config);
  const LlamaKin kin = {
      .sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
      .mlp_bias_keys = "mlp_bias"};
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  add_passes(config, tree, d, config.size("num_loops", 1), 0);
}

// From the second pass on, a gate a head mixes attention to the first pass's keys with a window over its own.
void describe_iquestloopcoder(ConfigReader& config, ModuleTree& tree) {
  const LlamaKin kin = {.sizes = {.vocabulary = 76800,
                                  .hidden = 5120,
                                  .intermediate = 27648,
                                  .layers = 80,
                                  .heads = 40,
                                  .kv_heads = 8,
                                  .head_dim = 128},
                        .mlp_bias_keys = "mlp_bias"};
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  Module gates = layers("model.gate_projections.{layer}", "gates of the loops", all_layers(d.layers));
  const std::uint64_t heads = d.heads.value();
  for (const bool bias : {false, true}) {
    TensorSpec gate = bias
                          ? parameter("bias", {d.heads}, Role::attention_gate, Part::attention)
                          : parameter("weight", {d.heads, d.head_dim}, Role::attention_gate, Part::attention);
    gate.bias = bias;
    gate.parallel = {Partition::columns, 0, {{Role::attention_gate, heads, heads}}};
    gates.tensors.push_back(std::move(gate));
  }
  tree.modules.insert(tree.modules.begin() + 2, std::move(gates));  // behind the layers
  add_passes(config, tree, d, config.size("loop_num", 2), config.size("loop_window_size", 64).value());
}

// Ouro: norms around both halves of a layer, and a gate that may end the passes early. Source: ByteDance's modeling_ouro.py.
void describe_ouro(ConfigReader& config, ModuleTree& tree) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    config.size(key);
  config.require(!config.flag("use_sliding_window", false),
                 "use_sliding_window is true: Ouro has been described without windows");
  const LlamaKin kin = {.sizes = {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0},
                        .bias_keys = "",
                        .mlp_norm = "post_attention_layernorm",
                        .after_attention = "input_layernorm_2",
                        .after_mlp = "post_attention_layernorm_2"};
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  Module gate{"model", "gate that ends the passes", {}, {}, {}};
  add_linear(gate, {.name = "early_exit_gate",
                    .in = d.hidden,
                    .out = 1,
                    .role = Role::other,
                    .part = Part::output,
                    .bias = true,
                    .quantizable = false});
  tree.modules.insert(tree.modules.end() - 1, std::move(gate));
  add_passes(config, tree, d, config.size("total_ut_steps", 4), 0);
}

// Huginn (arXiv 2502.05171): three stacks, of which a token passes the middle one many times, each time with what came in beside
// what it made. Source: tomg-group-umd's raven_modeling_minimal.py.
Module raven_stack(const Decoder& d, const Quantity& count, const std::string& stack, bool bias) {
  Module layer = layers("transformer." + stack + ".{layer}", "layers of " + stack, all_layers(count));
  add_norm(layer, "norm_1", d.hidden, Role::input_norm);
  add_norm(layer, "norm_2", d.hidden, Role::post_attention_norm);
  add_norm(layer, "norm_3", d.hidden, Role::pre_feedforward_norm);
  add_norm(layer, "norm_4", d.hidden, Role::post_feedforward_norm);
  HeadAttention a = d.attention();
  a.path = "attn", a.fused = "Wqkv", a.o = "proj";
  Module attend = attention(a);
  if (bias) {
    attend.tensors.push_back(parameter("qk_bias", {2, 1, d.heads, d.head_dim}, Role::qkv, Part::attention));
    attend.tensors.back().bias = true;
  }
  GatedMlp mlp = d.mlp();
  mlp.fused = "fc", mlp.down = "proj";
  layer.children = {std::move(attend), gated_mlp(mlp)};
  return layer;
}

void describe_raven(ConfigReader& config, ModuleTree& tree) {
  config.require(
      !config.flag("bias", false) && config.text("injection_type", "linear") == "linear" &&
          config.text("block_class_name", "SandwichBlock") == "SandwichBlock",
      "bias is true, injection_type not linear or block_class_name not SandwichBlock: Huginn has been "
      "described without");
  Decoder d;
  d.vocabulary = config.size("padded_vocab_size|vocab_size", 65536);
  d.hidden = config.size("n_embd", 5280);
  d.intermediate = config.size("intermediate_size", 17920);
  d.heads = d.kv_heads = config.size("n_heads", 55);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  d.layers = read_layers(config, "n_layers", 8);
  d.tied = config.flag("tie_embeddings", true);
  note_sizes(tree, d);
  const Quantity before = config.size("n_layers_in_prelude", 2),
                 within = config.size("n_layers_in_recurrent_block", 4),
                 behind = config.size("n_layers_in_coda", 2), passes = config.size("mean_recurrence", 32);
  config.require(before.value() + within.value() + behind.value() == d.layers.value(),
                 "n_layers is not the sum of n_layers_in_prelude, n_layers_in_recurrent_block and "
                 "n_layers_in_coda");
  config.require(passes.value() <= 1000,
                 "mean_recurrence is more than 1000: no model passes layers so often");
  const bool bias = config.flag("qk_bias", true);
  add_frame(tree, d,
            {raven_stack(d, before, "prelude", bias), raven_stack(d, within, "core_block", bias),
             raven_stack(d, behind, "coda", bias)},
            {.embedding = "transformer.wte", .final_norm = "transformer.ln_f"});
  Module adapter{"", "what enters each pass", {}, {}, {}};
  add_linear(adapter, {.name = "transformer.adapter",
                       .in = Quantity(2) * d.hidden,
                       .out = d.hidden,
                       .role = Role::residual_mix,
                       .part = Part::attention});
  add_buffer(
      adapter, "freqs_cis",
      {1, config.size("block_size", 4096).value(), 1, std::max<std::uint64_t>(1, d.head_dim.value() / 2), 2});
  tree.modules.insert(tree.modules.begin() + 1, std::move(adapter));
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  const auto again = layers_where(
      d.layers, [&](std::uint64_t i) { return i >= before.value() && i < before.value() + within.value(); });
  for (std::uint64_t pass = 1; pass < passes.value(); ++pass)
    tree.attention.push_back(geometry(d.attention(), again));
  tree.not_counted.push_back({fmt::format("passes behind the first: a token passes the core {} times, and "
                                          "what is computed is told of one",
                                          passes.value()),
                              0});
}

constexpr std::string_view kRavenArchitectures[] = {"RavenForCausalLM"}, kRavenTypes[] = {"huginn_raven"};
constexpr std::string_view kNanbeigeArchitectures[] = {"NanbeigeForCausalLM"},
                           kNanbeigeTypes[] = {"nanbeige"};
constexpr std::string_view kLoopcoderArchitectures[] = {"IQuestLoopCoderForCausalLM"},
                           kLoopcoderTypes[] = {"iquestloopcoder"};
constexpr std::string_view kOuroArchitectures[] = {"OuroForCausalLM"}, kOuroTypes[] = {"ouro"};

}  // namespace

const Family kNanbeige = {"nanbeige", "Nanbeige 4.2",    kNanbeigeArchitectures, kNanbeigeTypes,
                          {},         describe_nanbeige, forward_nanbeige};
const Family kIquestloopcoder = {
    "iquestloopcoder",        "IQuest-Coder Loop", kLoopcoderArchitectures, kLoopcoderTypes, {},
    describe_iquestloopcoder, forward_iquestcoder};
const Family kRaven = {"huginn_raven", "Huginn", kRavenArchitectures, kRavenTypes, {}, describe_raven};
const Family kOuro = {"ouro", "Ouro", kOuroArchitectures, kOuroTypes, {}, describe_ouro};

}  // namespace assay::families
