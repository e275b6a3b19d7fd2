// Gemma 3n: four streams of which a layer computes one and guesses the others (AltUp), a branch of low rank beside
// attention (Laurel), an embedding of its own for each layer, and last layers that read the cache of earlier ones.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/gemma.h"
#include "core/model/families/gemma3n_towers.h"
#include "core/model/families/gemma_blocks.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace gemma3n {
namespace {

using namespace blocks;

struct Layers {
  std::vector<std::uint64_t> widths;  // of the MLPs
  std::uint64_t first_shared = 0;     // from here on keys and values are those of earlier layers
  Quantity streams, rank, own;
  bool shares(std::uint64_t i) const { return i >= first_shared; }
};

Layers read_layers_of(ConfigReader& config, const Decoder& d) {
  Layers l{{},
           0,
           config.size("altup_num_inputs", 4),
           config.size("laurel_rank", 64),
           config.size("hidden_size_per_layer_input", 256)};
  if (config.is_list("intermediate_size"))
    l.widths = layer_numbers(config, "intermediate_size", d.layers).value();
  else
    l.widths.assign(d.layers.value(), config.size("intermediate_size", 16384).value());
  const std::uint64_t shared = config.number("num_kv_shared_layers", 15);
  config.require(shared < d.layers.value(), "num_kv_shared_layers leaves no layer with keys of its own");
  l.first_shared = d.layers.value() - shared;
  return l;
}

// Small matrices that mix the streams: what is computed of one corrects the others.
Module altup(const Quantity& hidden, const Quantity& streams) {
  Module module{"altup", "alternating updates", {}, {}, {}};
  module.tensors.push_back(parameter("correct_output_scale", {hidden}, Role::residual_mix, Part::norm));
  const auto mix = [&](const std::string& name, const Quantity& in, const Quantity& out) {
    add_linear(module, {.name = name,
                        .in = in,
                        .out = out,
                        .role = Role::residual_mix,
                        .part = Part::norm,
                        .quantizable = false});
  };
  mix("correction_coefs", streams, streams);
  mix("prediction_coefs", streams, streams * streams);
  mix("modality_router", hidden, streams);
  add_norm(module, "router_norm", hidden, Role::residual_mix);
  return module;
}

Module laurel(const Quantity& hidden, const Quantity& rank) {
  Module module{"laurel", "branch of low rank", {}, {}, {}};
  add_whole_linear(module, "linear_left", hidden, rank, Role::latent_down, Part::attention);
  add_whole_linear(module, "linear_right", rank, hidden, Role::latent_up, Part::attention);
  add_norm(module, "post_laurel_norm", hidden, Role::latent_norm, false, Part::attention);
  return module;
}

void add_layer(Module& layer, const Decoder& d, HeadAttention a, const Layers& l, std::uint64_t i) {
  for (const auto& [name, role] : {std::pair{"input_layernorm", Role::input_norm},
                                   {"post_attention_layernorm", Role::post_attention_norm},
                                   {"pre_feedforward_layernorm", Role::pre_feedforward_norm},
                                   {"post_feedforward_layernorm", Role::post_feedforward_norm}})
    add_norm(layer, name, d.hidden, role);
  if (l.shares(i)) {  // published all the same, and computed with by no one
    const std::uint64_t keys = a.kv_heads.value() * a.head_dim.value();
    for (const char* name : {"self_attn.k_proj.weight", "self_attn.v_proj.weight"})
      add_buffer(layer, name, {keys, d.hidden.value()});
    add_buffer(layer, "self_attn.k_norm.weight", {a.head_dim.value()});
    a.has_k = a.has_v = false;
  }
  GatedMlp mlp = d.mlp();
  mlp.intermediate = Quantity("intermediate_size", l.widths[i]);
  layer.children = {attention(a), gated_mlp(mlp), altup(d.hidden, l.streams), laurel(d.hidden, l.rank),
                    per_layer_step(d.hidden, l.own)};
}

// Beside them: what makes the other streams of the first, and one of all behind the last layer.
Module around_layers(const std::string& path, ConfigReader& config, const Decoder& d, const Layers& l) {
  Module module = per_layer_inputs(path, config, d, l.own);
  for (const auto& [name, title] : {std::pair{"altup_projections", "streams made of the first"},
                                    {"altup_unembed_projections", "streams made one"}}) {
    Module streams{name, title, {}, {}, {}};
    for (std::uint64_t i = 0; i + 1 < l.streams.value(); ++i)
      add_whole_linear(streams, std::to_string(i), d.hidden, d.hidden, Role::residual_mix);
    if (!streams.tensors.empty()) module.children.push_back(std::move(streams));
  }
  return module;
}

void add_caches(ConfigReader& config, ModuleTree& tree, const Decoder& d, const HeadAttention& a,
                const Layers& l) {
  const auto windowed = windowed_layers(config, d.layers, [](std::uint64_t i) { return (i + 1) % 5 != 0; });
  const std::uint64_t window = config.size("sliding_window", 512).value();
  const auto has_window = [&](std::uint64_t i) {
    return std::find(windowed.begin(), windowed.end(), i) != windowed.end();
  };
  for (const bool full : {true, false}) {
    for (const bool shares : {false, true}) {
      const auto where = layers_where(
          d.layers, [&](std::uint64_t i) { return has_window(i) != full && l.shares(i) == shares; });
      if (where.empty()) continue;
      AttentionGeometry g = geometry(a, where, full ? 0 : window);
      g.cached = !shares;
      tree.attention.push_back(std::move(g));
    }
  }
}

void describe(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 262400,
                                  .hidden = 2048,
                                  .intermediate = 0,
                                  .layers = 35,
                                  .heads = 8,
                                  .kv_heads = 2,
                                  .head_dim = 256,
                                  .tied = true});
  const Layers l = read_layers_of(config, d);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  const std::string prefix = is_nested(config) ? "model.language_model." : "model.";
  const auto groups = group_layers(
      prefix + "layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return fmt::format("layers{} of width {}", l.shares(i) ? " with the cache of others" : "",
                           l.widths[i]);
      },
      [&](Module& layer, std::uint64_t i) { add_layer(layer, d, a, l, i); });
  add_frame(tree, d, groups, frame_under(prefix));
  tree.modules.insert(tree.modules.begin() + 1,
                      around_layers(prefix.substr(0, prefix.size() - 1), config, d, l));
  add_caches(config, tree, d, a, l);
  add_gemma3n_towers(config, tree, d.hidden);
}

constexpr std::string_view kArchitectures[] = {"Gemma3nForConditionalGeneration", "Gemma3nForCausalLM"};
constexpr std::string_view kTypes[] = {"gemma3n", "gemma3n_text"};

}  // namespace
}  // namespace gemma3n

const Family kGemma3n = {"gemma3n", "Gemma 3n",        gemma3n::kArchitectures, gemma3n::kTypes,
                         {},        gemma3n::describe, forward_gemma3n};

}  // namespace assay::families
