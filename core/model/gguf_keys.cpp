#include "core/model/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

// Read under a name of config.json, and unread where the family does not read that one; without a name, by
// the module tree.
struct ReadKey {
  std::string_view key, config;
};
constexpr ReadKey kRead[] = {
    {"vocab_size", ""},
    {"context_length", ""},
    {"embedding_length", ""},
    {"block_count", ""},
    {"feed_forward_length", ""},
    {"attention.head_count", ""},
    {"attention.head_count_kv", ""},
    {"attention.key_length", ""},
    {"attention.value_length", ""},
    {"attention.key_length_mla", ""},
    {"attention.value_length_mla", ""},
    {"attention.q_lora_rank", ""},
    {"attention.kv_lora_rank", ""},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"attention.sliding_window", "sliding_window"},
    {"expert_count", ""},
    {"expert_used_count", ""},
    {"expert_feed_forward_length", ""},
    {"expert_shared_feed_forward_length", ""},
    {"nextn_predict_layers", ""},
    {"rope.freq_base", "rope_theta"},
    {"rope.scaling.type", "rope_scaling"},
    {"rope.scaling.factor", "rope_scaling"},
    {"rope.scaling.original_context_length", "rope_scaling"},
    {"rope.scaling.yarn_beta_fast", "rope_scaling"},
    {"rope.scaling.yarn_beta_slow", "rope_scaling"},
};

// What changes numbers: computed where the family reads the key of config.json named beside it (none: never),
// else only of a neutral value. Flags count as 0 and 1.
struct NumberKey {
  std::string_view key, config;
  std::array<double, 3> neutral;
};
constexpr NumberKey kNumbers[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping", {0, 0, 0}},
    {"final_logit_softcapping", "final_logit_softcapping", {0, 0, 0}},
    {"router_logit_softcapping", "", {0, 0, 0}},
    {"logit_scale", "", {0, 1, 1}},
    {"residual_scale", "", {0, 1, 1}},
    {"embedding_scale", "", {0, 1, 1}},
    {"attention.scale", "", {0, 0, 0}},
    {"attention.output_scale", "", {0, 1, 1}},
    {"attention.value_scale", "", {0, 1, 1}},
    {"attention.temperature_scale", "", {0, 0, 0}},
    {"attention.clamp_kqv", "", {0, 0, 0}},
    {"attention.max_alibi_bias", "", {0, 0, 0}},
    {"attention.causal", "", {1, 1, 1}},
    {"attention.shared_kv_layers", "", {0, 0, 0}},
    {"attention.sliding_window_pattern", "", {0, 0, 0}},
    {"attention.key_length_swa", "", {0, 0, 0}},
    {"attention.value_length_swa", "", {0, 0, 0}},
    {"attention.relative_buckets_count", "", {0, 0, 0}},
    {"attention.group_norm_groups", "", {0, 0, 0}},
    {"attention.indexer.head_count", "index_n_heads", {0, 0, 0}},
    {"attention.indexer.key_length", "index_head_dim", {0, 0, 0}},
    {"attention.indexer.top_k", "index_topk", {0, 0, 0}},
    {"attention.decay_lora_rank", "", {0, 0, 0}},
    {"attention.iclr_lora_rank", "", {0, 0, 0}},
    {"attention.value_residual_mix_lora_rank", "", {0, 0, 0}},
    {"attention.gate_lora_rank", "", {0, 0, 0}},
    {"use_parallel_residual", "", {0, 0, 0}},
    {"swin_norm", "", {0, 0, 0}},
    {"rescale_every_n_layers", "", {0, 0, 0}},
    {"token_shift_count", "", {0, 0, 0}},
    {"time_mix_extra_dim", "", {0, 0, 0}},
    {"time_decay_extra_dim", "", {0, 0, 0}},
    {"full_attention_interval", "", {0, 1, 1}},
    {"activation_sparsity_scale", "", {0, 0, 0}},
    {"embedding_length_per_layer_input", "", {0, 0, 0}},
    {"swiglu_clamp_exp", "", {0, 0, 0}},
    {"swiglu_clamp_shexp", "", {0, 0, 0}},
    {"n_deepstack_layers", "", {0, 0, 0}},
    {"leading_dense_block_count", "first_k_dense_replace", {0, 0, 0}},
    {"interleave_moe_layer_step", "interleave_moe_layer_step", {0, 1, 1}},
    {"moe_every_n_layers", "", {0, 1, 1}},
    {"moe_latent_size", "", {0, 0, 0}},
    {"expert_shared_count", "n_shared_experts", {0, 0, 0}},
    {"expert_chunk_feed_forward_length", "", {0, 0, 0}},
    {"expert_weights_scale", "routed_scaling_factor", {0, 1, 1}},
    {"expert_group_count", "n_group", {0, 1, 1}},
    {"expert_group_used_count", "topk_group", {0, 1, 1}},
    {"expert_group_scale", "", {0, 1, 1}},
    {"experts_per_group", "", {0, 1, 1}},
    {"rope.freq_base_swa", "rope_local_base_freq", {0, 0, 0}},
    {"rope.dimension_count_swa", "", {0, 0, 0}},
    {"rope.dimension_sections", "", {0, 0, 0}},
    {"rope.scale_linear", "", {0, 1, 1}},
    {"rope.scaling.alpha", "", {0, 1, 1}},
    {"rope.scaling.yarn_ext_factor", "", {-1, 1, 1}},
    {"rope.scaling.yarn_attn_factor", "", {1, 1, 1}},
};
// What other kinds of layers are made of.
constexpr std::string_view kOtherLayers[] = {"ssm.",      "wkv.",   "kda.",   "shortconv.",
                                             "convnext.", "altup.", "posnet."};
// Decided below, beside other keys.
constexpr std::string_view kJudged[] = {"expert_gating_func", "expert_weights_norm", "rope.dimension_count",
                                        "rope.scaling.attn_factor", "rope.scaling.yarn_log_multiplier"};
// Training, tokens, pooling and classes of other heads; lengths that go with a key above.
constexpr std::string_view kIdle[] = {"tensor_data_layout",
                                      "rope.scaling.finetuned",
                                      "pooling_type",
                                      "decoder_start_token_id",
                                      "decoder_block_count",
                                      "classifier.output_labels",
                                      "features_length",
                                      "embedding_length_out",
                                      "attention.temperature_length",
                                      "attention.group_norm_epsilon"};

template <class Entry, std::size_t N>
const Entry* entry_of(const Entry (&list)[N], std::string_view key) {
  const auto it =
      std::find_if(std::begin(list), std::end(list), [&](const Entry& e) { return e.key == key; });
  return it == std::end(list) ? nullptr : &*it;
}
bool is_one_of(std::span<const std::string_view> list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

bool is_of_other_layers(std::string_view key) {
  const auto begins = [&](std::string_view prefix) { return key.starts_with(prefix); };
  return std::any_of(std::begin(kOtherLayers), std::end(kOtherLayers), begins) || key.ends_with("_feat_in") ||
         key.ends_with("_feat_out");
}

// Flags and numbers, of lists each; nullopt for texts.
std::optional<std::vector<double>> numbers_of(const gguf::Value& value) {
  if (const auto* list = std::get_if<gguf::Array>(&value)) {
    if (list->type == gguf::ValueType::string || list->type == gguf::ValueType::array) return std::nullopt;
    return list->numbers();
  }
  if (const auto* flag = std::get_if<bool>(&value)) return std::vector<double>{*flag ? 1.0 : 0.0};
  if (const auto* n = std::get_if<std::uint64_t>(&value)) return std::vector<double>{static_cast<double>(*n)};
  if (const auto* n = std::get_if<std::int64_t>(&value)) return std::vector<double>{static_cast<double>(*n)};
  if (const auto* x = std::get_if<double>(&value)) return std::vector<double>{*x};
  return std::nullopt;
}

class Judge {
 public:
  Judge(const Checkpoint& checkpoint, const ModelConfig& config, const ConfigKeys& keys)
      : checkpoint_(checkpoint),
        header_(*checkpoint.gguf),
        config_(config),
        keys_(keys),
        prefix_(config.architecture() + ".") {}

  void require_all(std::string_view fault) const {
    each([&](std::string_view key, const gguf::Value& value) {
      if (is_neutral(key, value)) return;
      throw Error::input(
          fmt::format("{}{} is {}, {}", prefix_, escape_for_terminal(key), shown(value), fault))
          .in(config_.source());
    });
  }

  std::vector<std::string> unread() const {
    std::vector<std::string> names;
    each([&](std::string_view key, const gguf::Value&) {
      const GgufKeyFate fate = fate_of_gguf_key(key);
      const ReadKey* read = entry_of(kRead, key);
      if (fate == GgufKeyFate::unknown || (read != nullptr && !read->config.empty() && !reads(read->config)))
        names.push_back(prefix_ + std::string(key));
    });
    return names;
  }

 private:
  template <class Use>
  void each(const Use& use) const {
    for (const gguf::KeyValue& entry : header_.metadata) {
      if (entry.key.starts_with(prefix_))
        use(std::string_view(entry.key).substr(prefix_.size()), entry.value);
    }
  }

  bool declares(std::span<const std::string_view> list, std::string_view name) const {
    return !name.empty() && is_one_of(list, name);
  }
  bool uses(std::string_view name) const {
    const auto is_key = [&](const FixedKey& fixed) { return fixed.key == name; };
    return declares(keys_.used, name) || std::any_of(keys_.fixed.begin(), keys_.fixed.end(), is_key);
  }
  bool reads(std::string_view name) const { return uses(name) || declares(keys_.idle, name); }

  std::optional<double> number(std::string_view key) const {
    const gguf::KeyValue* found = header_.find(prefix_ + std::string(key));
    if (found == nullptr) return std::nullopt;
    const auto numbers = numbers_of(found->value);
    return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
  }
  bool is_latent() const { return number("attention.kv_lora_rank").value_or(0) > 0; }
  double head_width() const {
    const double heads = number("attention.head_count").value_or(0);
    const double shared = heads > 0 ? number("embedding_length").value_or(0) / heads : 0;
    return number("attention.key_length").value_or(shared);
  }

  bool is_neutral(std::string_view key, const gguf::Value& value) const {
    const auto numbers = numbers_of(value);
    const auto all = [&](const auto& good) {
      return numbers && std::all_of(numbers->begin(), numbers->end(), good);
    };
    if (is_one_of(kJudged, key)) return all([&](double x) { return is_computed(key, x); });
    if (is_of_other_layers(key)) return all([](double x) { return x == 0; });
    if (key == "attention.value_length" && !is_latent())
      return all([&](double x) { return x == head_width(); });
    const NumberKey* entry = entry_of(kNumbers, key);
    if (entry == nullptr || uses(entry->config)) return true;
    if (key == "rope.freq_base_swa")
      return all([&](double x) { return x == number("rope.freq_base").value_or(10000); });
    if (key == "attention.scale") return all([&](double x) { return x == 0 || is_usual_scale(x); });
    return all([&](double x) {
      return std::find(entry->neutral.begin(), entry->neutral.end(), x) != entry->neutral.end();
    });
  }

  bool is_sigmoid() const {
    const auto method = config_.text().find("topk_method");
    return uses("topk_method") && method != config_.text().end() && *method == "noaux_tc";
  }
  bool is_usual_scale(double x) const { return std::fabs(x * std::sqrt(head_width()) - 1) < 1e-6; }

  bool is_computed(std::string_view key, double x) const {
    if (key == "expert_gating_func")
      return uses("topk_method") ? x == 0 || x == 1 || x == 2 : x == 0 || x == 1;
    // Softmax mixtures of DeepSeek-V2 leave weights as they are, those of other families add up to 1.
    if (key == "expert_weights_norm")
      return uses("norm_topk_prob") || is_sigmoid() || x == (declares(keys_.idle, "norm_topk_prob") ? 0 : 1);
    if (key == "rope.dimension_count")
      return is_latent() || uses("partial_rotary_factor") || x == head_width();
    if (key == "rope.scaling.yarn_log_multiplier") return is_latent() || x == 0;
    // Beside the two lists of factors it is how cos and sin are scaled.
    const bool longrope =
        std::any_of(checkpoint_.tensors.begin(), checkpoint_.tensors.end(),
                    [](const CheckpointTensor& t) { return t.name == "rope_factors_long.weight"; });
    return x == 1 || longrope;
  }

  static std::string shown(const gguf::Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const auto* text = std::get_if<std::string>(&value))
      return fmt::format("\"{}\"", escape_for_terminal(*text));
    const auto numbers = numbers_of(value);
    if (numbers && numbers->size() == 1) return fmt::format("{:.7g}", numbers->front());
    return "a list";
  }

  const Checkpoint& checkpoint_;
  const gguf::Header& header_;
  const ModelConfig& config_;
  const ConfigKeys& keys_;
  std::string prefix_;
};

}  // namespace

GgufKeyFate fate_of_gguf_key(std::string_view key) {
  if (entry_of(kRead, key) != nullptr) return GgufKeyFate::read;
  if (entry_of(kNumbers, key) != nullptr || is_one_of(kJudged, key) || is_of_other_layers(key))
    return GgufKeyFate::changes_numbers;
  return is_one_of(kIdle, key) ? GgufKeyFate::idle : GgufKeyFate::unknown;
}

void require_gguf_keys(const Checkpoint& checkpoint, const ModelConfig& config, const ConfigKeys& keys,
                       std::string_view fault) {
  Judge(checkpoint, config, keys).require_all(fault);
}

std::vector<std::string> unread_gguf_keys(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const ConfigKeys& keys) {
  return Judge(checkpoint, config, keys).unread();
}

}  // namespace assay
