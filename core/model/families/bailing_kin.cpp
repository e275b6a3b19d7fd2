// Kin of Ling: Ling and Ring 2.5 and 2.6 (lightning attention, and latent attention in one layer of eight), Param2 (Ling 2 under
// other sizes), and Ling 3 that sees. Sources: vLLM 0.32's bailing_moe_linear.py, bailing_moe_mtp.py, param2moe.py and
// bailing_moe_v3_vl.py, llama.cpp's conversion/bailingmoe3.py, and the configuration classes of inclusionAI and BharatGen.
#include "core/model/families/all_mixtures.h"
#include "core/model/families/bailing.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/own_code_forward.h"
#include "core/model/families/soft_forward.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

// Lightning attention (arXiv 2501.08313) with norms of queries and keys, and behind it a norm under a gate. Its decays are
// computed.
struct LingLightning {
  Quantity hidden, heads, head_dim;
  bool qkv_bias = false, output_bias = false, qk_norm = true;
};
Module lightning(const LingLightning& a) {
  Module module{"attention", "lightning attention", {}, {}, {}};
  const Quantity width = a.heads * a.head_dim;
  const std::uint64_t w = width.value(), h = a.heads.value();
  add_linear(module, {.name = "query_key_value",
                      .in = a.hidden,
                      .out = Quantity(3) * width,
                      .role = Role::recurrent_in,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .members = {{Role::q, w, h}, {Role::k, w, h}, {Role::v, w, h}},
                      .bias = a.qkv_bias});
  if (a.qk_norm) {
    add_norm(module, "query_layernorm", a.head_dim, Role::q_norm, false, Part::attention);
    add_norm(module, "key_layernorm", a.head_dim, Role::k_norm, false, Part::attention);
  }
  add_linear(module, {.name = "g_proj",
                      .in = a.hidden,
                      .out = width,
                      .role = Role::recurrent_gate,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = h});
  add_norm(module, "g_norm", width, Role::recurrent_norm, false, Part::attention);
  add_linear(module, {.name = "dense",
                      .in = width,
                      .out = a.hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = h,
                      .bias = a.output_bias});
  return module;
}

LingLightning read_lightning(ConfigReader& config, const Decoder& d) {
  LingLightning a{d.hidden, d.heads, config.size("head_dim", 128)};
  a.output_bias = config.flag("use_bias", false);
  a.qkv_bias = config.flag("use_qkv_bias", false) || a.output_bias;
  a.qk_norm = config.flag("use_qk_norm", true);
  const auto keys = config.optional_number("num_kv_heads_for_linear_attn|linear_key_value_heads");
  config.require(!keys || *keys == d.heads.value(),
                 "num_kv_heads_for_linear_attn is not num_attention_heads: such lightning attention is not "
                 "described");
  return a;
}

// The last of each group attends in full, and so do layers behind the last whole group.
std::function<bool(std::uint64_t)> full_layers(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "layer_types", count))
    return [types](std::uint64_t i) { return (*types)[i] == "full_attention"; };
  const std::uint64_t group = config.size("layer_group_size", 5).value(),
                      whole = count.value() / group * group;
  return [=](std::uint64_t i) { return (i + 1) % group == 0 || i >= whole; };
}

void describe_ling25(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 157184, .hidden = 2048, .intermediate = 5120, .layers = 20, .heads = 16},
      HeadDim::unused);
  const LatentAttention latent = read_latent_attention(config, d, {.q_rank = std::nullopt});
  const LingLightning linear = read_lightning(config, d);
  const auto is_full = full_layers(config, d.layers);
  Mixture m = read_ling_experts(config, tree, d.hidden,
                                {.count = 256, .width = 512, .shared = LingShared::own_width});
  if (config.flag("moe_router_enable_expert_bias", true)) m.correction = "gate.expert_bias";
  const std::uint64_t dense = config.number("first_k_dense_replace", 1);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_full(i) ? "latent attention" : "lightning") +
               (i >= dense ? " MoE layers" : " layers");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_full(i) ? ling_latent_attention(latent) : lightning(linear),
                          i >= dense ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups, ling_frame());
  const auto full = layers_where(d.layers, is_full);
  const auto others = layers_where(d.layers, [&](std::uint64_t i) { return !is_full(i); });
  if (!full.empty()) tree.attention.push_back(geometry(latent, full));
  if (!others.empty())
    tree.recurrent.push_back({.title = "lightning attention",
                              .layers = others,
                              .heads = linear.heads.value(),
                              .state_values = (linear.heads * linear.head_dim * linear.head_dim).value()});
  add_latent_prediction(tree, d, layers_after(d.layers, read_mtp_layers(config, 1)), latent,
                        {ling_latent_attention(latent), mixture(m)});
}

// Ring and Ling linear 2.0: Ling 2's attention in the last layer of each group. Source: SGLang 0.5's bailing_moe_linear.py.
void describe_ring_linear(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 157184, .hidden = 2048, .intermediate = 5120, .layers = 20, .heads = 16, .kv_heads = 4});
  const LingLightning linear = read_lightning(config, d);
  // Of lightning attention some readers take head_dim, some what hidden_size leaves a head.
  config.require(
      linear.head_dim.value() == d.head_dim.value() &&
          (linear.heads * linear.head_dim).value() == d.hidden.value(),
      "head_dim is not hidden_size / num_attention_heads: what lightning attention has then is not "
      "known");
  config.require(config.optional_number("num_nextn_predict_layers", 0).value_or(0) == 0,
                 "num_nextn_predict_layers is not 0: layers that predict are not described");
  HeadAttention a = d.attention();
  a.path = "attention", a.fused = "query_key_value", a.o = "dense";
  a.qkv_bias = linear.qkv_bias, a.output_bias = linear.output_bias;
  if (linear.qk_norm) a.qk_norm = QkNorm::per_head;
  a.q_norm = "query_layernorm", a.k_norm = "key_layernorm";
  Mixture m = read_ling_experts(config, tree, d.hidden, {.count = 256, .width = 512});
  config.require(!config.has("moe_shared_expert_intermediate_size") ||
                     config.size("moe_shared_expert_intermediate_size").value() == m.expert_width.value(),
                 "moe_shared_expert_intermediate_size is not moe_intermediate_size, and sources disagree "
                 "about what is meant then");
  if (config.flag("moe_router_enable_expert_bias", true)) m.correction = "gate.expert_bias";
  const auto is_full = full_layers(config, d.layers);
  const std::uint64_t dense = config.number("first_k_dense_replace", 1);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_full(i) ? "full attention" : "lightning") +
               (i >= dense ? " MoE layers" : " layers");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_full(i) ? attention(a) : lightning(linear),
                          i >= dense ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups, ling_frame());
  const auto full = layers_where(d.layers, is_full);
  const auto others = layers_where(d.layers, [&](std::uint64_t i) { return !is_full(i); });
  if (!full.empty()) tree.attention.push_back(geometry(a, full));
  if (!others.empty())
    tree.recurrent.push_back({.title = "lightning attention",
                              .layers = others,
                              .heads = linear.heads.value(),
                              .state_values = (linear.heads * linear.head_dim * linear.head_dim).value()});
}

void describe_param2(ConfigReader& config, ModuleTree& tree) {
  describe_ling(config, tree,
                {.sizes = {.vocabulary = 157184,
                           .hidden = 2048,
                           .intermediate = 5120,
                           .layers = 20,
                           .heads = 16,
                           .kv_heads = 4,
                           .head_dim = 128},
                 .experts = {.count = 256, .width = 512, .shared = LingShared::own_total},
                 .dense_first = 1});
}

void describe_ling3_vl(ConfigReader& config, ModuleTree& tree) {
  describe_ling3(config, tree);
  add_ling_vision(config, tree, Quantity("hidden_size", tree.hidden_size));
}

constexpr std::string_view kLing25Architectures[] = {"BailingMoeV2_5ForCausalLM"};
constexpr std::string_view kRingLinearArchitectures[] = {"BailingMoeLinearV2ForCausalLM",
                                                         "BailingMoeLinearForCausalLM",
                                                         "BailingMoELinearForCausalLM"},
                           kRingLinearTypes[] = {"bailing_moe_linear"};
constexpr std::string_view kParam2Architectures[] = {"Param2MoEForCausalLM"}, kParam2Types[] = {"param2moe"};
constexpr std::string_view kLing3VlArchitectures[] = {"BailingMoeV3VLForConditionalGeneration"},
                           kLing3VlTypes[] = {"bailing_moe_v3_vl"};

}  // namespace

const Family kBailing25 = {"bailing_moe_v2_5", "Ling 2.5, 2.6", kLing25Architectures, {}, {},
                           describe_ling25,    forward_ling25};
const Family kRingLinear = {
    "bailing_moe_linear", "Ring and Ling linear 2.0", kRingLinearArchitectures, kRingLinearTypes, {},
    describe_ring_linear, forward_ring_linear};
const Family kParam2Moe = {"param2moe", "Param2 with experts", kParam2Architectures, kParam2Types,
                           {},          describe_param2,       forward_param2};
const Family kBailing3Vl = {"bailing_moe_v3_vl", "Ling 3 VL",  kLing3VlArchitectures, kLing3VlTypes, {},
                            describe_ling3_vl,   forward_ling3};

}  // namespace assay::families
