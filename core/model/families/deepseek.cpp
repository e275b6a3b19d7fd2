// DeepSeek V2, V2-Lite, V3, R1, V3.1 and V3.2; Kimi K2. Multi-head latent attention, many small experts
// beside shared ones, and from V3 on a bias for choosing experts and a layer for multi-token prediction. V3.2
// adds an indexer that picks the keys each query attends to.
#include <fmt/format.h>

#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/forward.h"
#include "core/model/families/mixture_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Defaults {
  DecoderDefaults decoder;
  std::uint64_t experts, shared, expert_width, dense_first;
  std::optional<std::uint64_t> experts_per_token;  // absent: V2's class has none
  std::string_view topk_method;
  std::uint64_t groups, chosen_groups;
  double routed_scale;
  std::uint64_t mtp_layers, context;
};

constexpr Defaults kV2Defaults = {
    .decoder = {.vocabulary = 102400, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
    .experts = 64,
    .shared = 2,
    .expert_width = 1407,
    .dense_first = 0,
    .experts_per_token = std::nullopt,
    .topk_method = "greedy",
    .groups = 1,
    .chosen_groups = 1,
    .routed_scale = 1,
    .mtp_layers = 0,
    .context = 2048};
constexpr Defaults kV3Defaults = {
    .decoder = {.vocabulary = 129280, .hidden = 7168, .intermediate = 18432, .layers = 61, .heads = 128},
    .experts = 256,
    .shared = 1,
    .expert_width = 2048,
    .dense_first = 3,
    .experts_per_token = 8,
    .topk_method = "noaux_tc",
    .groups = 8,
    .chosen_groups = 4,
    .routed_scale = 2.5,
    .mtp_layers = 1,
    .context = 4096};

Mixture read_mixture(ConfigReader& config, ModuleTree& tree, const Decoder& d, const Defaults& defaults) {
  constexpr std::string_view kCount = "n_routed_experts|num_local_experts|num_experts",
                             kActive = "num_experts_per_tok";
  if (!defaults.experts_per_token) config.size(kActive);  // required
  Mixture m;
  m.hidden = d.hidden;
  m.experts =
      read_experts(config, tree, kCount, defaults.experts, kActive, defaults.experts_per_token.value_or(0));
  m.expert_width = config.size("moe_intermediate_size", defaults.expert_width);
  // null is no shared expert: "None means dense model" (configuration_deepseek.py).
  const std::uint64_t shared = config.optional_number("n_shared_experts", defaults.shared).value_or(0);
  if (shared > 0) m.shared_width = Quantity("n_shared_experts", shared) * m.expert_width;
  if (config.text("topk_method", defaults.topk_method) == "noaux_tc")
    m.correction = "gate.e_score_correction_bias";
  return m;
}

// Which layers hold experts: mlp_layer_types, where the class has it. moe_layer_freq is "one layer in so many", or a list with a 0 or 1 for each
// layer.
std::function<bool(std::uint64_t)> sparse_layers(ConfigReader& config, const Decoder& d,
                                                 std::uint64_t dense_first_default, bool by_types) {
  if (const auto types = by_types ? layer_texts(config, "mlp_layer_types", d.layers, true) : std::nullopt)
    return [types](std::uint64_t i) { return (*types)[i] == "sparse"; };
  const std::uint64_t dense_first = config.number("first_k_dense_replace", dense_first_default);
  if (config.is_list("moe_layer_freq")) {
    const std::vector<std::uint64_t> listed = *layer_numbers(config, "moe_layer_freq", d.layers);
    return [=](std::uint64_t i) { return i >= dense_first && listed[i] != 0; };
  }
  const std::uint64_t every = config.size("moe_layer_freq", 1).value();
  return [=](std::uint64_t i) { return i >= dense_first && i % every == 0; };
}

void describe_with(ConfigReader& config, ModuleTree& tree, const Defaults& defaults, bool sparse_attention,
                   const std::string& prefix = "") {
  const Decoder d = read_decoder(config, tree, defaults.decoder, HeadDim::unused);
  const LatentAttention a = read_latent_attention(config, d, {});
  const Mixture m = read_mixture(config, tree, d, defaults);
  const auto is_sparse = sparse_layers(config, d, defaults.dense_first, sparse_attention);

  Module attend = attention(a);
  AttentionGeometry g = geometry(a, all_layers(d.layers));
  if (sparse_attention) {
    const Indexer i = read_indexer(config, 64);
    attend.children.push_back(indexer(a, i, config));
    i.note(g);
  }
  tree.attention.push_back(g);

  const std::string path = prefix + "model.layers.{layer}";
  Module dense =
      layers(path, "dense layers", layers_where(d.layers, [&](std::uint64_t i) { return !is_sparse(i); }));
  add_pre_norms(dense, d.hidden);
  dense.children = {attend, gated_mlp(d.mlp())};
  Module sparse = layers(path, "MoE layers", layers_where(d.layers, is_sparse));
  add_pre_norms(sparse, d.hidden);
  sparse.children = {attend, mixture(m)};
  add_frame(tree, d, {dense, sparse}, frame_under(prefix + "model.", prefix + "lm_head"));

  g.layers = layers_after(d.layers, read_mtp_layers(config, defaults.mtp_layers));
  if (g.layers.empty()) return;
  Module layer = layers(path, "", g.layers);
  layer.tensors = sparse.tensors;
  layer.children = sparse.children;
  add_mtp(tree, d, std::move(layer), prefix + "model.embed_tokens.weight", prefix + "lm_head.weight");
  tree.mtp_attention.push_back(std::move(g));
}

void describe_v2(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, kV2Defaults, false);
}
void describe_v3(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, kV3Defaults, false);
}
void describe_v32(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, kV3Defaults, true);
}

// The config's scoring_func says what topk_method does, where it is there. The class of V2 never makes weights
// of experts add up to one; files that choose as V3 does may say V2's architecture (GGUF).
ExpertRouting read_routing(ConfigReader& config, const ModuleTree& tree, std::string_view class_method,
                           const DeepseekForward& defaults) {
  using Method = ExpertRouting::Method;
  ExpertRouting routing;
  const std::string method = config.text("topk_method", class_method);
  if (method == "noaux_tc")
    routing.method = Method::noaux_tc;
  else if (method == "group_limited_greedy")
    routing.method = Method::group_limited_greedy;
  else
    config.require(method == "greedy", "topk_method is none of greedy, group_limited_greedy, noaux_tc");
  if (routing.method != Method::greedy) {
    routing.groups = config.optional_number("n_group", defaults.groups).value_or(1);
    routing.chosen_groups = config.optional_number("topk_group", defaults.chosen_groups).value_or(1);
  }
  config.require(tree.experts_per_token >= 1, "num_experts_per_tok is 0");
  require_groups(config, tree, routing);
  routing.scale = config.real("routed_scaling_factor", defaults.routed_scale);
  routing.renormalize = routing.method == Method::noaux_tc && config.flag("norm_topk_prob", true);
  return routing;
}

Hyperparameters read_with(ConfigReader& config, const ModuleTree& tree, std::string_view method,
                          const DeepseekForward& of_class) {
  Hyperparameters h = read_forward(
      config, tree,
      {.epsilon = of_class.epsilon, .rope = {.context = of_class.context}, .rotates = of_class.rotates});
  h.interleaved_pairs = !of_class.pairs_by_config || config.flag("rope_interleave", true);
  if (tree.experts > 0) h.routing = read_routing(config, tree, method, of_class);
  return h;
}
Hyperparameters read_v2(ConfigReader& config, const ModuleTree& tree) {
  return read_with(config, tree, kV2Defaults.topk_method,
                   {.groups = kV2Defaults.groups,
                    .chosen_groups = kV2Defaults.chosen_groups,
                    .routed_scale = kV2Defaults.routed_scale,
                    .context = kV2Defaults.context,
                    .pairs_by_config = false});
}
Hyperparameters read_v3(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(config, tree, {});
}
Hyperparameters read_v32(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(config, tree, {.context = 163840, .pairs_by_config = false});
}

constexpr std::string_view kBiases[] = {"attention_bias"};
constexpr std::string_view kCarried[] = {
    "rms_norm_eps",          "rope_theta", "rope_scaling", "first_k_dense_replace", "n_shared_experts",
    "routed_scaling_factor", "n_group",    "topk_group",   "topk_method",           "norm_topk_prob"};
constexpr std::span kCarriedByV2 = std::span(kCarried).first<9>();
constexpr std::string_view kIdleOfV2[] = {"norm_topk_prob"};
constexpr GgufFamily kV2InGguf = {.family = "deepseek_v2",
                                  .architecture = "deepseek2",
                                  .hf_class = "DeepseekV2ForCausalLM",
                                  .latent = true,
                                  .omits_tied_head = true,
                                  .experts_key = "n_routed_experts",
                                  .bias_keys = kBiases,
                                  .carried = {kCarriedByV2, kIdleOfV2}};
constexpr GgufFamily kV3InGguf = {.family = "deepseek_v3",
                                  .architecture = "deepseek2",
                                  .hf_class = "DeepseekV3ForCausalLM",
                                  .told_by = GgufFamily::ToldBy::sigmoid_gating,
                                  .latent = true,
                                  .omits_tied_head = true,
                                  .experts_key = "n_routed_experts",
                                  .bias_keys = kBiases,
                                  .topk_method = "noaux_tc",
                                  .carried = {kCarried}};

constexpr std::string_view kV2Architectures[] = {"DeepseekV2ForCausalLM"};
constexpr std::string_view kV2Types[] = {"deepseek_v2"};
constexpr std::string_view kV2Gguf[] = {"deepseek2"};  // V3 and Kimi K2 too: their metadata tell them apart
constexpr std::string_view kV3Architectures[] = {"DeepseekV3ForCausalLM", "KimiK2ForCausalLM"};
constexpr std::string_view kV3Types[] = {"deepseek_v3", "kimi_k2"};
constexpr std::string_view kV32Architectures[] = {"DeepseekV32ForCausalLM"};
constexpr std::string_view kV32Types[] = {"deepseek_v32"};

}  // namespace

LatentAttention read_latent_attention(ConfigReader& config, const Decoder& d, const LatentDefaults& of) {
  LatentAttention a;
  a.hidden = d.hidden;
  a.heads = d.heads;
  a.q_rank = config.optional_size("q_lora_rank", of.q_rank);
  a.kv_rank = config.size("kv_lora_rank", of.kv_rank);
  a.nope_dim = config.size("qk_nope_head_dim", of.nope_dim);
  a.rope_dim = config.size("qk_rope_head_dim", of.rope_dim);
  a.v_dim = config.size("v_head_dim", of.v_dim);
  a.bias = config.flag("attention_bias", false);
  return a;
}

Indexer read_indexer(ConfigReader& config, std::uint64_t heads) {
  return {config.size("index_n_heads", heads), config.size("index_head_dim", 128),
          config.size("index_topk|index_top_k", 2048).value()};
}

void Indexer::note(AttentionGeometry& g) const {
  g.indexer_heads = heads.value();
  g.indexer_head_dim = head_dim.value();
  g.indexer_top_k = top_k;
}

Module indexer(std::string queries, const Quantity& of, const Quantity& hidden, const Indexer& i) {
  Module module{"indexer", "sparse attention indexer", {}, {}, {}};
  const auto add = [&](std::string name, const Quantity& in, const Quantity& out, Role role,
                       bool quantizable) {
    add_linear(module, {.name = std::move(name),
                        .in = in,
                        .out = out,
                        .role = role,
                        .part = Part::attention,
                        .quantizable = quantizable});
  };
  add(std::move(queries), of, i.heads * i.head_dim, Role::indexer_q, true);
  add("wk", hidden, i.head_dim, Role::indexer_k, true);
  add_norm(module, "k_norm", i.head_dim, Role::indexer_k_norm, true, Part::attention);
  add("weights_proj", hidden, i.heads, Role::indexer_weights, false);
  return module;
}

Module indexer(const LatentAttention& a, const Indexer& i, ConfigReader& config) {
  config.require(a.q_rank.has_value(), "q_lora_rank is null, and the indexer projects from it");
  return indexer("wq_b", *a.q_rank, a.hidden, i);
}

void describe_deepseek_v3(ConfigReader& config, ModuleTree& tree, const std::string& prefix) {
  describe_with(config, tree, kV3Defaults, false, prefix);
}

Hyperparameters read_deepseek_forward(ConfigReader& config, const ModuleTree& tree,
                                      const DeepseekForward& of_class) {
  return read_with(config, tree, kV3Defaults.topk_method, of_class);
}

const Family kDeepseekV2 = {
    "deepseek_v2", "DeepSeek V2, V2-Lite", kV2Architectures, kV2Types, kV2Gguf, describe_v2, read_v2,
    &kV2InGguf};
const Family kDeepseekV3 = {
    "deepseek_v3", "DeepSeek V3, R1, V3.1; Kimi K2", kV3Architectures, kV3Types, {}, describe_v3, read_v3,
    &kV3InGguf};
const Family kDeepseekV32 = {"deepseek_v32", "DeepSeek V3.2", kV32Architectures, kV32Types, {},
                             describe_v32,   read_v32};

}  // namespace assay::families
