// dots3-note: DeepSeek-V3.2's attention under a gate a head in some layers, latent attention of other sizes with a window
// in the others; DeepSeek's experts.
#include <algorithm>
#include <map>
#include <set>

#include "core/model/families/all_2026.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/dots3_towers.h"
#include "core/model/families/forward.h"
#include "core/model/families/told_layers.h"
#include "core/system/json.h"

namespace assay::families {
namespace {

using namespace blocks;

// A layer's own sizes, where per_layer_config has them, over those of all.
LatentAttention layer_sizes(const ConfigReader& config, const ModelConfig& section,
                            const LatentAttention& of_all) {
  ConfigReader own(section, "per_layer_config");
  LatentAttention a = of_all;
  const auto over = [&](const char* key, Quantity& size) {
    if (own.has(key)) size = own.size(key);
  };
  over("num_attention_heads", a.heads);
  over("kv_lora_rank", a.kv_rank);
  over("qk_nope_head_dim", a.nope_dim);
  over("qk_rope_head_dim", a.rope_dim);
  over("v_head_dim", a.v_dim);
  config.require(a.q_rank.has_value(), "q_lora_rank is null, and gates and indexer read its projection");
  over("q_lora_rank", *a.q_rank);
  return a;
}

// The released spelling: the same for every layer with a window.
LatentAttention window_sizes(ConfigReader& config, const LatentAttention& of_all) {
  LatentAttention a = of_all;
  a.heads = config.size("swa_num_attention_heads", 64);
  a.q_rank = config.size("swa_q_lora_rank", 1024);
  a.kv_rank = config.size("swa_kv_lora_rank", 1024);
  a.nope_dim = config.size("swa_qk_nope_head_dim", 192);
  const std::uint64_t whole = config.size("swa_head_dim", 256).value();
  config.require(whole > a.nope_dim.value(), "swa_head_dim is no larger than swa_qk_nope_head_dim");
  a.rope_dim = config.size("swa_qk_rope_head_dim",
                           Quantity("swa_head_dim - swa_qk_nope_head_dim", whole - a.nope_dim.value()));
  a.v_dim = config.size("swa_v_head_dim", 128);
  return a;
}

enum class Dots3Layer { indexed, full, window };

// use_dsa, and any config without per_layer_config, says of all layers without a window at once whether they have an
// indexer; else the names in layer_types do.
std::vector<Dots3Layer> dots3_kinds(ConfigReader& config, const Quantity& count, bool by_layer) {
  const bool at_once = config.has("use_dsa") || !by_layer;
  const bool dsa = config.flag("use_dsa", true), windows = config.flag("use_sliding_window", true);
  const auto types = layer_texts(config, "layer_types", count);
  std::vector<Dots3Layer> kinds;
  for (std::uint64_t i = 0; i < count.value(); ++i) {
    const bool narrow = types ? (*types)[i] == "sliding_attention" : windows && i >= 2 && i % 4 != 1;
    const bool indexed = at_once || !types ? dsa : (*types)[i] == "indexed_attention";
    kinds.push_back(narrow ? Dots3Layer::window : indexed ? Dots3Layer::indexed : Dots3Layer::full);
  }
  return kinds;
}

Module dots3_attention(const LatentAttention& a, const Indexer* i, ConfigReader& config) {
  Module module = attention(a);
  add_norm(module, "k_rope_only_layernorm", a.rope_dim, Role::k_norm, false, Part::attention);
  add_linear(module, {.name = "g_proj",
                      .in = a.hidden,
                      .out = a.heads,
                      .role = Role::attention_gate,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = a.heads.value()});
  if (i != nullptr) module.children.push_back(indexer(a, *i, config));
  return module;
}

std::function<bool(std::uint64_t)> dots3_sparse(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "mlp_layer_types", count))
    return [types](std::uint64_t i) { return (*types)[i] == "sparse"; };
  const std::uint64_t dense = config.number("first_k_dense_replace", 1);
  if (const auto listed =
          config.is_list("moe_layer_freq") ? layer_numbers(config, "moe_layer_freq", count) : std::nullopt)
    return [=](std::uint64_t i) { return i >= dense && (*listed)[i] != 0; };
  const std::uint64_t every = config.size("moe_layer_freq", 1).value();
  return [=](std::uint64_t i) { return i >= dense && i % every == 0; };
}

// By layer: what it projects, in the words of per_layer_config ("02", or "2") or of swa_*.
std::vector<LatentAttention> dots3_sizes(ConfigReader& config, const LatentAttention& of_all,
                                         const std::vector<Dots3Layer>& kinds) {
  std::vector<LatentAttention> sizes(kinds.size(), of_all);
  const bool told = visit_told_layers(config, sizes.size(), [&](std::size_t layer, const ModelConfig& own) {
    sizes[layer] = layer_sizes(config, own, of_all);
  });
  if (told || std::find(kinds.begin(), kinds.end(), Dots3Layer::window) == kinds.end()) return sizes;
  const LatentAttention narrow = window_sizes(config, of_all);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == Dots3Layer::window) sizes[i] = narrow;
  }
  return sizes;
}

// What a layer for prediction attends by: with a window, unless mtp_layer_types says otherwise.
struct Dots3Prediction {
  std::uint64_t count;
  std::vector<std::string> types;  // empty: all have a window
  LatentAttention narrow, of_all;
  std::optional<Indexer> index;  // where layers without a window have one
  std::uint64_t window;
};

// A layer with a dense MLP and, for all of them, a table of embeddings of their own; published configs do not tell of them.
// Sources: vLLM 0.32 (models/dots3_note/nvidia/mtp.py, config/speculative.py) and llama.cpp (conversion/dots3.py).
void add_dots3_prediction(ConfigReader& config, ModuleTree& tree, const Decoder& d,
                          const Dots3Prediction& p) {
  const auto at = layers_after(d.layers, p.count);
  for (std::size_t n = 0; n < at.size(); ++n) {
    const bool narrow = p.types.empty() || p.types[n] == "sliding_attention";
    const LatentAttention& a = narrow ? p.narrow : p.of_all;
    const Indexer* index = !narrow && p.index ? &*p.index : nullptr;
    Module layer = layers("model.layers.{layer}", "multi-token prediction", {at[n]});
    add_pre_norms(layer, d.hidden);
    layer.children = {dots3_attention(a, index, config), gated_mlp(d.mlp()), mtp_own(d.hidden, {})};
    tree.mtp.push_back(std::move(layer));
    AttentionGeometry g = geometry(a, {at[n]});
    if (narrow) g.window = p.window;
    if (index != nullptr) index->note(g);
    tree.mtp_attention.push_back(std::move(g));
  }
  if (at.empty()) return;
  Module table = embedding("model.mtp.embed_tokens", d.vocabulary, d.hidden);
  table.title = "embedding of prediction";
  table.tensors.front().part = Part::mtp;
  tree.mtp.push_back(std::move(table));
}

// The sizes of layers with a window: those of the first; where there is none, what a released config says of them.
LatentAttention dots3_narrow(ConfigReader& config, const LatentAttention& of_all,
                             const std::vector<LatentAttention>& sizes,
                             const std::vector<Dots3Layer>& kinds) {
  const auto first = std::find(kinds.begin(), kinds.end(), Dots3Layer::window);
  return first == kinds.end() ? window_sizes(config, of_all)
                              : sizes[static_cast<std::size_t>(first - kinds.begin())];
}

Dots3Prediction read_dots3_prediction(ConfigReader& config, const LatentAttention& of_all,
                                      const std::vector<LatentAttention>& sizes,
                                      const std::vector<Dots3Layer>& kinds) {
  // As transformers saves it, a config tells the sizes layer by layer, and the checkpoint holds no such layer.
  const bool released = !config.config().text_section("per_layer_config");
  Dots3Prediction p = {read_mtp_layers(config, released ? 1 : 0), {}, of_all, of_all, {}, 0};
  if (p.count == 0) return p;
  p.narrow = dots3_narrow(config, of_all, sizes, kinds);
  p.window = config.number("sliding_window|sliding_window_size", 512);
  if (auto types = layer_texts(config, "mtp_layer_types", Quantity(p.count))) p.types = std::move(*types);
  if (config.flag("use_dsa", true)) p.index = read_indexer(config, 64);
  return p;
}

void describe_dots3_note(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 152064, .hidden = 5120, .intermediate = 13824, .layers = 46, .heads = 128},
      HeadDim::unused);
  const LatentAttention of_all = read_latent_attention(config, d, {.q_rank = 1024});
  config.require(of_all.q_rank.has_value(), "q_lora_rank is null, and the indexer projects from it");
  const auto kinds =
      dots3_kinds(config, d.layers, config.config().text_section("per_layer_config").has_value());
  const auto sizes = dots3_sizes(config, of_all, kinds);
  const Indexer index = read_indexer(config, 64);
  Mixture m{d.hidden,
            read_experts(config, tree, "n_routed_experts|num_local_experts", 256, "num_experts_per_tok", 8),
            config.size("moe_intermediate_size", 1536)};
  m.correction = "gate.e_score_correction_bias";
  m.shared_width = config.size("n_shared_experts", 1) *
                   config.size("moe_shared_expert_intermediate_size|shared_experts_intermediate_size", 1536);
  const auto is_sparse = dots3_sparse(config, d.layers);
  const std::uint64_t window = config.number("sliding_window|sliding_window_size", 512);

  // Layers of one kind and with the same sizes attend alike.
  std::map<std::vector<std::uint64_t>, std::vector<std::uint64_t>> alike;
  const auto key_of = [&](std::uint64_t i) {
    const LatentAttention& a = sizes[i];
    return std::vector<std::uint64_t>{static_cast<std::uint64_t>(kinds[i]),
                                      a.heads.value(),
                                      a.q_rank->value(),
                                      a.kv_rank.value(),
                                      a.nope_dim.value(),
                                      a.rope_dim.value(),
                                      a.v_dim.value()};
  };
  for (std::uint64_t i = 0; i < d.layers.value(); ++i) alike[key_of(i)].push_back(i);
  const bool numbered = alike.size() > std::set<Dots3Layer>(kinds.begin(), kinds.end()).size();
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        const auto number = std::distance(alike.begin(), alike.find(key_of(i)));
        const char* what = kinds[i] == Dots3Layer::window ? " layers with a window"
                           : kinds[i] == Dots3Layer::full ? " layers without indexer"
                                                          : " layers";
        return (is_sparse(i) ? "MoE" : "dense") + std::string(what) +
               (numbered ? " " + std::to_string(number) : "");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {
            dots3_attention(sizes[i], kinds[i] == Dots3Layer::indexed ? &index : nullptr, config),
            is_sparse(i) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  for (const auto& [key, layers] : alike) {
    AttentionGeometry g = geometry(sizes[layers.front()], layers);
    const Dots3Layer kind = kinds[layers.front()];
    if (kind == Dots3Layer::indexed) index.note(g);
    if (kind == Dots3Layer::window) g.window = window;
    tree.attention.push_back(std::move(g));
  }
  add_dots3_prediction(config, tree, d, read_dots3_prediction(config, of_all, sizes, kinds));
  add_dots3_towers(config, tree);
}

// Layers with a window rotate by another base than those without, unless rope_parameters say one for all.
RopeRule dots3_rope(ConfigReader& config, const AttentionGeometry& g) {
  const ParsedJson *told = object_in(config, "rope_parameters"), *older = object_in(config, "rope_scaling");
  const bool tells = (told != nullptr && !told->empty()) || (older != nullptr && !older->empty());
  const bool by_kind = told != nullptr &&
                       std::any_of(told->begin(), told->end(), [](const auto& of) { return of.is_object(); });
  const bool narrow = g.window != 0;
  const RopeClass of_class = {.theta = narrow && !tells ? 5e4 : 8e7,
                              .context = 524288,
                              .theta_key = narrow && !tells ? "swa_rope_theta" : "rope_theta"};
  const char* kind = narrow                 ? "sliding_attention"
                     : g.indexer_top_k == 0 ? "full_attention"
                                            : "indexed_attention";
  return read_rope(config, g.rope_head_dim, of_class, by_kind ? kind : "");
}

Hyperparameters forward_dots3_note(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_deepseek_forward(config, tree,
                                            {.groups = 1,
                                             .chosen_groups = 1,
                                             .routed_scale = 1,
                                             .context = 524288,
                                             .epsilon = 1e-5,
                                             .pairs_by_config = false,
                                             .rotates = false});
  for (const AttentionGeometry& g : tree.attention) {
    for (const std::uint64_t layer : g.layers) h.rope_of.at(layer) = h.ropes.size();
    h.ropes.push_back(dots3_rope(config, g));
  }
  for (const AttentionGeometry& g : tree.mtp_attention) {  // a layer each, in their order
    h.rope_of.push_back(h.ropes.size());
    h.ropes.push_back(dots3_rope(config, g));
  }
  return h;
}

constexpr std::string_view kDots3Architectures[] = {"Dots3NoteForCausalLM",
                                                    "Dots3NoteForConditionalGeneration"},
                           kDots3Types[] = {"dots3_note_text", "dots3_note"};

}  // namespace

const Family kDots3Note = {"dots3_note", "dots3-note",        kDots3Architectures, kDots3Types,
                           {},           describe_dots3_note, forward_dots3_note};

}  // namespace assay::families
