// CogVLM and CogVLM2: a Llama with a second set of matrices in every layer, which tokens of an image meet, behind EVA2-CLIP. What
// words never meet is told with the towers. Sources: the authors' code (visual.py, modeling_cogvlm.py) for the first, whose
// 17,639,685,376 parameters it is held to; for the second, which shares keys and gives the vision experts' queries a bias, engines
// that load it (lmdeploy, llama.cpp). Counted, not computed.
#include "core/model/families/all_encoders.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// The same matrices once more, named after what sees.
Module vision_experts(const Decoder& d, bool bias) {
  Module experts = layers("model.layers.{layer}", "vision experts", all_layers(d.layers));
  const Quantity qkv = (d.heads + Quantity(2) * d.kv_heads) * d.head_dim;
  Tower(experts, Part::vision)
      .matrix("self_attn.vision_expert_query_key_value", d.hidden, qkv, bias)
      .matrix("self_attn.vision_expert_dense", d.heads * d.head_dim, d.hidden, false)
      .matrix("mlp.vision_mlp.gate_proj", d.hidden, d.intermediate, false)
      .matrix("mlp.vision_mlp.up_proj", d.hidden, d.intermediate, false)
      .matrix("mlp.vision_mlp.down_proj", d.intermediate, d.hidden, false);
  return experts;
}

void describe_cogvlm(ConfigReader& config, ModuleTree& tree) {
  const bool second = config.has("num_multi_query_heads");
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    config.size(key);
  Decoder d = read_decoder(
      config, tree, {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  if (second) {
    d.kv_heads = config.size("num_multi_query_heads");
    config.require_divides(d.kv_heads, d.heads);
  }
  LlamaKin kin;
  kin.bias_keys = "";
  kin.heads.fused = "language_expert_query_key_value", kin.heads.o = "language_expert_dense";
  kin.mlp.path = "mlp.language_mlp";
  describe_kin(config, tree, kin, d);
  tree.towers.push_back(vision_experts(d, second));
  add_eva_vision(config, tree, d.hidden, d.intermediate,
                 {.path = "model.vision", .joins = second ? EvaJoins::alike : EvaJoins::none});
  config.require(tree.towers.size() == 2, "vision_config is missing");
}

constexpr std::string_view kCogvlmArchitectures[] = {"CogVLMForCausalLM"}, kCogvlmTypes[] = {"cogvlm"};

}  // namespace

const Family kCogvlm = {"cogvlm", "CogVLM, CogVLM2", kCogvlmArchitectures, kCogvlmTypes, {}, describe_cogvlm};

}  // namespace assay::families
