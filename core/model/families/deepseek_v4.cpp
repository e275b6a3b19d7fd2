// DeepSeek-V4: one head of keys that are values, compressed behind a short window (every 4 or every 128 tokens one
// entry), an output projection in groups, residuals in m streams (hyper-connections), and experts in every layer, which
// the first layers choose by a table of tokens. Names have no "model.".
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/all.h"
#include "core/model/families/deepseek_v4.h"
#include "core/model/families/forward.h"

namespace assay::families {

using namespace blocks;

void add_v4_linear(Module& module, const std::string& name, const Quantity& in, const Quantity& out,
                   Role role, bool quantizable, Partition partition, std::uint64_t units) {
  add_linear(module, {.name = name,
                      .in = in,
                      .out = out,
                      .role = role,
                      .part = Part::attention,
                      .partition = partition,
                      .units = units,
                      .quantizable = quantizable});
}

Module v4_attention(const V4Sizes& s) {
  const Decoder& d = s.d;
  const std::uint64_t heads = d.heads.value();
  Module module{"attn", "attention (shared keys and values)", {}, {}, {}};
  Module own{"", "queries, keys, output", {}, {}, {}};
  add_v4_linear(own, "wq_a", d.hidden, s.q_rank, Role::q_a);
  add_norm(own, "q_norm", s.q_rank, Role::q_a_norm, false, Part::attention);
  add_v4_linear(own, "wq_b", s.q_rank, d.heads * d.head_dim, Role::q_b, true, Partition::columns, heads);
  add_v4_linear(own, "wkv", d.hidden, d.head_dim, Role::kv_a);
  add_norm(own, "kv_norm", d.head_dim, Role::kv_a_norm, false, Part::attention);
  const Quantity per_group("heads × head_dim / o_groups", (d.heads * d.head_dim).value() / s.groups.value());
  add_v4_linear(own, "wo_a", per_group, s.groups * s.group_rank, Role::attention_output, true,
                Partition::columns, s.groups.value());
  add_v4_linear(own, "wo_b", s.groups * s.group_rank, d.hidden, Role::attention_output, true, Partition::rows,
                s.groups.value());
  TensorSpec sink = parameter("attn_sink", {d.heads}, Role::sinks, Part::attention);
  sink.parallel = {Partition::columns, 0, {{Role::sinks, heads, heads}}};
  own.tensors.push_back(std::move(sink));
  module.children.push_back(std::move(own));
  return module;
}

void add_v4_streams(Module& module, const std::string& name, const Quantity& coefficients,
                    std::uint64_t scales, const V4Sizes& s) {
  for (const auto& [what, shape] :
       {std::pair{"_fn", std::vector<Quantity>{coefficients, s.streams * s.d.hidden}},
        {"_base", {coefficients}},
        {"_scale", {Quantity(scales)}}})
    module.tensors.push_back(parameter(name + what, shape, Role::residual_mix, Part::norm));
}

void add_v4_frame(Module& layer, const V4Sizes& s) {
  const Quantity m = s.streams, coefficients = (Quantity(2) + m) * m;
  add_norm(layer, "attn_norm", s.d.hidden, Role::input_norm);
  add_norm(layer, "ffn_norm", s.d.hidden, Role::pre_feedforward_norm);
  add_v4_streams(layer, "hc_attn", coefficients, 3, s);
  add_v4_streams(layer, "hc_ffn", coefficients, 3, s);
}

V4Sizes read_v4_sizes(ConfigReader& config, ModuleTree& tree) {
  V4Sizes s;
  s.d = read_decoder(config, tree,
                     {.vocabulary = 129280,
                      .hidden = 4096,
                      .intermediate = 0,
                      .layers = 43,
                      .heads = 64,
                      .kv_heads = 1,
                      .head_dim = 512});
  s.q_rank = config.size("q_lora_rank", 1024);
  s.groups = config.size("o_groups", 8);
  s.group_rank = config.size("o_lora_rank", 1024);
  s.streams = config.size("hc_mult", 4);
  config.require_divides(s.groups, s.d.heads);
  s.indexer = read_indexer(config, 64);
  Mixture& m = s.mixture;
  m.hidden = s.d.hidden;
  m.experts = read_experts(config, tree, "n_routed_experts|num_local_experts", 256, "num_experts_per_tok", 6);
  m.expert_width = config.size("moe_intermediate_size", 2048);
  m.path = "ffn";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  m.correction = "gate.bias";
  const std::uint64_t shared = config.optional_number("n_shared_experts", 1).value_or(0);
  if (shared > 0) m.shared_width = Quantity("n_shared_experts", shared) * m.expert_width;
  return s;
}

AttentionGeometry v4_cache(const V4Sizes& s, std::uint64_t ratio, std::vector<std::uint64_t> where,
                           std::uint64_t window) {
  AttentionGeometry g = geometry(s.d.attention(), std::move(where), window);
  g.keys_are_values = true;
  g.compressed = ratio;
  if (ratio == 4) s.indexer.note(g);
  return g;
}

namespace {

// An entry for `ratio` tokens: norm(Σ softmax(wgate(x) + ape) · wkv(x)). At ratio 4 windows overlap, and there are two of
// each.
Module compressor(const Quantity& hidden, const Quantity& width, std::uint64_t ratio) {
  Module module{"compressor", "compressor", {}, {}, {}};
  const Quantity wide = ratio == 4 ? Quantity(2) * width : width;
  add_v4_linear(module, "wkv", hidden, wide, Role::compressor, false);
  add_v4_linear(module, "wgate", hidden, wide, Role::compressor, false);
  module.tensors.push_back(parameter("ape", {Quantity(ratio), wide}, Role::compressor, Part::attention));
  add_norm(module, "norm", width, Role::compressor, false, Part::attention);
  return module;
}

// Behind the window, an entry for `ratio` tokens; at ratio 4 an indexer picks among them.
Module attention_of(const V4Sizes& s, std::uint64_t ratio) {
  const Decoder& d = s.d;
  Module module = v4_attention(s);
  if (ratio == 0) return module;
  module.children.push_back(compressor(d.hidden, d.head_dim, ratio));
  if (ratio != 4) return module;
  Module indexer{"indexer", "sparse attention indexer", {}, {}, {}};
  add_v4_linear(indexer, "wq_b", s.q_rank, s.indexer.heads * s.indexer.head_dim, Role::indexer_q);
  add_v4_linear(indexer, "weights_proj", d.hidden, s.indexer.heads, Role::indexer_weights, false);
  indexer.children = {compressor(d.hidden, s.indexer.head_dim, ratio)};
  module.children.push_back(std::move(indexer));
  return module;
}

// Flash-Vision-Exp says with keys of its own how it sees.
bool sees(const ConfigReader& config) {
  return config.optional_real("vision_n_layers", 0, 1e6).value_or(0) > 0;
}

void add_vision(ConfigReader& config, ModuleTree& tree) {
  if (!sees(config)) return;
  add_v4_vision(tree, {.width = config.size("vision_dim"),
                       .wide = config.size("vision_inter_dim"),
                       .patch = config.size("vision_patch_size"),
                       .joined = config.size("vision_downsample_ratio"),
                       .depth = read_layers(config, "vision_n_layers", 32),
                       .marks = {"image_start", "image_end", "image_newline", "image_pad"}});
}

// Where an image is, layers that otherwise look experts up choose by a bias, too.
Module experts_of(const V4Sizes& s, bool hashed, bool seeing) {
  Mixture m = s.mixture;
  if (hashed) m.correction.clear();
  Module module = mixture(m);
  // Whole numbers, no weights: checkpoints hold them.
  if (hashed) add_buffer(module.children[0], "gate.tid2eid", {s.d.vocabulary.value(), m.experts.active});
  if (seeing) add_v4_image_bias(module, m.experts.count);
  return module;
}

struct LayerKind {
  std::uint64_t ratio = 0;
  bool hashed = false, sees = false;
};
void fill_layer(Module& layer, const V4Sizes& s, const LayerKind& kind) {
  add_v4_frame(layer, s);
  layer.children = {attention_of(s, kind.ratio), experts_of(s, kind.hashed, kind.sees)};
}

// 0: the window alone; 4, with an indexer that picks entries; 128. The list goes on with the MTP layers.
std::vector<std::uint64_t> read_ratios(ConfigReader& config, const Decoder& d, std::uint64_t predicted) {
  if (auto listed = config.numbers("compress_ratios")) {
    config.require(listed->size() >= d.layers.value(),
                   fmt::format("compress_ratios lists {} layers, {} says {}", listed->size(), d.layers.name(),
                               d.layers.value()));
    listed->resize(d.layers.value() + predicted, 0);
    return *listed;
  }
  const auto types = layer_texts(config, "layer_types", d.layers, true);
  std::vector<std::uint64_t> ratios(d.layers.value() + predicted, 0);
  if (!types) {  // the class's own: 128 in the first two, then 128 and 4 in turn
    for (std::uint64_t i = 0; i < d.layers.value(); ++i) ratios[i] = i >= 2 && i % 2 == 1 ? 4 : 128;
    return ratios;
  }
  for (std::uint64_t i = 0; i < d.layers.value(); ++i)
    ratios[i] = (*types)[i] == "compressed_sparse_attention"    ? 4
                : (*types)[i] == "heavily_compressed_attention" ? 128
                                                                : 0;
  return ratios;
}

void add_prediction(ModuleTree& tree, const V4Sizes& s, const std::vector<std::uint64_t>& ratios,
                    std::uint64_t window, bool seeing) {
  const std::uint64_t first = s.d.layers.value();
  const auto ratio_of = [&](std::uint64_t j) { return ratios[first + j]; };
  auto groups = group_layers(
      "mtp.{layer}", Quantity(ratios.size() - first),
      [&](std::uint64_t j) { return fmt::format("multi-token prediction, ratio {}", ratio_of(j)); },
      [&](Module& layer, std::uint64_t j) {
        fill_layer(layer, s, {.ratio = ratio_of(j), .sees = seeing});
        Module own{"", "projections and norms", {}, {}, {}};
        for (const char* name : {"e_proj", "h_proj"})
          add_linear(own, {.name = name,
                           .in = s.d.hidden,
                           .out = s.d.hidden,
                           .role = Role::mtp_projection,
                           .part = Part::mtp});
        add_norm(own, "enorm", s.d.hidden, Role::mtp_embedding_norm, false, Part::mtp);
        add_norm(own, "hnorm", s.d.hidden, Role::mtp_hidden_norm, false, Part::mtp);
        add_norm(own, "norm", s.d.hidden, Role::final_norm, false, Part::mtp);
        add_v4_streams(own, "hc_head", s.streams, 1, s);
        layer.children.push_back(std::move(own));
      });
  for (Module& group : groups) {
    std::vector<std::uint64_t> where;
    for (const std::uint64_t j : group.repeat.indices) where.push_back(first + j);
    tree.mtp_attention.push_back(v4_cache(s, ratio_of(group.repeat.indices[0]), std::move(where), window));
    tree.mtp.push_back(std::move(group));
  }
}

// The first num_hash_layers, unless mlp_layer_types lists them.
std::function<bool(std::uint64_t)> hashed_layers(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "mlp_layer_types", count, true))
    return [types](std::uint64_t i) { return (*types)[i] == "hash_moe"; };
  const std::uint64_t hashes = config.number("num_hash_layers", 3);
  return [hashes](std::uint64_t i) { return i < hashes; };
}

// num_nextn_predict_layers still says 1: compress_ratios goes on with each of them, or there are three.
std::uint64_t drafting_layers(ConfigReader& config, const Decoder& d) {
  const auto listed = config.numbers("compress_ratios");
  const std::uint64_t further = listed ? listed->size() - d.layers.value() : 0;
  const std::uint64_t count = further > 0 ? further : config.optional_number("n_mtp_layers").value_or(3);
  config.require(count <= 64, fmt::format("{} layers that draft: no model has so many", count));
  return count;
}

void describe_v4(ConfigReader& config, ModuleTree& tree) {
  const V4Sizes s = read_v4_sizes(config, tree);
  const std::uint64_t predicted = drafts(config) ? 0 : read_mtp_layers(config, 1);
  const auto ratios = read_ratios(config, s.d, predicted);
  for (const std::uint64_t ratio : ratios)
    config.require(ratio <= 65536,
                   fmt::format("compress_ratios holds {}: no layer compresses so much", ratio));
  const auto is_hashed = hashed_layers(config, s.d.layers);
  const bool seeing = sees(config);
  const std::uint64_t window = config.size("sliding_window", 128).value();
  const auto groups = group_layers(
      "layers.{layer}", s.d.layers,
      [&](std::uint64_t i) {
        return fmt::format("{}layers, {}", is_hashed(i) ? "hash-routed " : "",
                           ratios[i] == 0 ? "window alone" : fmt::format("one entry for {}", ratios[i]));
      },
      [&](Module& layer, std::uint64_t i) {
        fill_layer(layer, s, {ratios[i], is_hashed(i), seeing});
      });
  add_frame(tree, s.d, groups, {.embedding = "embed", .final_norm = "norm", .head = "head"});
  Module streams{"", "mix of the streams", {}, {}, {}};
  add_v4_streams(streams, "hc_head", s.streams, 1, s);
  tree.modules.insert(tree.modules.end() - 2, std::move(streams));
  std::vector<std::uint64_t> kinds(ratios.begin(),
                                   ratios.begin() + static_cast<std::ptrdiff_t>(s.d.layers.value()));
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  for (const std::uint64_t ratio : kinds)
    tree.attention.push_back(v4_cache(
        s, ratio, layers_where(s.d.layers, [&](std::uint64_t i) { return ratios[i] == ratio; }), window));
  add_prediction(tree, s, ratios, window, seeing);
  if (drafts(config))
    add_drafting(config, tree, s,
                 {.count = drafting_layers(config, s.d),
                  .experts = experts_of(s, false, seeing),
                  .mixes_streams = true,
                  .looked_up = "markov_w1",
                  .predicted = "markov_w2"});
  add_vision(config, tree);
}

// One rope for layers with the window alone, one for those that compress: YaRN, whose cos and sin DeepSeek's code does not
// scale. rope_parameters may hold the two by name (transformers 5).
Hyperparameters read_v4(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h;
  h.epsilon = config.real("rms_norm_eps", 1e-6, 0, 1);
  h.activation = config.text("hidden_act", "silu");
  h.activation_key = "hidden_act";
  h.activation_limit = config.real("swiglu_limit", 10, 0, 1e6);
  h.routing.scale = config.real("routed_scaling_factor", 1.5);
  if (const ParsedJson* rates = object_in(config, "compress_rates")) {
    const bool known = rates->value("compressed_sparse_attention", 4.0) == 4 &&
                       rates->value("heavily_compressed_attention", 128.0) == 128;
    config.require(known, "compress_rates are others than 4 and 128 tokens an entry");
  }
  const AttentionGeometry& g = tree.attention.at(0);
  const ParsedJson* named = object_in(config, "rope_parameters");
  const bool two = named != nullptr && named->contains("main") && named->contains("compress");
  // partial_rotary_factor counts before qk_rope_head_dim.
  const bool partial = two || config.has("partial_rotary_factor");
  const std::size_t rotated =
      partial ? g.qk_head_dim : config.size("qk_rope_head_dim", g.qk_head_dim / 8).value();
  config.require(rotated <= g.qk_head_dim, "qk_rope_head_dim is wider than head_dim");
  const RopeClass of_class = {.context = 1048576, .partial = partial};
  RopeRule main = read_rope(config, rotated, of_class, two ? "main" : "");
  RopeRule compressed = read_rope(config, rotated, of_class, two ? "compress" : "");
  if (!two) {
    main.type = RopeRule::Type::standard;
    compressed.theta = config.real("compress_rope_theta", 160000, 1e-3, 1e15);
  }
  if (compressed.type == RopeRule::Type::yarn && compressed.attention_factor == 0)
    compressed.attention_factor = 1;
  h.context = main.context;
  h.ropes = {main, compressed};
  for (std::uint64_t i = 0; i < tree.layers; ++i) h.rope_of.emplace_back(0);
  for (const AttentionGeometry& each : tree.attention) {
    for (const std::uint64_t layer : each.layers) h.rope_of.at(layer) = each.compressed == 0 ? 0 : 1;
  }
  return h;
}

constexpr std::string_view kV4Architectures[] = {"DeepseekV4ForCausalLM", "DeepseekRefForCausalLM",
                                                 "DeepseekV4ForConditionalGeneration"};
constexpr std::string_view kV4Types[] = {"deepseek_v4", "deepseek_ref"};

}  // namespace

const Family kDeepseekV4 = {"deepseek_v4", "DeepSeek V4", kV4Architectures, kV4Types, {},
                            describe_v4,   read_v4};

}  // namespace assay::families
