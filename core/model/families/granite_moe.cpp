// Granite 3 with experts, Granite 4 (GraniteMoeHybrid: Mamba-2 in most layers, a shared MLP, experts or none), and Bamba,
// whose layers are of the same kinds.
#include <algorithm>

#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/families/kin_forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr DecoderDefaults kGraniteSizes = {
    .vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32};

// gate and up in one matrix, of the routed experts as of the shared MLP.
Mixture read_stacks(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  Mixture m{d.hidden,
            read_experts(config, tree, "num_local_experts|num_experts", 8, "num_experts_per_tok", 2),
            d.intermediate};
  m.path = "block_sparse_moe";
  m.router = "router.layer";
  m.stacks = Mixture::Stacks::output_major;
  m.stacks_path = "";
  m.stacked_gate_up = "input_linear.weight", m.stacked_down = "output_linear.weight";
  return m;
}
Module shared_mlp(const Decoder& d, const Quantity& width, Part part) {
  GatedMlp mlp{d.hidden, width, "shared_mlp", part};
  mlp.fused = "input_linear", mlp.down = "output_linear";
  return gated_mlp(mlp);
}

void describe_moe_with(ConfigReader& config, ModuleTree& tree, std::uint64_t shared_width) {
  const Decoder d = read_decoder(config, tree, kGraniteSizes);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  Module layer = layers("model.layers.{layer}", "MoE layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), mixture(read_stacks(config, tree, d))};
  if (shared_width > 0)
    layer.children.push_back(
        shared_mlp(d, Quantity("shared_intermediate_size", shared_width), Part::shared_expert));
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}
void describe_granitemoe(ConfigReader& config, ModuleTree& tree) {
  describe_moe_with(config, tree, 0);
}
void describe_granitemoeshared(ConfigReader& config, ModuleTree& tree) {
  describe_moe_with(config, tree, config.number("shared_intermediate_size", 0));
}

// mamba_d_head "auto": mamba_expand × hidden_size / mamba_n_heads.
Mamba2 read_mamba(ConfigReader& config, const Decoder& d) {
  Mamba2 m;
  m.hidden = d.hidden;
  m.heads = config.size("mamba_n_heads", 128);
  const Quantity inner("mamba_expand × hidden_size", (config.size("mamba_expand", 2) * d.hidden).value());
  m.head_dim = config.quotient(inner, m.heads, "mamba_d_head");
  m.groups = config.size("mamba_n_groups", 1);
  m.state = config.size("mamba_d_state", 256);
  m.kernel = config.size("mamba_d_conv", 4);
  m.conv_bias = config.flag("mamba_conv_bias", true);
  m.bias = config.flag("mamba_proj_bias", false);
  m.path = "mamba";
  return m;
}

bool attends(const std::string& type) {
  return type == "attention" || type == "full_attention";
}

void describe_granitemoehybrid(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree, kGraniteSizes);
  const auto types = layer_texts(config, "layer_types|layers_block_type", d.layers);
  const auto is_attention = [&](std::uint64_t i) { return types && attends((*types)[i]); };
  const auto attending = layers_where(d.layers, is_attention);
  const auto scanning = layers_where(d.layers, [&](std::uint64_t i) { return !is_attention(i); });
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const Mamba2 mamba = scanning.empty() ? Mamba2{} : read_mamba(config, d);
  const Quantity shared = config.size("shared_intermediate_size", 1024);
  const bool experts = config.number("num_local_experts", 8) > 0;
  const Mixture m = experts ? read_stacks(config, tree, d) : Mixture{};
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_attention(i) ? "attention layers" : "Mamba-2 layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_attention(i) ? attention(a) : mamba2(mamba)};
        if (experts) layer.children.push_back(mixture(m));
        layer.children.push_back(shared_mlp(d, shared, experts ? Part::shared_expert : Part::dense_mlp));
      });
  add_frame(tree, d, groups);
  if (!attending.empty()) tree.attention.push_back(geometry(a, attending));
  if (!scanning.empty()) tree.recurrent.push_back(geometry(mamba, scanning));
}

// Granite 4 rotates nothing unless it is told to.
Hyperparameters read_granitemoehybrid(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = forward_granite(config, tree);
  if (config.text("position_embedding_type", "") == "rope") return h;
  h.ropes.clear();
  h.rope_of.assign(tree.layers, std::nullopt);
  return h;
}

void describe_bamba(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 128000,
                                  .hidden = 4096,
                                  .intermediate = 14336,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 8});
  const auto attending = config.numbers("attn_layer_indices").value_or(std::vector<std::uint64_t>{});
  for (const std::uint64_t i : attending)
    config.require(i < d.layers.value(), "attn_layer_indices names a layer there is not");
  const auto is_attention = [&](std::uint64_t i) {
    return std::find(attending.begin(), attending.end(), i) != attending.end();
  };
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const Mamba2 mamba = read_mamba(config, d);
  GatedMlp mlp = d.mlp();
  mlp.path = "feed_forward";
  mlp.bias = config.flag("mlp_bias", false);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_attention(i) ? "attention layers" : "Mamba-2 layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
        add_norm(layer, "pre_ff_layernorm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {is_attention(i) ? attention(a) : mamba2(mamba), gated_mlp(mlp)};
      });
  Frame frame;
  frame.final_norm = "model.final_layernorm";
  add_frame(tree, d, groups, frame);
  const auto full = layers_where(d.layers, is_attention);
  const auto scanning = layers_where(d.layers, [&](std::uint64_t i) { return !is_attention(i); });
  if (!full.empty()) tree.attention.push_back(geometry(a, full));
  if (!scanning.empty()) tree.recurrent.push_back(geometry(mamba, scanning));
}

// The class rotates half of each head, whatever a config says.
Hyperparameters read_bamba(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.epsilon = 1e-5, .rope = {.context = 262144}});
  if (tree.attention.empty()) return h;
  h.ropes.front().rotary_dim = tree.attention.front().qk_head_dim / 2;
  config.require(h.ropes.front().rotary_dim % 2 == 0, "half of a head is no pairs");
  return h;
}

constexpr std::string_view kGraniteMoeArchitectures[] = {"GraniteMoeForCausalLM"},
                           kGraniteMoeTypes[] = {"granitemoe"};
constexpr std::string_view kGraniteSharedArchitectures[] = {"GraniteMoeSharedForCausalLM"},
                           kGraniteSharedTypes[] = {"granitemoeshared"};
constexpr std::string_view kGraniteHybridArchitectures[] = {"GraniteMoeHybridForCausalLM"},
                           kGraniteHybridTypes[] = {"granitemoehybrid"};
constexpr std::string_view kBambaArchitectures[] = {"BambaForCausalLM"}, kBambaTypes[] = {"bamba"};

}  // namespace

const Family kGraniteMoe = {
    "granitemoe", "Granite 3 with experts", kGraniteMoeArchitectures, kGraniteMoeTypes,
    {},           describe_granitemoe,      forward_granite};
const Family kGraniteMoeShared = {"granitemoeshared",
                                  "Granite with a shared expert",
                                  kGraniteSharedArchitectures,
                                  kGraniteSharedTypes,
                                  {},
                                  describe_granitemoeshared,
                                  forward_granite};
const Family kGraniteMoeHybrid = {"granitemoehybrid",   "Granite 4", kGraniteHybridArchitectures,
                                  kGraniteHybridTypes,  {},          describe_granitemoehybrid,
                                  read_granitemoehybrid};
const Family kBamba = {"bamba", "Bamba", kBambaArchitectures, kBambaTypes, {}, describe_bamba, read_bamba};

}  // namespace assay::families
