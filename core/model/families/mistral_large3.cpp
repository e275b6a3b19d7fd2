// Mistral Large 3 (675B): DeepSeek-V3's layers under Mistral's own names, experts chosen by a softmax without a bias, queries that grow with
// the text; described by a params.json (core/formats/mistral_params.h). Sources: vLLM 0.32, models/mistral_large_3.py and deepseek_v2.py.
#include <array>

#include "core/model/families/all_mixtures.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/mistral_native.h"
#include "core/model/families/soft_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

struct OwnName {
  std::string_view usual, own;
};
constexpr OwnName kOwnNames[] = {{"q_a_proj.", "wq_a."},
                                 {"q_a_layernorm.", "q_a_norm."},
                                 {"q_b_proj.", "wq_b."},
                                 {"kv_a_proj_with_mqa.", "wkv_a_with_mqa."},
                                 {"kv_a_layernorm.", "kv_a_norm."},
                                 {"kv_b_proj.", "wkv_b."},
                                 {"o_proj.", "wo."}};

void take_own_names(Module& module) {
  for (TensorSpec& spec : module.tensors) {
    for (const OwnName& name : kOwnNames) {
      if (!spec.name.starts_with(name.usual)) continue;
      spec.name = std::string(name.own) + spec.name.substr(name.usual.size());
      break;
    }
  }
  for (Module& child : module.children) take_own_names(child);
}

Module own_attention(const LatentAttention& a) {
  Module module = attention(a);
  take_own_names(module);
  module.path = "attention";
  return module;
}

Mixture read_own_experts(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  for (const char* key : {"n_routed_experts", "num_experts_per_tok"}) config.size(key);
  Mixture m{d.hidden, read_experts(config, tree, "n_routed_experts", 0, "num_experts_per_tok", 0),
            config.size("moe_intermediate_size")};
  m.path = "";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  if (const std::uint64_t shared = config.optional_number("n_shared_experts").value_or(0); shared > 0)
    m.shared_width = Quantity("n_shared_experts", shared) * m.expert_width;
  return m;
}

// Nothing is left to a class: what the params do not say has no default.
void describe_mistral_large3(ConfigReader& config, ModuleTree& tree) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
    config.size(key);
  config.require(config.has("first_k_dense_replace"), "first_k_dense_replace is not there");
  const Decoder d =
      read_decoder(config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0},
                   HeadDim::unused);
  const LatentAttention a = read_latent_attention(config, d, {.q_rank = std::nullopt});
  config.require(a.q_rank.has_value(), "q_lora_rank is not there, and no name of such queries is known");
  const Mixture m = read_own_experts(config, tree, d);
  const std::uint64_t dense = config.number("first_k_dense_replace", 0),
                      every = config.size("moe_layer_freq", 1).value();
  const GatedMlp mlp = mistral_mlp(d.hidden, d.intermediate);
  const auto is_sparse = [&](std::uint64_t i) { return i >= dense && i % every == 0; };
  const auto groups = group_layers(
      "layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_sparse(i) ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_mistral_norms(layer, d.hidden);
        layer.children = {own_attention(a), is_sparse(i) ? mixture(m) : gated_mlp(mlp)};
      });
  add_frame(tree, d, groups, kMistralFrame);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_mistral_native_vision(config, tree, d.hidden);
}

constexpr std::string_view kLarge3Architectures[] = {"MistralLarge3ForCausalLM"};

}  // namespace

const Family kMistralLarge3 = {"mistral_large3",        "Mistral Large 3",     kLarge3Architectures, {}, {},
                               describe_mistral_large3, forward_mistral_large3};

}  // namespace assay::families
