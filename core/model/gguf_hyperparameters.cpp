// The keys below the architecture, in the order in which llama.cpp's converter writes them
// (conversion/base.py, TextModel.set_gguf_parameters, and the model classes).
#include <fmt/format.h>

#include "core/formats/gguf_write.h"
#include "core/formats/json.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_family.h"
#include "core/model/gguf_gating.h"
#include "core/model/llama3_rope.h"
#include "core/system/error.h"

namespace assay {
namespace {

class Keys {
 public:
  Keys(const ModelConfig& config, const GgufFamily& family)
      : config_(config), family_(family), hf_(config, family) {}

  std::vector<gguf::KeyValue> all(std::uint64_t file_type) {
    const bool latent = family_.architecture == "deepseek2";
    require_what_is_computed();
    sizes(latent);
    rope();
    number("attention.layer_norm_rms_epsilon", hf_.find({"rms_norm_eps", "norm_eps"}));
    experts();
    size("attention.key_length", {"head_dim"});
    size("attention.value_length", {"head_dim"});
    gguf::set_value(made_, gguf::u32_value("general.file_type", file_type));
    if (family_.architecture == "llama") {
      size("vocab_size", {"vocab_size"});
      set(gguf::u32_value(key("rope.dimension_count"), hf_.head_dim()));
    }
    if (family_.architecture == "qwen3moe") size("expert_feed_forward_length", {"moe_intermediate_size"});
    if (latent) latent_attention();
    return std::move(made_);
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  std::string key(std::string_view name) const { return fmt::format("{}.{}", family_.architecture, name); }
  void set(gguf::KeyValue value) { gguf::set_value(made_, std::move(value)); }

  // What llama.cpp computes for these architectures whatever the config says: no key would tell it otherwise.
  void require_what_is_computed() const {
    const ParsedJson* act = hf_.find({"hidden_act"});
    if (act != nullptr && *act != "silu" && *act != "swish")
      throw Error::refused(fmt::format("hidden_act is {}: a GGUF has no key for it, and llama.cpp computes "
                                       "silu for {}",
                                       act->dump(), family_.architecture))
          .in(config_.source());
    // The weights of the chosen experts are made to add up to 1 there.
    const ParsedJson* norm = hf_.find({"norm_topk_prob"});
    if (family_.architecture == "qwen3moe" && norm != nullptr && *norm == false)
      throw Error::refused(
          "norm_topk_prob is false: a GGUF of qwen3moe has no key for it that llama.cpp reads")
          .in(config_.source());
  }

  void size(std::string_view name, Names from) {
    const ParsedJson* value = hf_.find(from);
    if (value == nullptr) return;
    const std::uint64_t number = json_u64(*value, *from.begin(), config_.source());
    if (number > UINT32_MAX)
      throw Error::input(fmt::format("{} is too large for a GGUF", *from.begin())).in(config_.source());
    set(gguf::u32_value(key(name), number));
  }

  void number(std::string_view name, const ParsedJson* value, double factor = 1) {
    if (value == nullptr || value->is_null()) return;
    if (!value->is_number()) throw Error::input(fmt::format("{} is no number", name)).in(config_.source());
    set(gguf::f32_value(key(name), value->get<double>() * factor));
  }

  void sizes(bool latent) {
    size("block_count", {"num_hidden_layers"});
    size("context_length", {"max_position_embeddings"});
    size("embedding_length", {"hidden_size"});
    size("feed_forward_length", {"intermediate_size"});
    size("attention.head_count", {"num_attention_heads"});
    // Absorbed latent attention is attention with one key-value head.
    if (latent)
      set(gguf::u32_value(key("attention.head_count_kv"), 1));
    else
      size("attention.head_count_kv", {"num_key_value_heads"});
  }

  const ParsedJson* in_rope(const char* name) const {
    const auto found = hf_.rope().find(name);
    return found == hf_.rope().end() || found->is_null() ? nullptr : &*found;
  }

  void rope() {
    const ParsedJson& type = hf_.rope().at("rope_type");
    const ParsedJson* factor = in_rope("factor");
    if (type == "linear" && factor != nullptr) {
      set(gguf::text_value(key("rope.scaling.type"), "linear"));
      number("rope.scaling.factor", factor);
    } else if (type == "yarn" && factor != nullptr) {
      set(gguf::text_value(key("rope.scaling.type"), "yarn"));
      number("rope.scaling.factor", factor);
      set(gguf::u32_value(key("rope.scaling.original_context_length"),
                          json_u64(*in_rope("original_max_position_embeddings"),
                                   "original_max_position_embeddings", config_.source())));
      number("rope.scaling.yarn_ext_factor", in_rope("extrapolation_factor"));
      const ParsedJson* attention = in_rope("attention_factor");
      number("rope.scaling.yarn_attn_factor", attention != nullptr ? attention : in_rope("attn_factor"));
      number("rope.scaling.yarn_beta_fast", in_rope("beta_fast"));
      number("rope.scaling.yarn_beta_slow", in_rope("beta_slow"));
    } else if (type != "default" && type != "llama3") {
      throw Error::refused(fmt::format("rope scaling {} has no keys in a GGUF of this family", type.dump()))
          .in(config_.source());
    }
    number("rope.freq_base", in_rope("rope_theta"));
  }

  void experts() {
    size("expert_count", {"num_local_experts", "num_experts", "n_routed_experts"});
    size("expert_used_count", {"num_experts_per_tok", "num_experts_per_token"});
    size("expert_group_count", {"n_group"});
    size("expert_group_used_count", {"topk_group"});
    if (const ParsedJson* scoring = hf_.find({"scoring_func"})) {
      if (*scoring != "sigmoid" && *scoring != "softmax")
        throw Error::refused(fmt::format("scoring_func {} has no GGUF value", scoring->dump()))
            .in(config_.source());
      set(gguf::u32_value(key("expert_gating_func"),
                          *scoring == "sigmoid" ? kGgufSigmoidGating : kGgufSoftmaxGating));
    }
  }

  void latent_attention() {
    const std::uint64_t rank = hf_.size("kv_lora_rank"), rope = hf_.size("qk_rope_head_dim");
    size("leading_dense_block_count", {"first_k_dense_replace"});
    size("vocab_size", {"vocab_size"});
    const auto compressed = config_.text().find("q_lora_rank");  // null: queries are not compressed
    if (compressed == config_.text().end() || !compressed->is_null())
      size("attention.q_lora_rank", {"q_lora_rank"});
    size("attention.kv_lora_rank", {"kv_lora_rank"});
    set(gguf::u32_value(key("attention.key_length"), rank + rope));
    set(gguf::u32_value(key("attention.value_length"), rank));
    set(gguf::u32_value(key("attention.key_length_mla"), hf_.size("qk_nope_head_dim") + rope));
    size("attention.value_length_mla", {"v_head_dim"});
    size("expert_feed_forward_length", {"moe_intermediate_size"});
    size("expert_count", {"n_routed_experts", "num_local_experts"});
    size("expert_shared_count", {"n_shared_experts"});
    number("expert_weights_scale", hf_.find({"routed_scaling_factor"}));
    if (const ParsedJson* norm = hf_.find({"norm_topk_prob"}); norm != nullptr && *norm == true)
      set(gguf::bool_value(key("expert_weights_norm"), true));
    size("rope.dimension_count", {"qk_rope_head_dim"});
    number("rope.scaling.yarn_log_multiplier", in_rope("mscale_all_dim"), 0.1);
  }

  const ModelConfig& config_;
  const GgufFamily& family_;
  GgufParameters hf_;
  std::vector<gguf::KeyValue> made_;
};

float number_or(const ParsedJson& object, const char* key, float fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<float>() : fallback;
}

}  // namespace

std::vector<gguf::KeyValue> gguf_hyperparameters(const ModelConfig& config, const GgufFamily& family,
                                                 std::uint64_t file_type) {
  return Keys(config, family).all(file_type);
}

std::vector<float> rope_frequency_factors(const ModelConfig& config, const GgufFamily& family) {
  const GgufParameters hf(config, family);
  const ParsedJson& rope = hf.rope();
  if (rope.at("rope_type") != "llama3" || family.architecture != "llama") return {};
  const Llama3Rope usual;
  const Llama3Rope asked{number_or(rope, "factor", usual.factor),
                         number_or(rope, "low_freq_factor", usual.low_freq_factor),
                         number_or(rope, "high_freq_factor", usual.high_freq_factor),
                         number_or(rope, "original_max_position_embeddings", usual.original_context)};
  return llama3_factors(asked, number_or(rope, "rope_theta", 10000.0F), hf.head_dim());
}

}  // namespace assay
