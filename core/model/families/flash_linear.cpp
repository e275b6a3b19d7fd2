// Models that flash-linear-attention trains and publishes under names of its own (fla-hub/gla-*, retnet-*, hgrn2-*, delta_net-*,
// …): linear attention in place of softmax, between the norms and the MLP of a Llama; layers that `attn` lists attend as usual,
// and those of `transformer` all do. Sources: flash-linear-attention 0.6, fla/layers and fla/models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/model/families/all_kin.h"
#include "core/model/families/flash_linear.h"

namespace assay::families {

using namespace blocks;

Quantity expanded(ConfigReader& config, std::string_view keys, double class_default, const Quantity& width) {
  constexpr double kWidest = 4294967296.0;
  const double times = config.real(keys, class_default, 0, kWidest),
               wide = times * static_cast<double>(width.value());
  const std::string key(keys.substr(0, keys.find('|')));
  config.require(std::round(wide) >= 1 && wide <= kWidest && std::abs(wide - std::round(wide)) <= 1e-9 * wide,
                 fmt::format("{} times {} is no width", key, width.value()));
  return {key + " × " + width.name(), static_cast<std::uint64_t>(std::round(wide))};
}

Quantity by_hidden_ratio(ConfigReader& config, double width, std::uint64_t step) {
  const auto least = static_cast<std::uint64_t>(width);
  config.require(least > 0, "hidden_ratio leaves the MLP no width");
  return {"intermediate_size", (least + step - 1) / step * step};
}

void add_mixing(Module& module, const Mixing& m) {
  add_linear(module, {.name = m.name,
                      .in = m.in,
                      .out = m.out,
                      .role = m.role,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = m.heads.value(),
                      .bias = m.bias});
}

void add_low_rank(Module& module, const Mixing& m, const Quantity& rank) {
  add_linear(module,
             {.name = m.name + ".lora.0", .in = m.in, .out = rank, .role = m.role, .part = Part::attention});
  add_mixing(module, {m.name + ".lora.2", rank, m.out, m.role, m.heads, m.bias});
}

void add_mixing_out(Module& module, const Quantity& in, const Quantity& hidden, const Quantity& heads) {
  add_linear(module, {.name = "o_proj",
                      .in = in,
                      .out = hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = heads.value()});
}

namespace {

struct FlaMixer {
  Module module{"attn", "linear attention", {}, {}, {}};
  RecurrentGeometry state;  // of each layer that has one
};

// Keys and values of `heads` heads, of which those of fewer key heads are stored.
struct Spread {
  Quantity hidden, heads, kv_heads, keys, values;
  Quantity kept_keys() const { return {"keys of key heads", share(keys)}; }
  Quantity kept_values() const { return {"values of key heads", share(values)}; }
  std::uint64_t share(const Quantity& all) const { return all.value() / heads.value() * kv_heads.value(); }
  Quantity head_values() const { return {"values of a head", values.value() / heads.value()}; }
  std::uint64_t state() const { return keys.value() / heads.value() * values.value(); }
};

Spread read_spread(ConfigReader& config, const Quantity& hidden, std::uint64_t heads, double expand_k,
                   double expand_v, bool grouped = true) {
  Spread s{hidden, config.size("num_heads", heads), 1,
           expanded(config, "expand_k|exapnd_k", expand_k, hidden),
           expanded(config, "expand_v|exapnd_v", expand_v, hidden)};
  s.kv_heads = grouped ? config.optional_size("num_kv_heads").value_or(s.heads) : s.heads;
  config.require_divides(s.kv_heads, s.heads);
  config.require_divides(s.heads, s.keys);
  config.require_divides(s.heads, s.values);
  return s;
}

// Short convolutions of what the matrices made, where the config asks for them.
void add_convolutions(ConfigReader& config, FlaMixer& mixer, bool class_default,
                      const std::vector<std::pair<std::string, Quantity>>& of) {
  if (!config.flag("use_short_conv", class_default)) return;
  const Quantity kernel = config.size("conv_size", 4);
  for (const auto& [letter, channels] : of) {
    mixer.module.tensors.push_back(
        parameter(letter + "_conv1d.weight", {channels, 1, kernel}, Role::convolution, Part::attention));
    mixer.state.conv_values += (channels * Quantity(kernel.value() - 1)).value();
  }
}

// A norm of what was mixed, whose weight the config may leave out.
void add_mixed_norm(ConfigReader& config, FlaMixer& mixer, const std::string& name, const Quantity& width) {
  if (config.is_null("elementwise_affine") || !config.flag("elementwise_affine", true)) return;
  add_norm(mixer.module, name, width, Role::recurrent_norm, false, Part::attention);
}

void add_spread_matrices(FlaMixer& mixer, const Spread& s) {
  add_mixing(mixer.module, {"q_proj", s.hidden, s.keys, Role::q, s.heads});
  add_mixing(mixer.module, {"k_proj", s.hidden, s.kept_keys(), Role::k, s.kv_heads});
  add_mixing(mixer.module, {"v_proj", s.hidden, s.kept_values(), Role::v, s.kv_heads});
  mixer.state.heads = s.heads.value();
  mixer.state.state_values = s.state();
}

// The norm of a head's output has another name where it is one kernel with the gate.
void add_gated_norm(ConfigReader& config, FlaMixer& mixer, const Spread& s) {
  const bool gated = config.flag("use_output_gate", true);
  const bool fused = config.flag("fuse_norm", true) && config.text("hidden_act", "swish") == "swish" && gated;
  if (gated) add_mixing(mixer.module, {"g_proj", s.hidden, s.values, Role::recurrent_gate, s.heads});
  add_mixed_norm(config, mixer, fused ? "g_norm_swish_gate" : "g_norm", s.head_values());
}

// Gated linear attention (arXiv 2312.06635): what is forgotten a matrix of rank 16 tells.
FlaMixer gated_linear(ConfigReader& config, const Quantity& hidden) {
  FlaMixer mixer;
  mixer.state.title = "gated linear attention";
  const Spread s = read_spread(config, hidden, 4, 0.5, 1);
  constexpr std::uint64_t kRank = 16;
  add_spread_matrices(mixer, s);
  add_linear(mixer.module, {.name = "gk_proj.0",
                            .in = hidden,
                            .out = kRank,
                            .role = Role::recurrent_decay,
                            .part = Part::attention});
  add_mixing(mixer.module, {"gk_proj.1", kRank, s.kept_keys(), Role::recurrent_decay, s.kv_heads, true});
  add_gated_norm(config, mixer, s);
  add_mixing_out(mixer.module, s.values, hidden, s.heads);
  add_convolutions(config, mixer, false, {{"q", s.keys}, {"k", s.kept_keys()}, {"v", s.kept_values()}});
  return mixer;
}

// Retention (arXiv 2307.08621): each head forgets at a rate of its own, which is no weight.
FlaMixer retention(ConfigReader& config, const Quantity& hidden) {
  FlaMixer mixer;
  mixer.state.title = "retention";
  const Spread s = read_spread(config, hidden, 8, 1, 2);
  add_spread_matrices(mixer, s);
  add_gated_norm(config, mixer, s);
  add_mixing_out(mixer.module, s.values, hidden, s.heads);
  return mixer;
}

// Gated slot attention (arXiv 2409.07146): a memory of so many slots a head, in two passes.
FlaMixer gated_slots(ConfigReader& config, const Quantity& hidden) {
  FlaMixer mixer;
  mixer.state.title = "gated slot attention";
  config.require(config.text("feature_map", "swish") != "t2r",
                 "feature_map is t2r: its weights are not described");
  const Spread s = read_spread(config, hidden, 4, 1, 1);
  const Quantity slots = config.optional_size("num_slots", 64).value_or(s.keys.value() / s.heads.value());
  add_spread_matrices(mixer, s);
  add_mixing(mixer.module, {"f_proj", hidden, s.kv_heads * slots, Role::recurrent_decay, s.kv_heads});
  add_mixed_norm(config, mixer, "g_norm", hidden);
  add_mixing_out(mixer.module, s.values, hidden, s.heads);
  add_convolutions(config, mixer, false, {{"q", s.keys}, {"k", s.kept_keys()}, {"v", s.kept_values()}});
  mixer.state.state_values = (slots * (s.keys + s.values)).value();
  return mixer;
}

// HGRN2 (arXiv 2404.07904): a gate that forgets is, with its complement, the key.
FlaMixer outer_gates(ConfigReader& config, const Quantity& hidden) {
  FlaMixer mixer;
  mixer.state.title = "HGRN2";
  const auto given = config.optional_size("expand_ratio", 128);
  const Quantity ratio = given ? *given : config.quotient(hidden, config.size("num_heads"), "expand_ratio");
  const Quantity heads("hidden_size / expand_ratio", hidden.value() / ratio.value());
  config.require(heads.value() > 0, "expand_ratio is more than hidden_size");
  config.require_divides(heads, hidden);
  const Quantity forgets = heads * ratio;
  add_mixing(mixer.module, {"q_proj", hidden, forgets, Role::q, heads});
  add_mixing(mixer.module, {"f_proj", hidden, forgets, Role::recurrent_decay, heads});
  add_mixing(mixer.module, {"i_proj", hidden, hidden, Role::recurrent_in, heads});
  add_mixed_norm(config, mixer, "g_norm", hidden);
  add_mixing_out(mixer.module, hidden, hidden, heads);
  mixer.state.heads = heads.value();
  mixer.state.state_values = (ratio * hidden).value();
  add_convolutions(config, mixer, false, {{"q", forgets}, {"f", forgets}, {"i", hidden}});
  return mixer;
}

// HGRN (arXiv 2311.04823): each channel by itself.
FlaMixer channel_gates(ConfigReader& config, const Quantity& hidden) {
  FlaMixer mixer;
  mixer.state.title = "HGRN";
  const Quantity width = config.size("expand_ratio", 1) * hidden;
  add_mixing(mixer.module, {"i_proj", hidden, width, Role::recurrent_in, width});
  add_mixing(mixer.module, {"f_proj", hidden, width, Role::recurrent_decay, width});
  add_mixing(mixer.module, {"g_proj", hidden, width, Role::recurrent_gate, width});
  add_mixed_norm(config, mixer, "g_norm", width);
  add_mixing_out(mixer.module, width, hidden, width);
  mixer.state.heads = mixer.state.state_values = width.value();
  add_convolutions(config, mixer, false, {{"f", width}, {"i", width}});
  return mixer;
}

// The delta rule (arXiv 2406.06484).
FlaMixer delta_rule(ConfigReader& config, const Quantity& hidden) {
  FlaMixer mixer;
  mixer.state.title = "DeltaNet";
  const Spread s = read_spread(config, hidden, 16, 1, 1, false);
  add_spread_matrices(mixer, s);
  if (config.flag("use_beta", true))
    add_mixing(mixer.module, {"b_proj", hidden, s.heads, Role::recurrent_beta, s.heads});
  if (config.flag("use_gate", false))
    add_mixing(mixer.module, {"g_proj", hidden, s.values, Role::recurrent_gate, s.heads});
  add_norm(mixer.module, "o_norm", s.head_values(), Role::recurrent_norm, false, Part::attention);
  add_mixing_out(mixer.module, s.values, hidden, s.heads);
  add_convolutions(config, mixer, true, {{"q", s.keys}, {"k", s.keys}, {"v", s.values}});
  return mixer;
}

// Gated DeltaNet (arXiv 2412.06464), and DeltaProduct (arXiv 2502.10297), which takes several steps a token.
struct GatedDelta {
  Quantity key_heads, value_heads, steps;
  bool gated, forgets;
};

FlaMixer gated_delta(ConfigReader& config, const Quantity& hidden, const GatedDelta& g) {
  FlaMixer mixer;
  const Quantity head_dim = config.size("head_dim", 256),
                 head_values = expanded(config, "expand_v", 2, head_dim), keys = g.key_heads * head_dim,
                 values = g.value_heads * head_values;
  config.require(
      g.value_heads.value() <= g.key_heads.value() || g.value_heads.value() % g.key_heads.value() == 0,
      "num_v_heads is no multiple of num_heads");
  add_mixing(mixer.module, {"q_proj", hidden, keys, Role::q, g.key_heads});
  add_mixing(mixer.module, {"k_proj", hidden, keys * g.steps, Role::k, g.key_heads});
  add_mixing(mixer.module, {"v_proj", hidden, values * g.steps, Role::v, g.value_heads});
  add_mixing(mixer.module, {"b_proj", hidden, g.value_heads * g.steps, Role::recurrent_beta, g.value_heads});
  if (g.forgets) {
    add_mixing(mixer.module, {"a_proj", hidden, g.value_heads, Role::recurrent_decay, g.value_heads});
    mixer.module.tensors.push_back(parameter("A_log", {g.value_heads}, Role::decay, Part::attention));
    mixer.module.tensors.push_back(parameter("dt_bias", {g.value_heads}, Role::time_bias, Part::attention));
  }
  if (g.gated) add_mixing(mixer.module, {"g_proj", hidden, values, Role::recurrent_gate, g.value_heads});
  add_norm(mixer.module, "o_norm", head_values, Role::recurrent_norm, false, Part::attention);
  add_mixing_out(mixer.module, values, hidden, g.value_heads);
  mixer.state.heads = g.key_heads.value();
  mixer.state.state_values = (values * head_dim).value();
  add_convolutions(config, mixer, true, {{"q", keys}, {"k", keys * g.steps}, {"v", values * g.steps}});
  return mixer;
}

FlaMixer gated_delta_net_of_fla(ConfigReader& config, const Quantity& hidden) {
  const Quantity heads = config.size("num_heads", 6);
  FlaMixer mixer = gated_delta(
      config, hidden,
      {heads, config.optional_size("num_v_heads").value_or(heads), 1, config.flag("use_gate", true), true});
  mixer.state.title = "Gated DeltaNet";
  return mixer;
}

FlaMixer gated_delta_product(ConfigReader& config, const Quantity& hidden) {
  const Quantity heads = config.size("num_heads", 6);
  FlaMixer mixer = gated_delta(config, hidden,
                               {heads, heads, config.size("num_householder", 1),
                                config.flag("use_output_gate", true), config.flag("use_forget_gate", false)});
  mixer.state.title = "DeltaProduct";
  return mixer;
}

// A multiple of 256 that is no less than 2/3 · hidden_ratio · hidden_size.
Quantity mlp_width(ConfigReader& config, double hidden_ratio, const Quantity& hidden) {
  if (const auto given = config.optional_size("intermediate_size")) return *given;
  const double ratio =
      config.is_null("hidden_ratio") ? 4 : config.real("hidden_ratio", hidden_ratio, 0, 4096);
  return by_hidden_ratio(config, static_cast<double>(hidden.value()) * ratio * 2 / 3, 256);
}

// Attention as these models have it, told by `config` or its section.
HeadAttention read_heads(ConfigReader& config, const Quantity& hidden, std::optional<std::uint64_t> heads) {
  HeadAttention a;
  a.path = "attn";
  a.hidden = hidden;
  a.heads = heads ? config.size("num_heads", *heads) : config.size("num_heads");
  a.kv_heads = config.optional_size("num_kv_heads").value_or(a.heads);
  config.require_divides(a.kv_heads, a.heads);
  a.head_dim = config.quotient(hidden, a.heads, "head_dim");
  a.qkv_bias = config.flag("qkv_bias", false);
  return a;
}

struct Attending {
  HeadAttention heads;
  std::vector<std::uint64_t> layers;
  std::uint64_t window = 0;
  bool holds(std::uint64_t layer) const {
    return std::find(layers.begin(), layers.end(), layer) != layers.end();
  }
};

std::optional<Attending> read_attending(ConfigReader& config, const ModuleTree& tree, const Decoder& d) {
  if (!config.has("attn")) return std::nullopt;
  const auto section = config.config().text_section("attn");
  config.require(section.has_value(), "attn is no object: several kinds of attention are not described");
  ConfigReader own(*section, tree.family);
  Attending a{read_heads(own, d.hidden, {}), own.numbers("layers").value_or(std::vector<std::uint64_t>{}),
              own.optional_number("window_size").value_or(0)};
  for (const std::uint64_t layer : a.layers)
    config.require(layer < d.layers.value(),
                   fmt::format("attn names layer {}, of {}", layer, d.layers.value()));
  std::sort(a.layers.begin(), a.layers.end());
  return a;
}

struct FlaKind {
  std::uint64_t layers = 24;
  double hidden_ratio = 4;
  FlaMixer (*mixer)(ConfigReader&, const Quantity& hidden) = nullptr;
};

Decoder read_fla_sizes(ConfigReader& config, ModuleTree& tree, const FlaKind& kind) {
  config.require(!config.has("attnres_block_size"),
                 "attnres_block_size is there: residuals that attend are not described");
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32000);
  d.hidden = config.size("hidden_size", 2048);
  d.layers = read_layers(config, "num_hidden_layers", kind.layers);
  d.tied = config.tied_embeddings(false);
  d.intermediate = mlp_width(config, kind.hidden_ratio, d.hidden);
  note_sizes(tree, d);
  return d;
}

const Frame kFlaFrame = {.embedding = "model.embeddings"};

void add_fla_layer(Module& layer, const Decoder& d, Module mixing) {
  add_norm(layer, "attn_norm", d.hidden, Role::input_norm);
  add_norm(layer, "mlp_norm", d.hidden, Role::pre_feedforward_norm);
  layer.children = {std::move(mixing), gated_mlp(d.mlp())};
}

Decoder describe_fla(ConfigReader& config, ModuleTree& tree, const FlaKind& kind) {
  Decoder d = read_fla_sizes(config, tree, kind);
  FlaMixer mixer = kind.mixer(config, d.hidden);
  mixer.module.title = "linear attention (" + mixer.state.title + ")";
  const auto attending = read_attending(config, tree, d);
  const auto attends = [&](std::uint64_t i) { return attending && attending->holds(i); };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return attends(i) ? "layers that attend" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_fla_layer(layer, d, attends(i) ? attention(attending->heads) : mixer.module);
      });
  add_frame(tree, d, groups, kFlaFrame);
  if (attending && !attending->layers.empty())
    tree.attention.push_back(geometry(attending->heads, attending->layers, attending->window));
  mixer.state.layers = layers_where(d.layers, [&](std::uint64_t i) { return !attends(i); });
  if (!mixer.state.layers.empty()) tree.recurrent.push_back(std::move(mixer.state));
  return d;
}

void describe_gla(ConfigReader& config, ModuleTree& tree) {
  describe_fla(config, tree, {.mixer = gated_linear});
}
void describe_retnet(ConfigReader& config, ModuleTree& tree) {
  describe_fla(config, tree, {.hidden_ratio = 2, .mixer = retention});
}
void describe_gsa(ConfigReader& config, ModuleTree& tree) {
  describe_fla(config, tree, {.mixer = gated_slots});
}
void describe_delta_net(ConfigReader& config, ModuleTree& tree) {
  describe_fla(config, tree, {.mixer = delta_rule});
}
void describe_gated_delta_net(ConfigReader& config, ModuleTree& tree) {
  describe_fla(config, tree, {.layers = 21, .mixer = gated_delta_net_of_fla});
}
void describe_delta_product(ConfigReader& config, ModuleTree& tree) {
  describe_fla(config, tree, {.layers = 21, .mixer = gated_delta_product});
}

// How little a layer may forget, for all layers in one table.
void add_lower_bounds(ConfigReader& config, ModuleTree& tree, const Decoder& d, const Quantity& width) {
  if (!config.flag("use_lower_bound", true)) return;
  Module bounds{"model", "lower bounds", {}, {}, {}};
  bounds.tensors = {parameter("lower_bounds", {d.layers, width}, Role::decay, Part::attention)};
  tree.modules.push_back(std::move(bounds));
}
void describe_hgrn2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = describe_fla(config, tree, {.mixer = outer_gates});
  add_lower_bounds(config, tree, d, d.hidden);
}
void describe_hgrn(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = describe_fla(config, tree, {.mixer = channel_gates});
  add_lower_bounds(config, tree, d, config.size("expand_ratio", 1) * d.hidden);
}

void describe_fla_transformer(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_fla_sizes(config, tree, {});
  HeadAttention a = read_heads(config, d.hidden, 32);
  if (config.flag("qk_norm", false)) a.qk_norm = QkNorm::per_head;
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_fla_layer(layer, d, attention(a));
  add_frame(tree, d, {layer}, kFlaFrame);
  tree.attention.push_back(
      geometry(a, all_layers(d.layers), config.optional_number("window_size").value_or(0)));
}

constexpr std::string_view kGlaNames[] = {"GLAForCausalLM"}, kGlaTypes[] = {"gla"},
                           kRetnetNames[] = {"RetNetForCausalLM"}, kRetnetTypes[] = {"retnet"},
                           kGsaNames[] = {"GSAForCausalLM"}, kGsaTypes[] = {"gsa"},
                           kHgrnNames[] = {"HGRNForCausalLM"}, kHgrnTypes[] = {"hgrn"},
                           kHgrn2Names[] = {"HGRN2ForCausalLM"}, kHgrn2Types[] = {"hgrn2"},
                           kDeltaNames[] = {"DeltaNetForCausalLM"}, kDeltaTypes[] = {"delta_net"},
                           kGatedDeltaNames[] = {"GatedDeltaNetForCausalLM"},
                           kGatedDeltaTypes[] = {"gated_deltanet"},
                           kProductNames[] = {"GatedDeltaProductForCausalLM"},
                           kProductTypes[] = {"gated_deltaproduct"},
                           kFlaTransformerNames[] = {"TransformerForCausalLM"},
                           kFlaTransformerTypes[] = {"transformer"};

}  // namespace

const Family kGla = {"gla", "Gated linear attention", kGlaNames, kGlaTypes, {}, describe_gla};
const Family kRetnet = {"retnet", "RetNet", kRetnetNames, kRetnetTypes, {}, describe_retnet};
const Family kGsa = {"gsa", "Gated slot attention", kGsaNames, kGsaTypes, {}, describe_gsa};
const Family kHgrn = {"hgrn", "HGRN", kHgrnNames, kHgrnTypes, {}, describe_hgrn};
const Family kHgrn2 = {"hgrn2", "HGRN2", kHgrn2Names, kHgrn2Types, {}, describe_hgrn2};
const Family kDeltaNet = {"delta_net", "DeltaNet", kDeltaNames, kDeltaTypes, {}, describe_delta_net};
const Family kGatedDeltaNet = {
    "gated_deltanet", "Gated DeltaNet", kGatedDeltaNames, kGatedDeltaTypes, {}, describe_gated_delta_net};
const Family kDeltaProduct = {"gated_deltaproduct",  "DeltaProduct", kProductNames, kProductTypes, {},
                              describe_delta_product};
const Family kFlaTransformer = {"fla_transformer",
                                "Transformer of flash-linear-attention",
                                kFlaTransformerNames,
                                kFlaTransformerTypes,
                                {},
                                describe_fla_transformer};

}  // namespace assay::families
