// Qwen2-MoE: routed experts beside one shared expert with a gate of its own. Qwen3-MoE: routed experts only.
// In both, `decoder_sparse_step` and `mlp_only_layers` say which layers keep a dense MLP.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/families/sparse_layers.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_layers(ConfigReader& config, ModuleTree& tree, const Decoder& d, const HeadAttention& a,
                const Mixture& mixture_of_experts) {
  const auto is_sparse = qwen_sparse_layers(config);
  Module dense = layers("model.layers.{layer}", "dense layers",
                        layers_where(d.layers, [&](std::uint64_t i) { return !is_sparse(i); }));
  add_pre_norms(dense, d.hidden);
  dense.children = {attention(a), gated_mlp(d.mlp())};
  Module sparse = layers("model.layers.{layer}", "MoE layers", layers_where(d.layers, is_sparse));
  add_pre_norms(sparse, d.hidden);
  sparse.children = {attention(a), mixture(mixture_of_experts)};
  add_frame(tree, d, {dense, sparse});
}

void describe_qwen2_moe(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151936,
                                  .hidden = 2048,
                                  .intermediate = 5632,
                                  .layers = 24,
                                  .heads = 16,
                                  .kv_heads = 16});
  HeadAttention a = d.attention();
  a.qkv_bias = config.flag("qkv_bias", true);
  Mixture m{d.hidden,
            read_experts(config, tree, "num_experts|num_local_experts", 60, "num_experts_per_tok", 4),
            config.size("moe_intermediate_size", 1408)};
  m.shared_width = config.size("shared_expert_intermediate_size", 5632);
  m.shared_path = "shared_expert";
  m.shared_gate = true;
  add_layers(config, tree, d, a, m);

  // Qwen2MoeConfig: every other layer below max_window_layers, once windows are switched on.
  const bool windows = config.flag("use_sliding_window", false);
  const auto window = windows ? config.optional_number("sliding_window", 4096) : std::nullopt;
  const std::uint64_t below = window ? config.number("max_window_layers", 28) : 0;
  const auto windowed =
      windowed_layers(config, d.layers, [&](std::uint64_t i) { return i % 2 == 0 && i < below; });
  add_geometry(tree, a, d.layers, windowed, window.value_or(0));
}

void describe_qwen3_moe(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 151936, .hidden = 2048, .intermediate = 6144, .layers = 24, .heads = 32, .kv_heads = 4});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  const Mixture m{d.hidden,
                  read_experts(config, tree, "num_experts|num_local_experts", 128, "num_experts_per_tok", 8),
                  config.size("moe_intermediate_size", 768)};
  add_layers(config, tree, d, a, m);

  const bool windows = config.flag("use_sliding_window", false);
  const auto window = windows ? config.optional_number("sliding_window", 4096) : std::nullopt;
  add_geometry(tree, a, d.layers, window ? all_layers(d.layers) : std::vector<std::uint64_t>{},
               window.value_or(0));
}

// llama.cpp knows no other way than to renormalize; the class has false where the config is silent.
Hyperparameters read_qwen3_moe(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 32768}});
  h.routing.renormalize = config.flag("norm_topk_prob", is_gguf(config));
  return h;
}

constexpr std::string_view kQwen3MoeBiases[] = {"attention_bias"};
constexpr std::string_view kQwen3MoeCarried[] = {"rms_norm_eps", "rope_theta", "rope_scaling",
                                                 "norm_topk_prob"};
constexpr GgufFamily kQwen3MoeInGguf = {.family = "qwen3_moe",
                                        .architecture = "qwen3moe",
                                        .hf_class = "Qwen3MoeForCausalLM",
                                        .writes_expert_width = true,
                                        .always_renormalizes = true,
                                        .bias_keys = kQwen3MoeBiases,
                                        .renormalizes_by_default = true,
                                        .carried = {kQwen3MoeCarried}};

constexpr std::string_view kQwen2MoeArchitectures[] = {"Qwen2MoeForCausalLM"};
constexpr std::string_view kQwen2MoeTypes[] = {"qwen2_moe"};
constexpr std::string_view kQwen2MoeGguf[] = {"qwen2moe"};
constexpr std::string_view kQwen3MoeArchitectures[] = {"Qwen3MoeForCausalLM"};
constexpr std::string_view kQwen3MoeTypes[] = {"qwen3_moe"};
constexpr std::string_view kQwen3MoeGguf[] = {"qwen3moe"};

}  // namespace

const Family kQwen2Moe = {"qwen2_moe",   "Qwen1.5-MoE, Qwen2-MoE", kQwen2MoeArchitectures, kQwen2MoeTypes,
                          kQwen2MoeGguf, describe_qwen2_moe,       forward_qwen2_moe};
const Family kQwen3Moe = {"qwen3_moe",   "Qwen3-MoE",        kQwen3MoeArchitectures, kQwen3MoeTypes,
                          kQwen3MoeGguf, describe_qwen3_moe, read_qwen3_moe,         &kQwen3MoeInGguf};

}  // namespace assay::families
