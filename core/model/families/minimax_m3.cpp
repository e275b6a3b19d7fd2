// MiniMax-M3: M2's experts beside a shared one, norms on each head, and in most layers an index that picks blocks of
// keys for each group of heads; with a CLIP tower or as a text model alone.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all.h"
#include "core/model/families/soft_forward.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

struct BlockIndex {
  Quantity heads, head_dim;
  std::vector<std::uint64_t> layers;  // 1: the layer has one
  std::uint64_t keys = 0;             // in the blocks picked
};
// As transformers writes it: kinds of layers, and the sizes beside them.
std::optional<BlockIndex> read_index_of_kinds(ConfigReader& config, const Quantity& layers) {
  const auto kinds = layer_texts(config, "layer_types", layers);
  if (!kinds || std::find(kinds->begin(), kinds->end(), "minimax_m3_sparse") == kinds->end())
    return std::nullopt;
  BlockIndex index{config.size("index_n_heads", 4), config.size("index_head_dim", 128), {}};
  for (const std::string& kind : *kinds) index.layers.push_back(kind == "minimax_m3_sparse" ? 1 : 0);
  index.keys = (config.size("index_topk_blocks", 16) * config.size("index_block_size", 128)).value();
  return index;
}

std::optional<BlockIndex> read_index(ConfigReader& config, const Quantity& layers) {
  const auto nested = config.config().text_section("sparse_attention_config");
  if (!nested) return read_index_of_kinds(config, layers);
  ConfigReader sparse(*nested, "sparse_attention_config");
  if (!sparse.flag("use_sparse_attention", true)) return std::nullopt;
  BlockIndex index{sparse.size("sparse_num_index_heads", 4), sparse.size("sparse_index_dim", 128), {}};
  index.layers = layer_numbers(sparse, "sparse_attention_freq", layers, true)
                     .value_or(std::vector<std::uint64_t>(layers.value(), 1));
  index.keys = (sparse.size("sparse_topk_blocks", 16) * sparse.size("sparse_block_size", 128)).value();
  return index;
}

// Scores of index queries with index keys, the best of a block of 128 keys: the 16 best blocks attend.
void add_index(Module& attend, const Quantity& hidden, const BlockIndex& i) {
  add_linear(attend, {.name = "index_q_proj",
                      .in = hidden,
                      .out = i.heads * i.head_dim,
                      .role = Role::indexer_q,
                      .part = Part::attention});
  add_linear(attend, {.name = "index_k_proj",
                      .in = hidden,
                      .out = i.head_dim,
                      .role = Role::indexer_k,
                      .part = Part::attention});
  add_norm(attend, "index_q_norm", i.head_dim, Role::indexer_k_norm, false, Part::attention);
  add_norm(attend, "index_k_norm", i.head_dim, Role::indexer_k_norm, false, Part::attention);
}

void describe_minimax_m3(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 200064,
                                  .hidden = 6144,
                                  .intermediate = 3072,
                                  .layers = 60,
                                  .heads = 64,
                                  .kv_heads = 4,
                                  .head_dim = 128});
  HeadAttention a = d.attention();
  if (config.flag("use_qk_norm", true))
    a.qk_norm = config.text("qk_norm_type", "per_head") == "per_head" ? QkNorm::per_head : QkNorm::full_width;
  Mixture m{d.hidden, read_experts(config, tree, "num_local_experts", 128, "num_experts_per_tok", 4),
            d.intermediate};
  m.path = "block_sparse_moe";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  m.shared_names = {"gate_proj", "up_proj", "down_proj"};
  if (config.flag("use_routing_bias", true)) m.correction = "e_score_correction_bias";
  const std::uint64_t shared = config.number("shared_intermediate_size", 3072);
  if (shared > 0 && config.optional_number("n_shared_experts", 1).value_or(0) > 0)
    m.shared_width = Quantity("shared_intermediate_size", shared);
  GatedMlp dense = d.mlp();
  dense.intermediate = config.size("dense_intermediate_size", 12288);

  const auto freq = layer_numbers(config, "moe_layer_freq", d.layers, true);
  const auto mlps = freq ? std::nullopt : layer_texts(config, "mlp_layer_types", d.layers);
  const auto is_sparse = [&](std::uint64_t i) {
    return freq ? (*freq)[i] != 0 : !mlps || (*mlps)[i] == "sparse";
  };
  const auto index = read_index(config, d.layers);
  const auto is_indexed = [&](std::uint64_t i) { return index && index->layers[i] != 0; };
  const std::string before = is_nested(config) ? "language_model." : "", prefix = before + "model.";
  const auto groups = group_layers(
      prefix + "layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_sparse(i) ? "MoE layers" : "dense layers") +
               (is_indexed(i) ? " with sparse attention" : "");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(a), is_sparse(i) ? mixture(m) : gated_mlp(dense)};
        if (is_indexed(i)) add_index(layer.children[0], d.hidden, *index);
      });
  add_frame(tree, d, groups, frame_under(prefix, before + "lm_head"));
  const auto plain = layers_where(d.layers, [&](std::uint64_t i) { return !is_indexed(i); });
  if (!plain.empty()) tree.attention.push_back(geometry(a, plain));
  if (index && plain.size() < d.layers.value()) {
    AttentionGeometry g = geometry(a, layers_where(d.layers, is_indexed));
    g.indexer_heads = index->heads.value();
    g.indexer_head_dim = index->head_dim.value();
    g.indexer_top_k = index->keys;
    tree.attention.push_back(g);
  }
  const std::uint64_t modules = config.optional_number("num_mtp_modules").value_or(0);
  if (modules > 0)
    tree.not_counted.push_back(
        {fmt::format("{} MTP modules the config names; published checkpoints hold none", modules),
         std::nullopt});
  add_minimax_vision(config, tree, d.hidden);
}

constexpr std::string_view kM3Architectures[] = {"MiniMaxM3SparseForConditionalGeneration",
                                                 "MiniMaxM3SparseForCausalLM", "MiniMaxM3ForCausalLM",
                                                 "MiniMaxM3VLForCausalLM"};
constexpr std::string_view kM3Types[] = {"minimax_m3_vl", "minimax_m3_vl_text", "minimax_m3"};

}  // namespace

const Family kMinimaxM3 = {"minimax_m3", "MiniMax-M3",        kM3Architectures,  kM3Types,
                           {},           describe_minimax_m3, forward_minimax_m3};

}  // namespace assay::families
