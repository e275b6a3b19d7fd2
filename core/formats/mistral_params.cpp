#include "core/formats/mistral_params.h"

#include <array>
#include <string_view>

#include "core/system/error.h"

namespace assay {
namespace {

struct KeyPair {
  std::string_view theirs, ours;
};

constexpr KeyPair kSizes[] = {{"dim", "hidden_size"},
                              {"hidden_dim", "intermediate_size"},
                              {"n_layers", "num_hidden_layers"},
                              {"n_heads", "num_attention_heads"},
                              {"n_kv_heads", "num_key_value_heads"},
                              {"vocab_size", "vocab_size"},
                              {"norm_eps", "rms_norm_eps"},
                              {"tied_embeddings", "tie_word_embeddings"},
                              {"max_position_embeddings", "max_position_embeddings"},
                              {"q_lora_rank", "q_lora_rank"},
                              {"kv_lora_rank", "kv_lora_rank"},
                              {"qk_nope_head_dim", "qk_nope_head_dim"},
                              {"qk_rope_head_dim", "qk_rope_head_dim"},
                              {"v_head_dim", "v_head_dim"},
                              {"activation", "hidden_act"},
                              {"dtype", "dtype"}};
constexpr KeyPair kExperts[] = {{"num_experts", "n_routed_experts"},
                                {"num_experts_per_tok", "num_experts_per_tok"},
                                {"expert_hidden_dim", "moe_intermediate_size"},
                                {"num_shared_experts", "n_shared_experts"},
                                {"first_k_dense_replace", "first_k_dense_replace"},
                                {"route_every_n", "moe_layer_freq"},
                                {"num_expert_groups", "n_group"},
                                {"num_expert_groups_per_tok", "topk_group"},
                                {"routed_scale", "routed_scaling_factor"}};
constexpr KeyPair kYarn[] = {{"factor", "factor"},
                             {"original_max_position_embeddings", "original_max_position_embeddings"},
                             {"beta", "beta_fast"},
                             {"alpha", "beta_slow"}};

const ParsedJson* object_in(const ParsedJson& params, const char* key) {
  const auto found = params.find(key);
  return found == params.end() || !found->is_object() ? nullptr : &*found;
}

template <std::size_t N>
void copy(const ParsedJson& from, const KeyPair (&keys)[N], ParsedJson& to) {
  for (const KeyPair& key : keys) {
    const auto found = from.find(key.theirs);
    if (found != from.end()) to[std::string(key.ours)] = *found;
  }
}

// apply_scale: whether scores are scaled by YaRN's m², which is what a mscale_all_dim of 1 means; it is true where it is silent.
ParsedJson rope_of(const ParsedJson& params) {
  ParsedJson rope = {{"rope_type", "default"}};
  if (params.contains("rope_theta")) rope["rope_theta"] = params["rope_theta"];
  if (const ParsedJson* yarn = object_in(params, "yarn"); yarn != nullptr && !yarn->empty()) {
    rope["rope_type"] = "yarn";
    copy(*yarn, kYarn, rope);
    const auto scales = yarn->find("apply_scale");
    if (scales != yarn->end() && *scales == false)
      rope["attention_factor"] = 1.0;
    else
      rope["mscale"] = rope["mscale_all_dim"] = 1.0;
  }
  if (const ParsedJson* longer = object_in(params, "llama_4_scaling")) {
    if (longer->contains("beta")) rope["llama_4_scaling_beta"] = (*longer)["beta"];
    if (longer->contains("original_max_position_embeddings"))
      rope["llama_4_scaling_floor"] = (*longer)["original_max_position_embeddings"];
    if (!rope.contains("original_max_position_embeddings") && rope.contains("llama_4_scaling_floor"))
      rope["original_max_position_embeddings"] = rope["llama_4_scaling_floor"];
  }
  return rope;
}

}  // namespace

std::optional<ParsedJson> config_of_mistral_params(const ParsedJson& params) {
  if (!params.is_object() || params.contains("architectures")) return std::nullopt;
  for (const char* key : {"dim", "n_layers", "n_heads", "kv_lora_rank"})
    if (!params.contains(key)) return std::nullopt;
  const ParsedJson* experts = object_in(params, "moe");
  if (experts == nullptr || !experts->contains("num_shared_experts")) return std::nullopt;
  ParsedJson config = {{"architectures", {"MistralLarge3ForCausalLM"}},
                       {"norm_topk_prob", true},
                       {"tie_word_embeddings", false},
                       {"max_position_embeddings", 128000}};
  copy(params, kSizes, config);
  copy(*experts, kExperts, config);
  config["rope_parameters"] = rope_of(params);
  if (const ParsedJson* codes = object_in(params, "quantization"))
    if (const auto form = codes->find("qformat_weight"); form != codes->end() && *form == "fp8_e4m3")
      config["quantization_config"] = {{"quant_method", "fp8"}};
  for (const char* tower : {"vision_encoder", "multimodal"})
    if (const ParsedJson* described = object_in(params, tower)) config["vision_config"] = *described;
  return config;
}

std::filesystem::path model_description_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path usual = folder / "config.json", own = folder / "params.json";
  if (std::filesystem::is_regular_file(usual, ignored)) return usual;
  if (!std::filesystem::is_regular_file(own, ignored)) return {};
  try {
    return config_of_mistral_params(read_json(own, kPythonJson)) ? own : std::filesystem::path();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return {};  // whatever it is, it describes no model
  }
}

}  // namespace assay
