// GLM-5.3-Flash: layers of KDA, and in every fourth latent attention that rotates nothing and whose indexer scores pools
// of keys; hyper-connections, DeepSeek-V3's experts, GLM-OCR's tower. Source: transformers 5.23 (glm5_next).
#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/deepseek_kin.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/towers.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;
using Layers = std::function<bool(std::uint64_t layer)>;

// By the list under `key`: whose entry is `kind`, or one of two; else by `otherwise`.
Layers layers_of(ConfigReader& config, const Quantity& count, std::string_view key, std::string kind,
                 Layers otherwise) {
  const auto kinds = layer_texts(config, key, count);
  if (!kinds) return otherwise;
  return [kinds, kind](std::uint64_t i) { return (*kinds)[i] == kind; };
}

// index_topk_pattern ("FSSF…"), or every index_topk_freq-th behind the first ones.
Layers without_indexer(ConfigReader& config, const Quantity& count) {
  const std::string pattern = config.has("index_topk_pattern") && !config.is_list("index_topk_pattern")
                                  ? config.text("index_topk_pattern", "")
                                  : "";
  config.require(pattern.empty() || pattern.size() == count.value(),
                 "index_topk_pattern is not as long as there are layers");
  const std::uint64_t every = std::max<std::uint64_t>(config.number("index_topk_freq", 1), 1);
  const std::uint64_t first = config.number("index_skip_topk_offset", 2);
  return layers_of(config, count, "indexer_types", "shared", [=](std::uint64_t i) {
    if (!pattern.empty()) return pattern[i] == 'S';
    return i + 1 > first && (i + 1 - first) % every != 0;
  });
}

KimiDeltaAttention read_kda(ConfigReader& config, const Quantity& hidden) {
  KimiDeltaAttention kda{hidden, config.size("linear_num_heads", 64), config.size("linear_head_dim", 128),
                         config.size("linear_conv_kernel_dim", 4)};
  if (const auto nested = config.config().text_section("linear_attn_config")) {
    ConfigReader linear(*nested, "linear_attn_config");
    kda.heads = linear.size("num_heads", kda.heads), kda.head_dim = linear.size("head_dim", kda.head_dim);
    kda.kernel = linear.size("short_conv_kernel_size", kda.kernel);
  }
  kda.decay_shape = {kda.heads};
  return kda;
}

LatentAttention read_attention(ConfigReader& config, const Decoder& d) {
  LatentAttention a{d.hidden, d.heads};
  a.q_rank = config.size("q_lora_rank", 1536), a.kv_rank = config.size("kv_lora_rank", 512);
  a.nope_dim = config.size("qk_nope_head_dim", 256), a.v_dim = config.size("v_head_dim", 256);
  a.rope_dim = Quantity("qk_rope_head_dim", config.number("qk_rope_head_dim", 0));
  a.bias = config.flag("attention_bias", false);
  return a;
}

// A pool's key is a sum of its keys, weighted by a gate and the place in the pool.
Module pooled_indexer(const LatentAttention& a, const Indexer& i, ConfigReader& config) {
  Module module = indexer(a, i, config);
  module.tensors.push_back(parameter("index_kpool_compress_ape", {config.size("index_kpool", 16), i.head_dim},
                                     Role::indexer_k, Part::attention));
  module.tensors.push_back(
      parameter("index_kpool_compress_gate", {i.head_dim, a.hidden}, Role::indexer_k, Part::attention));
  return module;
}

// Layers behind the last attend by an indexer of their own, with a residual of one stream (vLLM 0.32, models/glm5next).
void add_glm5_prediction(ConfigReader& config, ModuleTree& tree, const Decoder& d, const LatentAttention& a,
                         const Indexer& i, Module mlp, const std::string& prefix) {
  AttentionGeometry g = geometry(a, layers_after(d.layers, read_mtp_layers(config, 0)));
  if (g.layers.empty()) return;
  Module layer = layers(prefix + "layers.{layer}", "", g.layers), attend = attention(a);
  add_pre_norms(layer, d.hidden);
  attend.children.push_back(pooled_indexer(a, i, config));
  layer.children = {std::move(attend), std::move(mlp)};
  add_mtp(tree, d, std::move(layer), prefix + "embed_tokens.weight", "lm_head.weight");
  i.note(g);
  tree.mtp_attention.push_back(std::move(g));
}

void describe_glm5_next(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 154880, .hidden = 4096, .intermediate = 12288, .layers = 45, .heads = 64},
      HeadDim::unused);
  const LatentAttention a = read_attention(config, d);
  const KimiDeltaAttention kda = read_kda(config, d.hidden);
  const Indexer i = read_indexer(config, 32);
  const Mixture m = read_kin_mixture(config, tree, d, {288, 8, 2048});
  const Layers is_linear = layers_of(config, d.layers, "layer_types", "linear_attention",
                                     [](std::uint64_t l) { return l % 4 != 3; });
  const Layers is_sparse =
      layers_of(config, d.layers, "mlp_layer_types", "sparse", [](std::uint64_t l) { return l >= 3; });
  const Layers follows = without_indexer(config, d.layers);
  const Quantity streams = config.size("hc_mult", 4), mix = (Quantity(2) + streams) * streams;
  const std::string prefix = is_nested(config) ? "model.language_model." : "model.";
  const auto groups = group_layers(
      prefix + "layers.{layer}", d.layers,
      [&](std::uint64_t l) {
        return std::string(is_linear(l) ? "KDA"
                           : follows(l) ? "MLA without indexer"
                                        : "MLA") +
               (is_sparse(l) ? " MoE layers" : " dense layers");
      },
      [&](Module& layer, std::uint64_t l) {
        add_pre_norms(layer, d.hidden);
        add_hyper_connection(layer, "hc_attn_", mix, 3, streams, d.hidden);
        add_hyper_connection(layer, "hc_ffn_", mix, 3, streams, d.hidden);
        layer.children = {is_linear(l) ? kimi_delta_attention(kda) : attention(a),
                          is_sparse(l) ? mixture(m) : gated_mlp(d.mlp())};
        if (!is_linear(l) && !follows(l)) layer.children[0].children.push_back(pooled_indexer(a, i, config));
      });
  add_frame(tree, d, groups, frame_under(prefix));
  for (const bool own : {true, false}) {
    const auto where =
        layers_where(d.layers, [&](std::uint64_t l) { return !is_linear(l) && follows(l) != own; });
    if (where.empty()) continue;
    AttentionGeometry g = geometry(a, where);
    i.note(g);
    if (!own) g.indexer_heads = g.indexer_head_dim = 0;
    tree.attention.push_back(std::move(g));
  }
  if (const auto where = layers_where(d.layers, is_linear); !where.empty())
    tree.recurrent.push_back(geometry(kda, where));
  const bool has_experts = is_sparse(d.layers.value() - 1);
  add_glm5_prediction(config, tree, d, a, i, has_experts ? mixture(m) : gated_mlp(d.mlp()), prefix);
  TowerConfig vision(config, tree, "vision_config");
  if (vision)
    tree.towers.push_back(
        glm_ocr_tower(*vision, "model.visual", vision->size("projection_intermediate_size", 10240)));
}

Hyperparameters forward_glm5_next(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(
      config, tree, {.groups = 1, .chosen_groups = 1, .context = 1048576, .epsilon = 1e-5, .rotates = false});
}

constexpr std::string_view kGlm5NextArchitectures[] = {"Glm5NextForConditionalGeneration",
                                                       "Glm5NextForCausalLM"};
constexpr std::string_view kGlm5NextTypes[] = {"glm5_next", "glm5_next_text"};

}  // namespace

const Family kGlm5Next = {"glm5_next", "GLM-5.3-Flash",    kGlm5NextArchitectures, kGlm5NextTypes,
                          {},          describe_glm5_next, forward_glm5_next};

}  // namespace assay::families
