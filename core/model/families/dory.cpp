// Dory: layers that attend or have an MLP, none both, on a sphere: no norm has weights, and learnt vectors scale what enters
// (nGPT, arXiv 2410.01131). A token passes the layers in the middle several times. Source: vLLM 0.33's dory.py.
#include <fmt/format.h>

#include "core/model/families/all_hub.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// A vector that scales, cut as what it scales is.
void add_scale(Module& module, std::string name, const Quantity& width, Part part, std::uint64_t units = 0) {
  TensorSpec scale = parameter(std::move(name), {width}, Role::layer_scale, part);
  if (units > 0) scale.parallel = {Partition::columns, 0, {{Role::layer_scale, width.value(), units}}};
  module.tensors.push_back(std::move(scale));
}

Module dory_attention(const HeadAttention& a) {
  Module module = attention(a);
  const Quantity width = a.heads * a.head_dim;
  add_scale(module, "sqk", width, Part::attention, a.heads.value());
  add_scale(module, "s_gate", width, Part::attention, a.heads.value());
  return module;
}

Module dory_mlp(const Decoder& d) {
  GatedMlp mlp = d.mlp();
  mlp.path = "mixer";
  Module module = gated_mlp(mlp);
  add_scale(module, "suv_gate", d.intermediate, Part::dense_mlp, d.intermediate.value());
  add_scale(module, "suv_up", d.intermediate, Part::dense_mlp, d.intermediate.value());
  return module;
}

// Layers from `first` to before `end` are passed `loops` times.
struct Loops {
  std::uint64_t first, end, loops;
  bool cached;  // a cache for each pass, else the last one's
};
Loops read_loops(ConfigReader& config, const Quantity& layers) {
  const std::uint64_t before = config.number("n_input_layers", 0),
                      behind = config.number("n_output_layers", 0);
  config.require(before <= layers.value() && behind <= layers.value() - before,
                 "n_input_layers and n_output_layers are more than the layers");
  const std::uint64_t within = layers.value() - before - behind;
  config.require(config.optional_number("n_recurrent_layers").value_or(within) == within,
                 "n_input_layers, n_recurrent_layers and n_output_layers do not add up to num_hidden_layers");
  const std::string mode = config.text("recurrent_kv_cache_mode", "per_loop");
  config.require(mode == "per_loop" || mode == "last_loop",
                 "recurrent_kv_cache_mode is neither per_loop nor last_loop");
  const std::uint64_t loops = config.size("n_recurrent_loops", 1).value();
  config.require(loops <= 100,
                 fmt::format("n_recurrent_loops is {}: no model passes its layers so often", loops));
  return {before, before + within, loops, mode == "per_loop"};
}

void describe_dory(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 131072,
                            .hidden = 2560,
                            .intermediate = 7168,
                            .layers = 72,
                            .heads = 16,
                            .kv_heads = 4,
                            .head_dim = 256});
  config.require(!d.tied && !config.flag("attention_bias", false) && !config.flag("mlp_bias", false),
                 "tie_word_embeddings, attention_bias or mlp_bias is true, which the class refuses");
  const auto types = layer_texts(config, "layer_types", d.layers);
  const auto type_of = [&](std::uint64_t i) -> std::string {
    if (types) return (*types)[i];
    return i % 2 == 1 ? "mlp" : i % 8 == 6 ? "full_attention" : "sliding_attention";
  };
  const auto has = [&](const std::string& type, std::uint64_t i) { return type_of(i) == type; };
  for (std::uint64_t i = 0; i < d.layers.value(); ++i)
    config.require(has("mlp", i) || has("full_attention", i) || has("sliding_attention", i),
                   "layer_types holds another type than mlp, full_attention and sliding_attention");
  HeadAttention a = d.attention();
  a.path = "mixer";
  a.gate = "g_proj", a.wide_gate = true;
  const auto groups = group_layers(
      "backbone.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return has("mlp", i) ? "MLP layers" : "attention layers"; },
      [&](Module& layer, std::uint64_t i) {
        const bool mlp = has("mlp", i);
        add_scale(layer, mlp ? "mlp_alpha" : "attn_alpha", d.hidden, Part::norm);
        layer.children = {mlp ? dory_mlp(d) : dory_attention(a)};
      });
  add_frame(tree, d, groups, {.embedding = "backbone.embeddings"});
  tree.modules.erase(tree.modules.end() - 2);  // the norm behind the last layer has no weights
  add_scale(tree.modules.back(), "lm_head.logit_scale", d.vocabulary, Part::output);

  const Loops l = read_loops(config, d.layers);
  const std::uint64_t window = config.optional_number("sliding_window", 1024).value_or(0);
  for (const bool slides : {false, true}) {
    const char* type = slides ? "sliding_attention" : "full_attention";
    const auto all = layers_where(d.layers, [&](std::uint64_t i) { return has(type, i); });
    if (!all.empty()) tree.attention.push_back(geometry(a, all, slides ? window : 0));
    const auto again =
        layers_where(d.layers, [&](std::uint64_t i) { return has(type, i) && i >= l.first && i < l.end; });
    for (std::uint64_t pass = 1; l.cached && !again.empty() && pass < l.loops; ++pass)
      tree.attention.push_back(geometry(a, again, slides ? window : 0));
  }
  if (l.loops > 1)
    tree.not_counted.push_back(
        {fmt::format("passes behind the first: a token passes layers {} to {} {} times, and "
                     "what is computed is told of one",
                     l.first, l.end - 1, l.loops),
         0});
}

constexpr std::string_view kDoryArchitectures[] = {"DoryForCausalLM"}, kDoryTypes[] = {"dory"};

}  // namespace

const Family kDory = {"dory", "Dory", kDoryArchitectures, kDoryTypes, {}, describe_dory};

}  // namespace assay::families
