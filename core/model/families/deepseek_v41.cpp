// DeepSeek-V4.1: V4's layers without its tables of tokens. Most of them attend, behind their window, to entries that one of
// a few layers before them makes of the sequence (kv_source_layer_ids), picked by an indexer that a few have
// (index_source_layer_ids). Some put embeddings of n-grams into the streams, three layers draft tokens (DSpark), and a ViT
// sees. Names and shapes as vLLM 0.33 loads them (vllm/models/deepseek_v41).
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all_hub.h"
#include "core/model/families/deepseek_v4.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

// Embeddings of n-grams: which layers have them, the rows of each one's table.
struct Engrams {
  std::vector<std::uint64_t> layers, rows;
  Quantity columns, width;  // looked up for a token, and how wide each is
};

struct V41 {
  V4Sizes sizes;
  std::vector<std::uint64_t> ratios, key_sources, index_sources;
  Engrams engrams;
  bool sees = false;  // experts are chosen by another bias where an image is

  std::uint64_t window = 0;
  bool makes_keys(std::uint64_t i) const { return ratios[i] > 0 && contains(key_sources, i); }
  bool has_indexer(std::uint64_t i) const { return ratios[i] > 0 && contains(index_sources, i); }
  bool has_engrams(std::uint64_t i) const { return contains(engrams.layers, i); }
  static bool contains(const std::vector<std::uint64_t>& list, std::uint64_t i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  }
};

std::vector<std::uint64_t> some_layers(ConfigReader& config, std::string_view key, const Decoder& d) {
  const auto listed = config.numbers(key).value_or(std::vector<std::uint64_t>());
  for (const std::uint64_t layer : listed)
    config.require(layer < d.layers.value(), fmt::format("{} names layer {}, {} says {}", key, layer,
                                                         d.layers.name(), d.layers.value()));
  return listed;
}

Engrams read_engrams(ConfigReader& config, const Decoder& d) {
  Engrams e;
  e.layers = some_layers(config, "engram_layer_ids", d);
  if (e.layers.empty()) return e;
  e.rows = config.numbers("engram_num_embeddings").value_or(std::vector<std::uint64_t>());
  const bool sane = e.rows.size() == e.layers.size() &&
                    std::all_of(e.rows.begin(), e.rows.end(),
                                [](std::uint64_t rows) { return rows > 0 && rows <= UINT32_MAX; });
  config.require(sane, "engram_num_embeddings is no number of rows for each of engram_layer_ids");
  const Quantity longest = config.size("engram_max_ngram_size"), heads = config.size("engram_n_heads");
  config.require(longest.value() >= 2 && longest.value() <= 64,
                 "engram_max_ngram_size is not within 2 and 64");
  e.columns = Quantity("n-grams of a token", longest.value() - 1) * heads;
  e.width = config.size("engram_head_dim");
  return e;
}

V41 read_v41(ConfigReader& config, ModuleTree& tree) {
  V41 k;
  k.sizes = read_v4_sizes(config, tree);
  const Decoder& d = k.sizes.d;
  // The list goes on with the layers that draft.
  k.ratios = config.numbers("compress_ratios").value_or(std::vector<std::uint64_t>(d.layers.value(), 0));
  config.require(k.ratios.size() >= d.layers.value(),
                 fmt::format("compress_ratios lists {} layers, {} says {}", k.ratios.size(), d.layers.name(),
                             d.layers.value()));
  for (const std::uint64_t ratio : k.ratios)
    config.require(ratio <= 65536,
                   fmt::format("compress_ratios holds {}: no layer compresses so much", ratio));
  k.key_sources = some_layers(config, "kv_source_layer_ids", d);
  k.index_sources = some_layers(config, "index_source_layer_ids", d);
  k.engrams = read_engrams(config, d);
  k.sees = config.config().section("vision_config").has_value();
  k.window = config.size("sliding_window", 128).value();
  return k;
}

// An entry for `ratio` tokens; of one token there is nothing to weigh.
Module compressor_of(const V4Sizes& s, std::uint64_t ratio) {
  Module module{"compressor", "compressor", {}, {}, {}};
  add_v4_linear(module, "wkv", s.d.hidden, s.d.head_dim, Role::compressor, false);
  if (ratio > 1) add_v4_linear(module, "wgate", s.d.hidden, s.d.head_dim, Role::compressor, false);
  add_norm(module, "norm", s.d.head_dim, Role::compressor, false, Part::attention);
  return module;
}

// Where entries are made, the indexer makes its keys of them; other indexers read those.
Module indexer_of(const V4Sizes& s, bool makes_keys) {
  Module module{"indexer", "sparse attention indexer", {}, {}, {}};
  add_v4_linear(module, "wq_b", s.q_rank, s.indexer.heads * s.indexer.head_dim, Role::indexer_q);
  add_v4_linear(module, "weights_proj", s.d.hidden, s.indexer.heads, Role::indexer_weights, false);
  if (!makes_keys) return module;
  add_v4_linear(module, "wk", s.d.head_dim, s.indexer.head_dim, Role::indexer_k, false);
  add_norm(module, "k_norm", s.indexer.head_dim, Role::indexer_k_norm, false, Part::attention);
  return module;
}

// Rows of the table make a key for each stream and one value; how well a key fits its stream gates the value.
Module engram_of(const V41& k, std::uint64_t rows) {
  const V4Sizes& s = k.sizes;
  Module module{"engram", "n-grams into the streams", {}, {}, {}};
  add_linear(module, {.name = "wkv",
                      .in = k.engrams.columns * k.engrams.width,
                      .out = (s.streams + Quantity(1)) * s.d.hidden,
                      .role = Role::per_layer_embedding,
                      .part = Part::dense_mlp});
  for (const char* name : {"q_weight", "k_weight"})
    module.tensors.push_back(
        parameter(name, {s.streams, s.d.hidden}, Role::per_layer_embedding, Part::dense_mlp));
  Module table{"embed", "embeddings of n-grams", {}, {}, {}};
  table.tensors.push_back(
      parameter("weight", {rows, k.engrams.width}, Role::position_embedding, Part::embedding));
  module.children = {std::move(table)};
  return module;
}

Module experts_of_v41(const V41& k, const Experts& experts) {
  Mixture m = k.sizes.mixture;
  m.experts = experts;
  Module module = mixture(m);
  if (k.sees) add_v4_image_bias(module, experts.count);
  return module;
}

void fill_v41_layer(Module& layer, const V41& k, std::uint64_t i) {
  add_v4_frame(layer, k.sizes);
  Module attend = v4_attention(k.sizes);
  if (k.makes_keys(i)) attend.children.push_back(compressor_of(k.sizes, k.ratios[i]));
  if (k.has_indexer(i)) attend.children.push_back(indexer_of(k.sizes, k.makes_keys(i)));
  layer.children = {std::move(attend), experts_of_v41(k, k.sizes.mixture.experts)};
  if (!k.has_engrams(i)) return;
  const auto at = std::find(k.engrams.layers.begin(), k.engrams.layers.end(), i) - k.engrams.layers.begin();
  layer.children.push_back(engram_of(k, k.engrams.rows[static_cast<std::size_t>(at)]));
}

// Layers of one kind stand together; each table has rows of its own.
std::string kind_of(const V41& k, std::uint64_t i) {
  std::string kind = k.ratios[i] == 0 ? "window alone" : fmt::format("one entry for {}", k.ratios[i]);
  if (k.makes_keys(i)) kind += ", made here";
  if (k.has_indexer(i)) kind += ", indexed";
  if (k.has_engrams(i)) kind += fmt::format(", n-grams (layer {})", i);
  return "layers, " + kind;
}

// Its layers have experts of their own number.
Module drafting_experts(ConfigReader& config, const V41& k) {
  const Experts& main = k.sizes.mixture.experts;
  const Quantity routed = config.size("dspark_n_routed_experts", main.count);
  const Quantity visited = config.size("dspark_num_experts_per_tok", main.active);
  config.require(visited.value() <= routed.value() && routed.value() <= 65536,
                 "dspark_n_routed_experts are fewer than dspark_num_experts_per_tok, or absurdly many");
  return experts_of_v41(k, {routed, visited.value()});
}

void add_v41_vision(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  add_v4_vision(tree, {.width = vision->size("hidden_size", 1024),
                       .wide = vision->size("intermediate_size", 2816),
                       .patch = vision->size("patch_size", 14),
                       .joined = vision->size("downsample_ratio", 3),
                       .depth = read_layers(*vision, "num_hidden_layers", 32),
                       .marks = {"image_start", "image_end", "image_newline"}});
}

void describe_v41(ConfigReader& config, ModuleTree& tree) {
  const V41 k = read_v41(config, tree);
  const Decoder& d = k.sizes.d;
  const auto groups = group_layers(
      "layers.{layer}", d.layers, [&](std::uint64_t i) { return kind_of(k, i); },
      [&](Module& layer, std::uint64_t i) { fill_v41_layer(layer, k, i); });
  add_frame(tree, d, groups, {.embedding = "embed", .final_norm = "norm", .head = "head"});
  // Every layer keeps its window; entries are kept where they are made.
  const auto plain = layers_where(d.layers, [&](std::uint64_t i) { return !k.makes_keys(i); });
  if (!plain.empty()) tree.attention.push_back(v4_cache(k.sizes, 0, plain, k.window));
  for (const std::uint64_t source :
       layers_where(d.layers, [&](std::uint64_t i) { return k.makes_keys(i); })) {
    tree.attention.push_back(v4_cache(k.sizes, k.ratios[source], {source}, k.window));
    if (k.has_indexer(source)) k.sizes.indexer.note(tree.attention.back());
  }
  if (drafts(config))
    add_drafting(config, tree, k.sizes,
                 {.count = read_mtp_layers(config, 3),
                  .experts = drafting_experts(config, k),
                  .looked_up = "embed",
                  .predicted = "head"});
  add_v41_vision(config, tree);
}

constexpr std::string_view kV41Architectures[] = {"DeepseekV41ForCausalLM"};
constexpr std::string_view kV41Types[] = {"deepseek_v41", "deepseek_v41_text"};

}  // namespace

const Family kDeepseekV41 = {"deepseek_v41", "DeepSeek V4.1", kV41Architectures, kV41Types, {},
                             describe_v41,   nullptr};

}  // namespace assay::families
