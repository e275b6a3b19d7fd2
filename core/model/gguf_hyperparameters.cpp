// The keys below the architecture: the table of gguf_keys.h over what config.json says and, where it is
// silent, what the module tree took from the class.
#include <fmt/format.h>

#include "core/formats/gguf_write.h"
#include "core/formats/json.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_family.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/llama3_rope.h"
#include "core/system/error.h"

namespace assay {
namespace {

bool is_given(const ParsedJson& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

// rope_parameters (transformers 5), or rope_scaling and what stands beside it (before), in one vocabulary.
ParsedJson scaling_of(const ModelConfig& config) {
  ParsedJson rope = ParsedJson::object();
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto found = config.text().find(key);
    if (found != config.text().end() && found->is_object()) rope.update(*found);
  }
  for (const char* key : {"rope_theta", "original_max_position_embeddings"}) {
    if (!rope.contains(key) && is_given(config.text(), key)) rope[key] = config.text()[key];
  }
  if (!rope.contains("rope_type")) rope["rope_type"] = rope.contains("type") ? rope["type"] : "default";
  return rope;
}

class Keys {
 public:
  Keys(const ModelConfig& config, const GgufFamily& family)
      : config_(config), family_(family), tree_(describe(config)), values_(config.text()) {}

  std::vector<gguf::KeyValue> all(std::uint64_t file_type) {
    require_what_is_computed();
    keep_scaling();
    add_class_values();
    make_derived();
    write(true);
    gguf::set_value(made_, gguf::u32_value("general.file_type", file_type));
    write(false);
    return std::move(made_);
  }

 private:
  // What llama.cpp computes for these architectures whatever the config says: no key would tell it otherwise.
  void require_what_is_computed() const {
    if (is_given(values_, "hidden_act") && values_["hidden_act"] != "silu" &&
        values_["hidden_act"] != "swish")
      throw Error::refused(fmt::format("hidden_act is {}: a GGUF has no key for it, and llama.cpp computes "
                                       "silu for {}",
                                       values_["hidden_act"].dump(), family_.architecture))
          .in(config_.source());
    // The weights of the chosen experts are made to add up to 1 there.
    if (family_.always_renormalizes && values_.value("norm_topk_prob", ParsedJson()) == false)
      throw Error::refused(
          fmt::format("norm_topk_prob is false: a GGUF of {} has no key for it that llama.cpp "
                      "reads",
                      family_.architecture))
          .in(config_.source());
  }

  // Of rope_scaling what has a key, as `rope_scaling`.
  void keep_scaling() {
    const ParsedJson rope = scaling_of(config_);
    const ParsedJson& type = rope["rope_type"];
    const bool linear = type == "linear", yarn = type == "yarn";
    if (!(((linear || yarn) && is_given(rope, "factor")) || type == "default" || type == "llama3"))
      throw Error::refused(fmt::format("rope scaling {} has no keys in a GGUF of this family", type.dump()))
          .in(config_.source());
    ParsedJson kept = ParsedJson::object();
    const auto keep = [&](const char* key, const char* from) {
      if (!kept.contains(key) && is_given(rope, from)) kept[key] = rope[from];
    };
    if (linear || yarn) {
      keep("rope_type", "rope_type");
      keep("factor", "factor");
    }
    if (yarn) {
      for (const char* key : {"original_max_position_embeddings", "extrapolation_factor", "attention_factor",
                              "beta_fast", "beta_slow"})
        keep(key, key);
      keep("attention_factor", "attn_factor");
      if (!kept.contains("original_max_position_embeddings"))
        kept["original_max_position_embeddings"] = hyperparameters(tree_).context;
    }
    keep("mscale_all_dim", "mscale_all_dim");
    values_["rope_scaling"] = std::move(kept);
    if (is_given(rope, "rope_theta")) values_["rope_theta"] = rope["rope_theta"];
  }

  void say(std::string_view key, const ParsedJson& value) {
    if (!is_given(values_, key)) values_[key] = value;
  }

  void add_class_values() {
    const Hyperparameters& h = hyperparameters(tree_);
    const AttentionGeometry& g = tree_.attention.front();
    for (const DefaultTaken& taken : tree_.defaults) {
      if (taken.number) say(taken.key, *taken.number);
    }
    values_["vocab_size"] = tree_.vocabulary;
    values_["hidden_size"] = tree_.hidden_size;
    values_["num_hidden_layers"] = tree_.layers;
    values_["num_attention_heads"] = g.heads;
    values_["num_key_value_heads"] = g.kv_heads;
    say("max_position_embeddings", h.context);
    say("rms_norm_eps", h.epsilon);
    say("rope_theta", h.ropes.front().theta);
    say("norm_topk_prob", h.routing.renormalize);
    say("routed_scaling_factor", h.routing.scale);
    if (!family_.topk_method.empty()) {  // V2's class has no groups of its own
      say("n_group", h.routing.groups);
      say("topk_group", h.routing.chosen_groups);
    }
    if (family_.writes_head_dim) say("head_dim", g.qk_head_dim);
    // A model_type that transformers has no class for (Kimi K2) is read as it stands.
    if (family_.latent && config_.model_type() == family_.family) say("head_dim", g.rope_head_dim);
  }

  // What the table has its own names for.
  void make_derived() {
    const AttentionGeometry& g = tree_.attention.front();
    if (tree_.experts > 0) {
      values_["num_local_experts"] = tree_.experts;
      values_["num_experts_per_tok"] = tree_.experts_per_token;
    } else {  // the converter writes what a dense model's config says of experts, too
      for (const char* key : {"num_experts", "n_routed_experts"}) {
        if (is_given(values_, key)) say("num_local_experts", values_[key]);
      }
    }
    values_["rotary_width"] = g.qk_head_dim;
    if (is_given(values_, "scoring_func")) {
      const ParsedJson& scoring = values_["scoring_func"];
      if (scoring != "sigmoid" && scoring != "softmax")
        throw Error::refused(fmt::format("scoring_func {} has no GGUF value", scoring.dump()))
            .in(config_.source());
      values_["gating_of_scoring_func"] = scoring == "sigmoid" ? kGgufSigmoidGating : kGgufSoftmaxGating;
    }
    if (!family_.latent) return;
    values_["num_key_value_heads"] = 1;  // absorbed latent attention is attention with one key-value head
    values_["rotary_width"] = g.rope_head_dim;
    values_["latent_width"] = g.kv_lora_rank + g.rope_head_dim;
    values_["qk_head_dim"] = g.qk_head_dim;
    if (values_["norm_topk_prob"] != true) values_.erase("norm_topk_prob");  // written where it is true
  }

  bool is_written(const GgufKey& key) const {
    switch (key.of) {
      case GgufKey::Of::every: return true;
      case GgufKey::Of::widths: return family_.writes_widths || (key.of_latent_too && family_.latent);
      case GgufKey::Of::expert_width:
        return family_.writes_expert_width || (key.of_latent_too && family_.latent);
      case GgufKey::Of::latent: return family_.latent;
    }
    return false;
  }

  // "rope_scaling.factor" is a member of rope_scaling; nullptr: not given.
  const ParsedJson* find(std::string_view name) const {
    const auto dot = name.find('.');
    const ParsedJson& object = dot == std::string_view::npos ? values_ : values_[name.substr(0, dot)];
    const auto found = object.find(dot == std::string_view::npos ? name : name.substr(dot + 1));
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  void write(bool of_every_family) {
    for (const GgufKey& key : gguf_key_table()) {
      if ((key.of == GgufKey::Of::every) != of_every_family || !is_written(key)) continue;
      const ParsedJson* value = key.writing == GgufKey::Writing::none ? nullptr : find(key.config);
      if (value != nullptr) gguf::set_value(made_, made(key, *value));
    }
  }

  gguf::KeyValue made(const GgufKey& key, const ParsedJson& value) const {
    const std::string name = fmt::format("{}.{}", family_.architecture, key.key);
    switch (key.writing) {
      case GgufKey::Writing::none: break;
      case GgufKey::Writing::u32: {
        const std::uint64_t number = json_u64(value, key.config, config_.source());
        if (number > UINT32_MAX)
          throw Error::input(fmt::format("{} is {}, too large for a GGUF", key.config, number))
              .in(config_.source());
        return gguf::u32_value(name, number);
      }
      case GgufKey::Writing::f32:
        if (!value.is_number())
          throw Error::input(fmt::format("{} is not a number", key.config)).in(config_.source());
        return gguf::f32_value(name, value.get<double>() * key.factor);
      case GgufKey::Writing::flag: return gguf::bool_value(name, value == true);
      case GgufKey::Writing::text: return gguf::text_value(name, value.get<std::string>());
    }
    throw Error::internal(fmt::format("{} is written as nothing", key.key));
  }

  const ModelConfig& config_;
  const GgufFamily& family_;
  const ModuleTree tree_;
  ParsedJson values_;
  std::vector<gguf::KeyValue> made_;
};

float number_or(const ParsedJson& object, const char* key, float fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<float>() : fallback;
}

}  // namespace

std::vector<gguf::KeyValue> gguf_hyperparameters(const ModelConfig& config, const GgufFamily& family,
                                                 std::uint64_t file_type) {
  if (gguf_rules(family).keys_of != GgufRules::Keys::table) return gguf_own_keys(config, family, file_type);
  return Keys(config, family).all(file_type);
}

std::vector<float> rope_frequency_factors(const ModelConfig& config, const GgufFamily& family) {
  const ParsedJson rope = scaling_of(config);
  if (rope.at("rope_type") != "llama3" || !family.writes_rope_factors) return {};
  const ModuleTree tree = describe(config);
  const auto theta = std::holds_alternative<Error>(tree.read_hyperparameters)
                         ? 10000.0F
                         : static_cast<float>(hyperparameters(tree).ropes.front().theta);
  const Llama3Rope usual;
  const Llama3Rope asked{number_or(rope, "factor", usual.factor),
                         number_or(rope, "low_freq_factor", usual.low_freq_factor),
                         number_or(rope, "high_freq_factor", usual.high_freq_factor),
                         number_or(rope, "original_max_position_embeddings", usual.original_context)};
  return llama3_factors(asked, number_or(rope, "rope_theta", theta), tree.attention.front().qk_head_dim);
}

}  // namespace assay
