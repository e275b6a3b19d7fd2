// GLM-5 to 5.3: DeepSeek-V3.2 with an indexer in some layers only (the others take the last one's choice), and an MTP
// layer that stores no copies of embedding and head.
#include "core/model/families/all.h"
#include "core/model/families/deepseek.h"

namespace assay::families {
namespace {

using namespace blocks;

// indexer_types; else index_topk_pattern ("FFFSSS…"); else every index_topk_freq-th behind an offset.
std::function<bool(std::uint64_t)> indexed_layers(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "indexer_types", count, true))
    return [types](std::uint64_t i) { return (*types)[i] == "full"; };
  const std::string pattern = config.has("index_topk_pattern") ? config.text("index_topk_pattern", "") : "";
  if (!pattern.empty()) {
    config.require(pattern.size() >= count.value(), "index_topk_pattern is shorter than the layers are many");
    return [pattern](std::uint64_t i) { return pattern[i] == 'F'; };
  }
  const std::uint64_t every = config.size("index_topk_freq", 1).value();
  const std::uint64_t offset = config.number("index_skip_topk_offset", 2);
  return [=](std::uint64_t i) { return (i + 1 < offset ? 0 : i + 1 - offset) % every == 0; };
}

std::function<bool(std::uint64_t)> glm_sparse_layers(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "mlp_layer_types", count, true))
    return [types](std::uint64_t i) { return (*types)[i] == "sparse"; };
  const std::uint64_t dense = config.number("first_k_dense_replace", 3);
  return [dense](std::uint64_t i) { return i >= dense; };
}

void describe_glm_moe_dsa(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 154880, .hidden = 6144, .intermediate = 12288, .layers = 78, .heads = 64},
      HeadDim::unused);
  const LatentAttention a = read_latent_attention(config, d, {.q_rank = 2048, .nope_dim = 192, .v_dim = 256});
  const Indexer i = read_indexer(config, 32);
  Mixture m{d.hidden,
            read_experts(config, tree, "n_routed_experts|num_local_experts", 256, "num_experts_per_tok", 8),
            config.size("moe_intermediate_size", 2048)};
  m.correction = "gate.e_score_correction_bias";
  const std::uint64_t shared = config.optional_number("n_shared_experts", 1).value_or(0);
  if (shared > 0) m.shared_width = Quantity("n_shared_experts", shared) * m.expert_width;

  const auto is_indexed = indexed_layers(config, d.layers), is_sparse = glm_sparse_layers(config, d.layers);
  Module with_indexer = attention(a);
  with_indexer.children.push_back(indexer(a, i, config));
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t l) {
        return std::string(is_sparse(l) ? "MoE" : "dense") + " layers" +
               (is_indexed(l) ? "" : " without indexer");
      },
      [&](Module& layer, std::uint64_t l) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_indexed(l) ? with_indexer : attention(a),
                          is_sparse(l) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);

  AttentionGeometry indexed = geometry(a, layers_where(d.layers, is_indexed));
  i.note(indexed);
  AttentionGeometry shares =
      geometry(a, layers_where(d.layers, [&](std::uint64_t l) { return !is_indexed(l); }));
  shares.indexer_top_k = i.top_k;
  for (AttentionGeometry* g : {&indexed, &shares}) {
    if (!g->layers.empty()) tree.attention.push_back(*g);
  }
  indexed.layers = layers_after(d.layers, read_mtp_layers(config, 0));
  if (indexed.layers.empty()) return;
  Module layer = layers("model.layers.{layer}", "multi-token prediction", indexed.layers);
  add_pre_norms(layer, d.hidden);
  layer.children = {with_indexer, mixture(m), mtp_own(d.hidden, {})};
  tree.mtp.push_back(std::move(layer));
  tree.mtp_attention.push_back(std::move(indexed));
}

Hyperparameters read_glm_moe_dsa(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(
      config, tree,
      {.groups = 1, .chosen_groups = 1, .context = 202752, .epsilon = 1e-5, .pairs_by_config = false});
}

constexpr std::string_view kGlmDsaArchitectures[] = {"GlmMoeDsaForCausalLM"};
constexpr std::string_view kGlmDsaTypes[] = {"glm_moe_dsa"};

}  // namespace

const Family kGlmMoeDsa = {
    "glm_moe_dsa",        "GLM-5, 5.1, 5.2, 5.3", kGlmDsaArchitectures, kGlmDsaTypes, {},
    describe_glm_moe_dsa, read_glm_moe_dsa};

}  // namespace assay::families
