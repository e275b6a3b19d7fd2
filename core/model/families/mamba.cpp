// Mamba, Falcon-Mamba and Mamba-2, which attend nowhere; Jamba, which does in one layer of eight and has experts in every
// other.
#include <nlohmann/json.hpp>

#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

Decoder read_scan_sizes(ConfigReader& config, ModuleTree& tree, const DecoderDefaults& defaults) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", defaults.vocabulary);
  d.hidden = config.size("hidden_size|d_model", defaults.hidden);
  d.layers = read_layers(config, "num_hidden_layers|n_layer", defaults.layers);
  d.tied = config.tied_embeddings(defaults.tied);
  note_sizes(tree, d);
  return d;
}

// "auto" is ⌈hidden_size / 16⌉.
Quantity read_rank(ConfigReader& config, std::string_view key, const Quantity& hidden) {
  Quantity automatic("hidden_size / 16", (hidden.value() + 15) / 16);
  const auto given = config.config().text().find(std::string(key));
  if (given != config.config().text().end() && given->is_string()) return automatic;
  return config.size(key, automatic);
}

void add_scans(ModuleTree& tree, const Decoder& d, const Module& mixer) {
  Module layer = layers("backbone.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "norm", d.hidden, Role::input_norm);
  layer.children = {mixer};
  add_frame(tree, d, {layer},
            {.embedding = "backbone.embeddings", .final_norm = "backbone.norm_f", .head = "lm_head"});
}

void describe_mamba(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_scan_sizes(
      config, tree,
      {.vocabulary = 50280, .hidden = 768, .intermediate = 0, .layers = 32, .heads = 0, .tied = true});
  Mamba1 m;
  m.hidden = d.hidden;
  m.inner = config.has("intermediate_size")
                ? config.size("intermediate_size")
                : Quantity("expand × hidden_size", (config.size("expand", 2) * d.hidden).value());
  m.state = config.size("state_size", 16);
  m.rank = read_rank(config, "time_step_rank", d.hidden);
  m.kernel = config.size("conv_kernel", 4);
  m.bias = config.flag("use_bias", false);
  m.conv_bias = config.flag("use_conv_bias", true);
  add_scans(tree, d, mamba1(m));
  tree.recurrent.push_back(geometry(m, all_layers(d.layers)));
}

void describe_mamba2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_scan_sizes(
      config, tree, {.vocabulary = 32768, .hidden = 4096, .intermediate = 0, .layers = 64, .heads = 0});
  Mamba2 m;
  m.hidden = d.hidden;
  m.heads = config.size("num_heads", 128);
  const Quantity inner("expand × hidden_size", (config.size("expand", 2) * d.hidden).value());
  m.head_dim = config.quotient(inner, m.heads, "head_dim");
  m.groups = config.size("n_groups", 8);
  m.state = config.size("state_size", 128);
  m.kernel = config.size("conv_kernel", 4);
  m.bias = config.flag("use_bias", false);
  m.conv_bias = config.flag("use_conv_bias", true);
  add_scans(tree, d, mamba2(m));
  tree.recurrent.push_back(geometry(m, all_layers(d.layers)));
}

Mamba1 read_jamba_scan(ConfigReader& config, const Decoder& d) {
  Mamba1 m;
  m.hidden = d.hidden;
  m.inner = Quantity("mamba_expand × hidden_size", (config.size("mamba_expand", 2) * d.hidden).value());
  m.state = config.size("mamba_d_state", 16);
  m.rank = read_rank(config, "mamba_dt_rank", d.hidden);
  m.kernel = config.size("mamba_d_conv", 4);
  m.bias = config.flag("mamba_proj_bias", false);
  m.conv_bias = config.flag("mamba_conv_bias", true);
  m.norms = true;
  m.path = "mamba";
  return m;
}

void describe_jamba(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 65536, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 8});
  const HeadAttention a = d.attention();
  const Mamba1 scan = read_jamba_scan(config, d);
  GatedMlp mlp = d.mlp();
  mlp.path = "feed_forward";
  const bool moe = config.number("num_experts", 16) > 1;
  Mixture m;
  if (moe) {
    m = {d.hidden, read_experts(config, tree, "num_experts", 16, "num_experts_per_tok", 2), d.intermediate};
    m.path = "feed_forward";
    m.router = "router";
  }
  const std::uint64_t attn_period = config.size("attn_layer_period", 8).value(),
                      attn_offset = config.number("attn_layer_offset", 4),
                      moe_period = config.size("expert_layer_period", 2).value(),
                      moe_offset = config.number("expert_layer_offset", 1);
  const auto is_attention = [=](std::uint64_t i) { return i % attn_period == attn_offset; };
  const auto is_sparse = [=](std::uint64_t i) { return moe && i % moe_period == moe_offset; };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_attention(i) ? "attention" : "Mamba") +
               (is_sparse(i) ? " MoE layers" : " layers");
      },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
        add_norm(layer, "pre_ff_layernorm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {is_attention(i) ? attention(a) : mamba1(scan),
                          is_sparse(i) ? mixture(m) : gated_mlp(mlp)};
      });
  Frame frame;
  frame.final_norm = "model.final_layernorm";
  add_frame(tree, d, groups, frame);
  const auto attending = layers_where(d.layers, is_attention);
  const auto scanning = layers_where(d.layers, [&](std::uint64_t i) { return !is_attention(i); });
  if (!attending.empty()) tree.attention.push_back(geometry(a, attending));
  if (!scanning.empty()) tree.recurrent.push_back(geometry(scan, scanning));
}

// Nothing bounds the length of a text.
Hyperparameters read_mamba_forward(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(
      config, tree, {.rope = {.context = std::size_t{1} << 20U}, .activation_key = "", .activation = "silu"});
  h.epsilon = config.real("layer_norm_epsilon", 1e-5, 0, 1);
  return h;
}

// Nothing rotates; the scans tell one place from another.
Hyperparameters read_jamba(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 262144}});
  h.ropes.clear();
  h.rope_of.assign(tree.layers, std::nullopt);
  return h;
}

constexpr std::string_view kMambaArchitectures[] = {"MambaForCausalLM", "FalconMambaForCausalLM"},
                           kMambaTypes[] = {"mamba", "falcon_mamba"};
constexpr std::string_view kMamba2Architectures[] = {"Mamba2ForCausalLM"}, kMamba2Types[] = {"mamba2"};
constexpr std::string_view kJambaArchitectures[] = {"JambaForCausalLM"}, kJambaTypes[] = {"jamba"};

}  // namespace

const Family kMamba = {"mamba", "Mamba, Falcon-Mamba", kMambaArchitectures, kMambaTypes,
                       {},      describe_mamba,        read_mamba_forward};
const Family kMamba2 = {"mamba2", "Mamba-2",       kMamba2Architectures, kMamba2Types,
                        {},       describe_mamba2, read_mamba_forward};
const Family kJamba = {"jamba", "Jamba", kJambaArchitectures, kJambaTypes, {}, describe_jamba, read_jamba};

}  // namespace assay::families
