#include "core/formats/mistral_params.h"

#include <algorithm>
#include <array>
#include <cstdint>
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
constexpr KeyPair kDelay[] = {{"ada_rms_norm_t_cond", "ada_rms_norm_t_cond"},
                              {"ada_rms_norm_t_cond_dim", "ada_rms_norm_t_cond_dim"}};
constexpr KeyPair kPlainExperts[] = {{"num_experts", "num_local_experts"},
                                     {"num_experts_per_tok", "num_experts_per_tok"}};
constexpr KeyPair kYarn[] = {{"factor", "factor"},
                             {"original_max_position_embeddings", "original_max_position_embeddings"},
                             {"beta", "beta_fast"},
                             {"alpha", "beta_slow"}};

constexpr std::uint64_t kMostLayers = 4096;  // more are refused by whoever reads the config

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

// apply_scale: whether YaRN's factor m is applied, true where it is silent. Latent attention has it in its scores, as m²,
// which is what a mscale_all_dim of 1 means; other attention in its angles, as classes have it by default.
ParsedJson rope_of(const ParsedJson& params, bool latent) {
  ParsedJson rope = {{"rope_type", "default"}};
  if (params.contains("rope_theta")) rope["rope_theta"] = params["rope_theta"];
  if (const ParsedJson* yarn = object_in(params, "yarn"); yarn != nullptr && !yarn->empty()) {
    rope["rope_type"] = "yarn";
    copy(*yarn, kYarn, rope);
    const auto scales = yarn->find("apply_scale");
    if (scales != yarn->end() && *scales == false)
      rope["attention_factor"] = 1.0;
    else if (latent)
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

// A window of all layers, or a list that the layers take turns with, in which null is none.
void take_windows(const ParsedJson& params, ParsedJson& config) {
  auto windows = params.find("sliding_window");
  if (windows == params.end() || windows->is_null()) windows = params.find("_sliding_window");
  if (windows == params.end() || windows->is_null()) return;
  config["sliding_window"] = *windows;
  const auto layers = params.find("n_layers");
  const bool in_turn = windows->is_array() && !windows->empty() && layers->is_number_unsigned() &&
                       *layers <= kMostLayers && layers->get<std::size_t>() % windows->size() == 0;
  if (!in_turn) return;
  ParsedJson width, kinds = ParsedJson::array();
  for (const ParsedJson& window : *windows) {
    if (window.is_null()) continue;
    if (!width.is_null() && width != window)
      return;  // of two widths, which the list then says to whoever reads it
    width = window;
  }
  for (std::size_t i = 0; i < layers->get<std::size_t>(); ++i)
    kinds.push_back((*windows)[i % windows->size()].is_null() ? "full_attention" : "sliding_attention");
  config["layer_types"] = std::move(kinds);
  config["sliding_window"] = std::move(width);
}

// multimodal.whisper_model_args, where it describes an encoder.
const ParsedJson* whisper_in(const ParsedJson& params) {
  const ParsedJson* several = object_in(params, "multimodal");
  const ParsedJson* whisper = several == nullptr ? nullptr : object_in(*several, "whisper_model_args");
  return whisper == nullptr || object_in(*whisper, "encoder_args") == nullptr ? nullptr : whisper;
}

void take_towers(const ParsedJson& params, ParsedJson& config) {
  const ParsedJson* several = object_in(params, "multimodal");
  const ParsedJson* vision = object_in(params, "vision_encoder");
  if (vision == nullptr && several != nullptr) vision = object_in(*several, "vision_encoder_args");
  if (vision != nullptr) config["vision_config"] = *vision;
  const ParsedJson* whisper = whisper_in(params);
  if (whisper == nullptr) return;
  ParsedJson sound = (*whisper)["encoder_args"];
  if (const ParsedJson* spectrum = object_in((*whisper)["encoder_args"], "audio_encoding_args"))
    sound.update(*spectrum);
  if (const ParsedJson* joined = object_in(*whisper, "downsample_args")) sound.update(*joined);
  config["audio_config"] = std::move(sound);
}

void take_quantization(const ParsedJson& params, ParsedJson& config) {
  const ParsedJson* codes = object_in(params, "quantization");
  if (codes == nullptr) return;
  const auto form = codes->find("qformat_weight"), method = codes->find("quant_method");
  if (form != codes->end() && *form == "fp8_e4m3") config["quantization_config"] = {{"quant_method", "fp8"}};
  if (method == codes->end()) return;
  config["quantization_config"] = *codes;
  if (*method == "compressed_tensors") config["quantization_config"]["quant_method"] = "compressed-tensors";
}

// Mistral Large 3 and Small 4: latent attention, experts beside shared ones.
bool is_latent_mixture(const ParsedJson& params) {
  const ParsedJson* experts = object_in(params, "moe");
  return params.contains("kv_lora_rank") && experts != nullptr && experts->contains("num_shared_experts");
}

// Sizes that the first Llama's params.json does not have.
bool is_native(const ParsedJson& params) {
  const auto type = params.find("model_type");
  const ParsedJson* experts = object_in(params, "moe");
  const bool plain =
      experts == nullptr || (experts->contains("num_experts") && !experts->contains("num_shared_experts"));
  return params.contains("hidden_dim") && params.contains("head_dim") && !params.contains("kv_lora_rank") &&
         plain && (type == params.end() || *type == "transformer");
}

}  // namespace

std::optional<ParsedJson> config_of_mistral_params(const ParsedJson& params) {
  if (!params.is_object() || params.contains("architectures")) return std::nullopt;
  for (const char* key : {"dim", "n_layers", "n_heads", "vocab_size"})
    if (!params.contains(key)) return std::nullopt;
  const bool latent = is_latent_mixture(params);
  if (!latent && !is_native(params)) return std::nullopt;
  ParsedJson config = {{"architectures", {latent ? "MistralLarge3ForCausalLM" : "MistralNativeForCausalLM"}},
                       {"tie_word_embeddings", false},
                       {"max_position_embeddings", 128000}};
  copy(params, kSizes, config);
  const ParsedJson* experts = object_in(params, "moe");
  if (latent) {
    config["norm_topk_prob"] = true;
    copy(*experts, kExperts, config);
  } else {
    config["head_dim"] = params["head_dim"];
    if (experts != nullptr) copy(*experts, kPlainExperts, config);
    copy(params, kDelay, config);
    take_windows(params, config);
  }
  config["rope_parameters"] = rope_of(params, latent);
  take_quantization(params, config);
  take_towers(params, config);
  return config;
}

namespace {

// params.json, where there is one that can be read so.
std::filesystem::path own_description_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path own = folder / "params.json";
  if (!std::filesystem::is_regular_file(own, ignored)) return {};
  try {
    return config_of_mistral_params(read_json(own, kPythonJson)) ? own : std::filesystem::path();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return {};  // whatever it is, it describes no model
  }
}

}  // namespace

std::filesystem::path model_description_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path usual = folder / "config.json";
  return std::filesystem::is_regular_file(usual, ignored) ? usual : own_description_in(folder);
}

std::filesystem::path description_of_weights(const std::filesystem::path& folder,
                                             const std::vector<std::string>& weights) {
  const bool own = !weights.empty() &&
                   std::all_of(weights.begin(), weights.end(),
                               [](const std::string& name) { return name.starts_with("consolidated"); });
  const std::filesystem::path description = own ? own_description_in(folder) : std::filesystem::path();
  return description.empty() ? model_description_in(folder) : description;
}

}  // namespace assay
