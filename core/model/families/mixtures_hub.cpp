// Mixtures of experts that transformers has no class for: Step 3's text model, Grok 1 and 2, XVERSE-MoE, Arctic and
// SmallThinker. Sources: vLLM 0.33's step3_text.py, SGLang 0.5.23's grok.py and xverse_moe.py, Snowflake's and
// PowerInfer's own code.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/model/families/all_hub.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/step3.h"

namespace assay::families {
namespace {

using namespace blocks;

// Step 3: one key head for all, and queries that pass a narrow space between two matrices (multi-matrix factorization
// attention, arXiv 2412.19255). The narrow matrices are not cut: every rank has them.
Module factorized_attention(const HeadAttention& a, const Quantity& rank) {
  Module module{"self_attn", "attention (MFA)", {}, {}, {}};
  const auto narrow = [&](const char* name, const Quantity& out, Role role) {
    add_linear(module, {.name = name, .in = a.hidden, .out = out, .role = role, .part = Part::attention});
  };
  narrow("q_proj", rank, Role::q_a);
  narrow("k_proj", a.head_dim, Role::k);
  narrow("v_proj", a.head_dim, Role::v);
  add_norm(module, "inter_norm", rank, Role::q_a_norm, false, Part::attention);
  add_linear(module, {.name = "wq",
                      .in = rank,
                      .out = a.heads * a.head_dim,
                      .role = Role::q_b,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = a.heads.value()});
  add_linear(module, {.name = "o_proj",
                      .in = a.heads * a.head_dim,
                      .out = a.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = a.heads.value()});
  return module;
}

// "4,5,6" or [4, 5, 6]; null: all but the first.
std::set<std::uint64_t> read_moe_layers(ConfigReader& config, const Quantity& layers) {
  std::set<std::uint64_t> chosen;
  if (config.is_null("moe_layers_enum") || !config.has("moe_layers_enum")) {
    config.require(config.is_null("moe_layers_enum"),
                   "moe_layers_enum does not say which layers have experts");
    for (std::uint64_t i = 1; i < layers.value(); ++i) chosen.insert(i);
    return chosen;
  }
  if (config.is_list("moe_layers_enum")) {
    const auto list = config.numbers("moe_layers_enum");
    return {list->begin(), list->end()};
  }
  const auto listed = step_layers_listed(config);
  return {listed.begin(), listed.end()};
}

void describe_step3_text(ConfigReader& config, ModuleTree& tree) {
  config.require(config.number("num_attention_groups", 1) == 1,
                 "num_attention_groups is not 1: Step 3 has been described with one key head");
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 128815,
                            .hidden = 7168,
                            .intermediate = 18432,
                            .layers = 61,
                            .heads = 64,
                            .kv_heads = 1,
                            .head_dim = 256});
  d.kv_heads = 1;
  d.tied = tree.tied_embeddings = false;  // the class ties nothing
  const auto told = config.optional_size("share_q_dim", 2048);
  const Quantity rank = told ? *told : d.head_dim, shared = config.size("share_expert_dim", 5120);
  const Mixture m{d.hidden, read_experts(config, tree, "moe_num_experts", 48, "moe_top_k", 3),
                  config.size("moe_intermediate_size", 5120)};
  const auto chosen = read_moe_layers(config, d.layers);
  const HeadAttention a = d.attention();
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return chosen.contains(i) ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {factorized_attention(a, rank)};
        if (!chosen.contains(i)) {
          layer.children.push_back(gated_mlp(d.mlp()));
          return;
        }
        Module mix{"moe", "mixture of experts", {}, {}, {}};
        Module router{"", std::string(title(Part::router)), {}, {}, {}};
        add_router(router, "gate", d.hidden, m.experts.count);
        mix.children = {std::move(router), stacked_experts({.hidden = d.hidden,
                                                            .width = m.expert_width,
                                                            .experts = m.experts,
                                                            .path = "",
                                                            .down = "down_proj.weight",
                                                            .gate = "gate_proj.weight",
                                                            .up = "up_proj.weight"})};
        layer.children.push_back(gated_mlp({.hidden = d.hidden,
                                            .intermediate = shared,
                                            .path = "share_expert",
                                            .part = Part::shared_expert}));
        layer.children.push_back(std::move(mix));
      });
  add_frame(tree, d, groups);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// Grok: norms around both halves of a layer; Grok 2 has an MLP beside its experts. The published files hold what each rank
// of eight reads.
void describe_grok(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "num_local_experts", "num_experts_per_tok"})
    config.size(key);
  Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 0, .hidden = 0, .intermediate = 0, .layers = 0, .heads = 0, .head_dim = 128});
  d.tied = tree.tied_embeddings = false;  // the class ties nothing
  const bool residual = config.flag("residual_moe", false);
  if (residual) d.intermediate = config.size("intermediate_size");
  Mixture m{d.hidden, read_experts(config, tree, "num_local_experts", 0, "num_experts_per_tok", 0),
            config.size("moe_intermediate_size|intermediate_size")};
  m.path = "block_sparse_moe";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  const HeadAttention a = d.attention();
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "pre_attn_norm", d.hidden, Role::input_norm);
  add_norm(layer, "post_attn_norm", d.hidden, Role::post_attention_norm);
  add_norm(layer, "pre_moe_norm", d.hidden, Role::pre_feedforward_norm);
  add_norm(layer, "post_moe_norm", d.hidden, Role::post_feedforward_norm);
  layer.children = {attention(a), mixture(m)};
  if (residual) layer.children.push_back(gated_mlp(d.mlp()));
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// XVERSE-MoE: experts in every layer; a shared one as wide as num_shared_experts of them.
void describe_xverse_moe(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "num_experts", "moe_top_k"})
    config.size(key);
  LlamaKin kin = {.sizes = {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0},
                  .bias_keys = "",
                  .experts = ExpertKin{.count_keys = "num_experts",
                                       .count = 0,
                                       .active_keys = "moe_top_k",
                                       .active = 0,
                                       .width_keys = "intermediate_size",
                                       .width = 0,
                                       .shared_keys = "num_shared_experts",
                                       .names = {.router = "router"}}};
  describe_kin(config, tree, kin);
}

// Arctic: a dense transformer and, beside each of its MLPs, experts that read the layer's own input.
void describe_arctic(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 32000, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32});
  Mixture m{d.hidden, read_experts(config, tree, "num_local_experts", 8, "num_experts_per_tok", 1),
            d.intermediate};
  m.path = "block_sparse_moe";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  const std::uint64_t every = config.size("moe_layer_frequency", 2).value();
  const bool residual = config.flag("parallel_attn_mlp_res|use_residual", false);
  const auto is_sparse = [&](std::uint64_t i) { return (i + 1) % every == 0; };
  const auto mlp = [&](const char* path, const Quantity& width) {
    return gated_mlp(
        {.hidden = d.hidden, .intermediate = width, .path = path, .gate = "w1", .up = "w3", .down = "w2"});
  };
  const HeadAttention a = d.attention();
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_sparse(i) ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(a)};
        if (!is_sparse(i)) {
          layer.children.push_back(mlp("block_sparse_moe.mlp", d.intermediate));
          return;
        }
        layer.children.push_back(mixture(m));
        if (!residual) return;
        add_norm(layer, "residual_layernorm", d.hidden, Role::pre_feedforward_norm);
        layer.children.push_back(mlp("residual_mlp", d.hidden));
      });
  add_frame(tree, d, groups);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// SmallThinker: experts are chosen before attention; relu; a window where sliding_window_layout has a 1.
void describe_smallthinker(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151936,
                                  .hidden = 1536,
                                  .intermediate = 0,
                                  .layers = 32,
                                  .heads = 12,
                                  .kv_heads = 2,
                                  .head_dim = 128,
                                  .tied = true});
  Mixture m{d.hidden,
            read_experts(config, tree, "moe_num_primary_experts", 32, "moe_num_active_primary_experts", 4),
            config.size("moe_ffn_hidden_size", 768)};
  m.path = "block_sparse_moe";
  m.router = "primary_router";
  m.gate = "gate", m.up = "up", m.down = "down";
  const HeadAttention a = d.attention();
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), mixture(m)};
  add_frame(tree, d, {layer});
  const auto layout = layer_numbers(config, "sliding_window_layout", d.layers);
  const auto windowed = layers_where(d.layers, [&](std::uint64_t i) { return layout && (*layout)[i] != 0; });
  add_geometry(tree, a, d.layers, windowed,
               windowed.empty() ? 0 : config.size("sliding_window_size", 4096).value());
}

constexpr std::string_view kStep3Architectures[] = {"Step3TextForCausalLM"}, kStep3Types[] = {"step3_text"};
// Grok1ModelForCausalLM is left out: two releases of that name spell their tensors in different ways.
constexpr std::string_view kGrokArchitectures[] = {"Grok1ForCausalLM"}, kGrokTypes[] = {"grok-1", "grok-2"};
constexpr std::string_view kXverseMoeArchitectures[] = {"XverseMoeForCausalLM"},
                           kXverseMoeTypes[] = {"xverse_moe"};
constexpr std::string_view kArcticArchitectures[] = {"ArcticForCausalLM"}, kArcticTypes[] = {"arctic"};
constexpr std::string_view kSmallThinkerArchitectures[] = {"SmallThinkerForCausalLM"},
                           kSmallThinkerTypes[] = {"smallthinker"};

}  // namespace

const Family kStep3Text = {"step3_text", "Step 3", kStep3Architectures, kStep3Types, {}, describe_step3_text};
const Family kGrok = {"grok", "Grok 1, Grok 2", kGrokArchitectures, kGrokTypes, {}, describe_grok};
const Family kXverseMoe = {"xverse_moe",    "XVERSE-MoE", kXverseMoeArchitectures,
                           kXverseMoeTypes, {},           describe_xverse_moe};
const Family kArctic = {"arctic", "Arctic", kArcticArchitectures, kArcticTypes, {}, describe_arctic};
const Family kSmallThinker = {
    "smallthinker",       "SmallThinker", kSmallThinkerArchitectures, kSmallThinkerTypes, {},
    describe_smallthinker};

}  // namespace assay::families
