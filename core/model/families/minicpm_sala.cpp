// MiniCPM-SALA: attention under a gate in some layers, lightning attention with norms and a gate in the others, as
// mixer_types says, which repeats where it is shorter than the model. Source: SGLang 0.5.23's minicpm.py.
#include <algorithm>

#include "core/model/families/all_hub.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

bool is_lightning(ConfigReader& config, const std::string& word) {
  const bool lightning = word == "lightning-attn" || word == "lightning_attn" || word == "lightning";
  const bool attends =
      word == "minicpm4" || word == "minicpm" || word == "standard" || word == "attention" || word == "attn";
  config.require(lightning || attends,
                 "mixer_types holds \"" + word + "\", which MiniCPM-SALA does not have");
  return lightning;
}

struct Mixer {
  HeadAttention heads;
  bool norms = false, output_norm = false;  // of q and k; of what comes out
};

// S ← λS + kᵀv with a decay λ of the head, which is computed; q, k and v have a matrix each.
Module lightning_mixer(const Mixer& m, const std::string& gate) {
  HeadAttention a = m.heads;
  a.gate = gate, a.wide_gate = true;
  if (m.norms) a.qk_norm = QkNorm::per_head;
  Module module = attention(a);
  module.title = "lightning attention";
  if (m.output_norm)
    add_norm(module, "o_norm", a.heads * a.head_dim, Role::recurrent_norm, false, Part::attention);
  return module;
}

void describe_minicpm_sala(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 150528,
                                  .hidden = 4096,
                                  .intermediate = 14336,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 8});
  const auto mixers = config.texts("mixer_types").value_or(std::vector<std::string>{"minicpm4"});
  config.require(!mixers.empty() && mixers.size() <= d.layers.value(),
                 "mixer_types is empty, or longer than the model");
  const auto is_linear = [&](std::uint64_t i) { return is_lightning(config, mixers[i % mixers.size()]); };
  const auto linear = layers_where(d.layers, is_linear);
  const auto full = layers_where(d.layers, [&](std::uint64_t i) { return !is_linear(i); });

  HeadAttention a = d.attention();
  const bool bias = config.flag("attention_bias", false);
  config.require(!bias, "attention_bias is true: no published MiniCPM-SALA tells how biases are stored");
  if (config.flag("attn_use_output_gate", false)) a.gate = "o_gate", a.wide_gate = true;
  Mixer m{{d.hidden, config.size("lightning_nh", d.heads), config.size("lightning_nkv", d.kv_heads),
           config.size("lightning_head_dim", d.head_dim)}};
  config.require(
      linear.empty() || m.heads.heads.value() == m.heads.kv_heads.value(),
      "lightning_nh and lightning_nkv differ: lightning attention has a key head for each of its heads");
  m.norms = config.flag("qk_norm", true), m.output_norm = config.flag("use_output_norm", false);
  const std::string gate = config.flag("use_output_gate", false) ? "z_proj" : "";
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_linear(i) ? "lightning layers" : "attention layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_linear(i) ? lightning_mixer(m, gate) : attention(a), gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  if (!full.empty()) tree.attention.push_back(geometry(a, full));
  if (!linear.empty())
    tree.recurrent.push_back({.title = "lightning attention",
                              .layers = linear,
                              .heads = m.heads.heads.value(),
                              .state_values = (m.heads.heads * m.heads.head_dim * m.heads.head_dim).value()});
}

constexpr std::string_view kSalaArchitectures[] = {"MiniCPMSALAForCausalLM"}, kSalaTypes[] = {"minicpm_sala"};

}  // namespace

const Family kMinicpmSala = {"minicpm_sala",       "MiniCPM-SALA", kSalaArchitectures, kSalaTypes, {},
                             describe_minicpm_sala};

}  // namespace assay::families
