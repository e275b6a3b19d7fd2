// GigaChat 3.5: DeepSeek-V3's experts, Gated DeltaNet in most layers and latent attention under a gate in the others, between
// norms whose output passes a gate of low rank. Source: SGLang 0.5.23's gigachat35.py and its configuration.
#include <algorithm>

#include "core/model/families/all_hub.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/llama_kin.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kGateRank = 16;

// norm(x) · w · sigmoid(down(silu(up(norm(x))))), or the norm alone.
void add_gated_norm(Module& module, const std::string& name, const Quantity& width, Role role, Part part,
                    bool gated) {
  add_norm(module, name, width, role, false, part);
  if (!gated) return;
  const std::string prefix = name.empty() ? "" : name + ".";
  const Quantity rank("rank of the gate", kGateRank);
  add_linear(module, {.name = prefix + "gate_up_projection",
                      .in = width,
                      .out = rank,
                      .role = role,
                      .part = part,
                      .quantizable = false});
  add_linear(module, {.name = prefix + "gate_down_projection",
                      .in = rank,
                      .out = width,
                      .role = role,
                      .part = part,
                      .quantizable = false});
}

struct GigaNorms {
  bool gated = false, behind = false;
};
GigaNorms read_giga_norms(ConfigReader& config) {
  const std::string type = config.text("norm_type", "ZeroCenteredGatedNorm"),
                    place = config.text("layernorm_type", "pre_post");
  const bool gated = type == "ZeroCenteredGatedNorm" || type == "GatedNorm";
  config.require(gated || type == "LlamaRMSNorm" || type == "ZeroCenteredRMSNorm",
                 "norm_type is none of those that GigaChat 3.5 has");
  config.require(place == "pre" || place == "post" || place == "pre_post",
                 "layernorm_type is none of pre, post and pre_post");
  return {gated, place != "pre"};
}

Module giga_latent(const LatentAttention& a, bool gated) {
  Module module = attention(a);
  if (!gated) return module;
  for (Module& part : module.children) {
    for (const char* name : {"q_a_layernorm", "kv_a_layernorm"}) {
      const std::string weight = std::string(name) + ".weight";
      const auto norm = std::find_if(part.tensors.begin(), part.tensors.end(),
                                     [&](const TensorSpec& spec) { return spec.name == weight; });
      if (norm == part.tensors.end()) continue;
      const Role role = norm->role;
      const Quantity width = norm->elements;
      part.tensors.erase(norm);
      add_gated_norm(part, name, width, role, Part::attention, true);
    }
  }
  return module;
}

Mixture read_giga_experts(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  Mixture m{d.hidden, read_experts(config, tree, "n_routed_experts", 64, "num_experts_per_tok", 6),
            config.size("moe_intermediate_size", 896)};
  config.require(!config.flag("use_shared_expert_sigmoid", false),
                 "use_shared_expert_sigmoid is true: nobody tells the names of what it adds");
  const std::uint64_t shared = config.optional_number("n_shared_experts", 2).value_or(0);
  if (shared > 0) m.shared_width = Quantity("n_shared_experts", shared) * m.expert_width;
  if (config.text("topk_method", "noaux_tc") == "noaux_tc") m.correction = "gate.e_score_correction_bias";
  return m;
}

std::vector<bool> read_full_layers(ConfigReader& config, const Quantity& layers) {
  std::vector<bool> full(layers.value(), false);
  if (const auto types = layer_texts(config, "layer_types", layers)) {
    for (std::size_t i = 0; i < full.size(); ++i) {
      const std::string& type = (*types)[i];
      full[i] = type == "attention" || type == "full_attention";
      config.require(full[i] || type == "linear_attention", "layer_types holds \"" + type + "\"");
    }
    return full;
  }
  const auto named = config.numbers("full_attention_layers").value_or(std::vector<std::uint64_t>{});
  for (const std::uint64_t layer : named) {
    config.require(layer < full.size(), "full_attention_layers names a layer there is not");
    full[layer] = true;
  }
  return full;
}

void describe_gigachat35(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 128256, .hidden = 1280, .intermediate = 896, .layers = 12, .heads = 16},
      HeadDim::unused);
  config.require(!d.tied, "tie_word_embeddings is true: the class has a head of its own always");
  const GigaNorms norms = read_giga_norms(config);
  LatentAttention a = read_latent_attention(config, d, {});
  a.bias = config.flag("attention_bias", false);
  if (config.flag("gated_attention", true)) a.gate = "gate_proj";
  const GatedDeltaNet n{d.hidden,
                        config.size("linear_num_key_heads", 8),
                        config.size("linear_num_value_heads", 16),
                        config.size("linear_key_head_dim", 128),
                        config.size("linear_value_head_dim", 128),
                        config.size("linear_conv_kernel_dim", 4),
                        true};
  config.require_divides(n.key_heads, n.value_heads);
  const Mixture m = read_giga_experts(config, tree, d);
  const auto full = read_full_layers(config, d.layers);
  const std::uint64_t dense = config.number("first_k_dense_replace", 1),
                      every = config.size("moe_layer_freq", 1).value();
  const auto is_sparse = [&](std::uint64_t i) { return i >= dense && i % every == 0; };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(full[i] ? "MLA" : "DeltaNet") + (is_sparse(i) ? " MoE layers" : " dense layers");
      },
      [&](Module& layer, std::uint64_t i) {
        const auto add = [&](const char* name, Role role) {
          add_gated_norm(layer, name, d.hidden, role, Part::norm, norms.gated);
        };
        add("input_layernorm", Role::input_norm);
        add("post_attention_layernorm", Role::pre_feedforward_norm);
        if (norms.behind) add("post_self_attn_layernorm", Role::post_attention_norm);
        if (norms.behind) add("post_feedforward_layernorm", Role::post_feedforward_norm);
        Module attend = full[i] ? giga_latent(a, norms.gated) : gated_delta_net(n);
        attend.path = "self_attn";
        layer.children = {std::move(attend), is_sparse(i) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  Module& last = tree.modules[tree.modules.size() - 2];
  last.tensors.clear();
  add_gated_norm(last, "", d.hidden, Role::final_norm, Part::norm, norms.gated);
  const auto latent = layers_where(d.layers, [&](std::uint64_t i) { return full[i]; });
  const auto linear = layers_where(d.layers, [&](std::uint64_t i) { return !full[i]; });
  if (!latent.empty()) tree.attention.push_back(geometry(a, latent));
  if (!linear.empty()) tree.recurrent.push_back(geometry(n, linear));
  if (read_mtp_layers(config, 0) > 0)
    tree.not_counted.push_back({"multi-token prediction (its tensors are not described)", std::nullopt});
}

constexpr std::string_view kGigaArchitectures[] = {"GigaChat35ForCausalLM"}, kGigaTypes[] = {"gigachat3_5"};

}  // namespace

const Family kGigachat35 = {"gigachat3_5",      "GigaChat 3.5", kGigaArchitectures, kGigaTypes, {},
                            describe_gigachat35};

}  // namespace assay::families
