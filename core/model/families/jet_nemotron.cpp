// Jet-Nemotron: Qwen2's attention, whole or with a window, in some layers, and JetBlock in the others: the delta rule over
// values that pass a convolution whose kernels a small MLP makes of each token (arXiv 2508.15884). Source: SGLang 0.5.23's
// jet_nemotron.py.
#include <algorithm>

#include "core/model/families/all_hub.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

struct JetBlock {
  Quantity hidden, heads, key_dim, value_dim, kernel, generator;
  Quantity values() const { return heads * value_dim; }
};

JetBlock read_jet(ConfigReader& config, const ModelConfig& keys, const Quantity& hidden) {
  ConfigReader jet(keys, "efficient_attention_config.jet");
  JetBlock j{hidden, jet.size("num_heads"), jet.size("head_dim"), 0, jet.size("conv_size"), 0};
  const double times = jet.real("expand_v", 1, 0, 1000);
  const auto value_dim = static_cast<std::uint64_t>(static_cast<double>(j.key_dim.value()) * times);
  config.require(value_dim > 0, "efficient_attention_config.jet.expand_v leaves values no width");
  j.value_dim = Quantity("expand_v × head_dim", value_dim);
  const std::uint64_t share = jet.size("dconv_generator_reduction").value();
  config.require(j.values().value() >= share,
                 "efficient_attention_config.jet.dconv_generator_reduction leaves the kernels' MLP no width");
  j.generator = Quantity("values / dconv_generator_reduction", j.values().value() / share);
  return j;
}

Module jet_block(const JetBlock& j) {
  Module module{"self_attn", "linear attention (JetBlock)", {}, {}, {}};
  const std::uint64_t heads = j.heads.value();
  const auto into = [&](const char* name, const Quantity& out, Role role, bool quantizable = true) {
    add_linear(module, {.name = name,
                        .in = j.hidden,
                        .out = out,
                        .role = role,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = heads,
                        .quantizable = quantizable});
  };
  into("q_proj", j.heads * j.key_dim, Role::q);
  into("k_proj", j.heads * j.key_dim, Role::k);
  into("v_proj", j.values(), Role::v);
  into("a_proj", j.heads, Role::recurrent_decay, false);
  into("b_proj", j.heads, Role::recurrent_beta, false);
  into("g_proj", j.values(), Role::recurrent_gate);
  module.tensors.push_back(parameter("A_log", {j.heads}, Role::decay, Part::attention));
  module.tensors.push_back(parameter("dt_bias", {j.heads}, Role::time_bias, Part::attention));
  add_norm(module, "o_norm", j.value_dim, Role::recurrent_norm, false, Part::attention);
  add_linear(module, {.name = "o_proj",
                      .in = j.values(),
                      .out = j.hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = heads});
  Module kernels{"dynamic_conv1d.kernel_generator", "kernels of the convolution", {}, {}, {}};
  add_linear(kernels, {.name = "w1",
                       .in = j.hidden,
                       .out = j.generator,
                       .role = Role::convolution,
                       .part = Part::attention,
                       .quantizable = false});
  add_linear(kernels, {.name = "w2",
                       .in = j.generator,
                       .out = j.values() * j.kernel,
                       .role = Role::convolution,
                       .part = Part::attention,
                       .partition = Partition::columns,
                       .units = heads,
                       .bias = true,
                       .quantizable = false});
  module.children.push_back(std::move(kernels));
  return module;
}

void describe_jet_nemotron(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "num_key_value_heads"})
    config.size(key);
  const Decoder d =
      read_decoder(config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0},
                   HeadDim::unused);
  HeadAttention a{d.hidden, d.heads, config.size("num_key_value_heads"),
                  config.quotient(d.hidden, d.heads, "head_dim")};
  a.qkv_bias = true;
  const auto types = layer_texts(config, "layer_types", d.layers);
  config.require(types.has_value(), "layer_types is missing: it says which layers attend");
  const auto of_type = [&](const char* type) {
    return layers_where(d.layers, [&](std::uint64_t i) { return (*types)[i] == type; });
  };
  const auto full = of_type("attn"), narrow = of_type("swa"), jets = of_type("jet");
  config.require(full.size() + narrow.size() + jets.size() == d.layers.value(),
                 "layer_types holds another type than attn, swa and jet");
  const auto own = config.config().text_section("efficient_attention_config");
  const auto of_jet = own ? own->section("jet") : std::nullopt,
             of_swa = own ? own->section("swa") : std::nullopt;
  config.require(jets.empty() || of_jet.has_value(), "efficient_attention_config.jet is missing");
  config.require(narrow.empty() || of_swa.has_value(), "efficient_attention_config.swa is missing");
  const JetBlock j = jets.empty() ? JetBlock{} : read_jet(config, *of_jet, d.hidden);
  const auto is_jet = [&](std::uint64_t i) { return (*types)[i] == "jet"; };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_jet(i) ? "JetBlock layers" : "attention layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_jet(i) ? jet_block(j) : attention(a), gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  if (!full.empty()) tree.attention.push_back(geometry(a, full));
  if (!narrow.empty())
    tree.attention.push_back(geometry(
        a, narrow, ConfigReader(*of_swa, "efficient_attention_config.swa").size("window_size").value()));
  if (!jets.empty())
    tree.recurrent.push_back({.title = "JetBlock",
                              .layers = jets,
                              .heads = j.heads.value(),
                              .conv_values = (j.values() * Quantity(j.kernel.value() - 1)).value(),
                              .state_values = (j.values() * j.key_dim).value()});
}

constexpr std::string_view kJetArchitectures[] = {"JetNemotronForCausalLM"}, kJetTypes[] = {"jet_nemotron"};

}  // namespace

const Family kJetNemotron = {"jet_nemotron",       "Jet-Nemotron", kJetArchitectures, kJetTypes, {},
                             describe_jet_nemotron};

}  // namespace assay::families
