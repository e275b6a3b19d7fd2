// TimesFM (arXiv 2310.10688), a decoder that reads stretches of a series of numbers in place of words and tells the next stretch,
// at several quantiles: 1.0 and 2.0, and 2.5. No keys are cached. Source: transformers 5.24, modeling_timesfm.py and
// modeling_timesfm2_5.py.
#include <nlohmann/json.hpp>

#include "core/model/blocks.h"
#include "core/model/families/all_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Series {
  Decoder d;
  Quantity patch, horizon, quantiles;
  bool tells;  // with what makes a prediction of the last layer's output; else the layers alone
};

Series read_series(ConfigReader& config, ModuleTree& tree, std::uint64_t layers) {
  Series s;
  s.d.vocabulary = 0;
  s.d.hidden = config.size("hidden_size", 1280);
  s.d.intermediate = config.size("intermediate_size", 1280);
  s.d.layers = read_layers(config, "num_hidden_layers", layers);
  s.d.heads = config.size("num_attention_heads", 16);
  s.d.head_dim = config.size("head_dim", 80);
  s.d.tied = false;
  s.patch = config.size("patch_length", 32);
  s.horizon = config.size("horizon_length", 128);
  const ParsedJson& told = config.config().text();
  const auto listed = told.find("quantiles");
  config.require(listed == told.end() || listed->is_array(), "quantiles is no list");
  s.quantiles = {"quantiles and the mean", 1 + (listed == told.end() ? 9 : listed->size())};
  s.tells = config.config().architecture().ends_with("ForPrediction");
  note_sizes(tree, s.d);
  return s;
}

// out(silu(in(x))) + residual(x).
Module joined_by_residual(std::string path, const Quantity& in, const Quantity& wide, const Quantity& out,
                          bool bias) {
  Module module{std::move(path), "matrices beside a residual", {}, {}, {}};
  const auto add = [&](const char* name, const Quantity& from, const Quantity& to) {
    add_linear(
        module,
        {.name = name, .in = from, .out = to, .role = Role::other, .part = Part::embedding, .bias = bias});
  };
  add("input_layer", in, wide);
  add("output_layer", wide, out);
  add("residual_layer", in, out);
  return module;
}

// Queries are scaled by what is learnt for each of a head's dimensions.
Module scaled_attention(const HeadAttention& a) {
  Module module = attention(a);
  module.tensors.push_back(parameter("scaling", {a.head_dim}, Role::q_norm, Part::attention));
  return module;
}

void describe_timesfm(ConfigReader& config, ModuleTree& tree) {
  const Series s = read_series(config, tree, 50);
  const std::string prefix = s.tells ? "decoder." : "";
  tree.modules.push_back(joined_by_residual(prefix + "input_ff_layer", Quantity(2) * s.patch,
                                            s.d.intermediate, s.d.hidden, true));
  Module beside{"", "how often the series is measured", {}, {}, {}};
  beside.tensors = {parameter(prefix + "freq_emb.weight", {config.size("freq_size", 3), s.d.hidden},
                              Role::position_embedding, Part::embedding)};
  if (config.flag("use_positional_embedding", false))
    add_buffer(beside, prefix + "position_emb.inv_timescales", {s.d.hidden.value() / 2});
  tree.modules.push_back(std::move(beside));
  HeadAttention a{s.d.hidden, s.d.heads, s.d.heads, s.d.head_dim};
  a.qkv_bias = a.output_bias = true;
  Module layer = layers(prefix + "layers.{layer}", "layers", all_layers(s.d.layers));
  add_norm(layer, "input_layernorm", s.d.hidden, Role::input_norm);
  Module mlp = plain_mlp(
      {.hidden = s.d.hidden, .intermediate = s.d.intermediate, .up = "gate_proj", .down = "down_proj"});
  add_norm(mlp, "layer_norm", s.d.hidden, Role::pre_feedforward_norm, true);
  layer.children = {scaled_attention(a), std::move(mlp)};
  tree.modules.push_back(std::move(layer));
  if (s.tells)
    tree.modules.push_back(
        joined_by_residual("horizon_ff_layer", s.d.hidden, s.d.intermediate, s.horizon * s.quantiles, true));
}

void describe_timesfm25(ConfigReader& config, ModuleTree& tree) {
  const Series s = read_series(config, tree, 20);
  const std::string prefix = s.tells ? "model." : "";
  tree.modules.push_back(
      joined_by_residual(prefix + "input_ff_layer", Quantity(2) * s.patch, s.d.hidden, s.d.hidden, true));
  HeadAttention a{s.d.hidden, s.d.heads, config.size("num_key_value_heads", 16), s.d.head_dim};
  config.require_divides(a.kv_heads, a.heads);
  a.qk_norm = QkNorm::per_head;
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  Module layer = layers(prefix + "layers.{layer}", "layers", all_layers(s.d.layers));
  add_norm(layer, "input_layernorm", s.d.hidden, Role::input_norm);
  add_norm(layer, "post_attention_layernorm", s.d.hidden, Role::post_attention_norm);
  add_norm(layer, "pre_feedforward_layernorm", s.d.hidden, Role::pre_feedforward_norm);
  add_norm(layer, "post_feedforward_layernorm", s.d.hidden, Role::post_feedforward_norm);
  layer.children = {scaled_attention(a), plain_mlp({.hidden = s.d.hidden,
                                                    .intermediate = s.d.intermediate,
                                                    .bias = config.flag("use_bias", false),
                                                    .up = "ff0",
                                                    .down = "ff1"})};
  tree.modules.push_back(std::move(layer));
  if (!s.tells) return;
  const Quantity far = config.size("output_quantile_len", 1024);
  for (const auto& [name, length] :
       {std::pair("output_projection_point", s.horizon), {"output_projection_quantiles", far}})
    tree.modules.push_back(joined_by_residual(name, s.d.hidden, s.d.hidden, length * s.quantiles, false));
}

constexpr std::string_view kTimesfmNames[] = {"TimesFmModelForPrediction", "TimesFmModel"},
                           kTimesfmTypes[] = {"timesfm"},
                           kTimesfm25Names[] = {"TimesFm2_5ModelForPrediction", "TimesFm2_5Model"},
                           kTimesfm25Types[] = {"timesfm2_5"};

}  // namespace

const Family kTimesfm = {"timesfm", "TimesFM", kTimesfmNames, kTimesfmTypes, {}, describe_timesfm};
const Family kTimesfm25 = {"timesfm2_5", "TimesFM 2.5",     kTimesfm25Names, kTimesfm25Types,
                           {},           describe_timesfm25};

}  // namespace assay::families
