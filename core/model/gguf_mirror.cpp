#include "core/model/gguf_mirror.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/formats/json.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_shapes.h"
#include "core/model/gguf_undo.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

const GgufOwnKey* own_key(const GgufRules& rules, std::string_view key) {
  const auto found = std::find_if(rules.keys.begin(), rules.keys.end(),
                                  [&](const GgufOwnKey& own) { return own.key == key; });
  return found == rules.keys.end() ? nullptr : &*found;
}

// "a.b|c": the first of the names, as a member of an object of config.json.
void put(ParsedJson& config, std::string_view names, ParsedJson value) {
  const std::string_view name = names.substr(0, names.find('|'));
  ParsedJson* object = &config;
  std::size_t begin = 0;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', begin)) {
    object = &(*object)[std::string(name.substr(begin, dot - begin))];
    begin = dot + 1;
  }
  (*object)[std::string(name.substr(begin))] = std::move(value);
}

// --- config.json ---------------------------------------------------------------------------------------------------

class ConfigOf {
 public:
  ConfigOf(const GgufSaid& said, const GgufFamily& family)
      : said_(said), family_(family), rules_(gguf_rules(family)) {}

  ParsedJson run() {
    config_["architectures"] = {std::string(family_.hf_class)};
    config_["model_type"] = std::string(family_.family);
    take_table();
    take_rope();
    take_tensors();
    for (const auto& keys : {rules_.early_keys, rules_.keys}) {
      for (const GgufOwnKey& key : keys) take_own(key);
    }
    if (rules_.back != nullptr) rules_.back(said_, config_);
    settle_names();
    return std::move(config_);
  }

 private:
  // Names that most families share, but for those of keys that have an entry of the family's own.
  void take_table() {
    constexpr std::string_view kApart = "rope_scaling.";
    for (const GgufKey& key : gguf_key_table()) {
      const bool named = !key.config.empty() && key.reading != GgufKey::Reading::none;
      if (!named || key.config.starts_with(kApart) || key.key == "expert_count" || is_put_by_own(key.key))
        continue;
      if (key.key == "attention.key_length" && rules_.ignores_head_dim) continue;
      if (const ParsedJson value = single(key.key); !value.is_null()) put(config_, key.config, value);
    }
    const std::uint64_t experts = is_put_by_own("expert_count") ? 0 : said_.count("expert_count");
    if (experts > 0) put(config_, family_.experts_key, experts);
    if (said_.count("nextn_predict_layers") == 0) config_.erase("num_nextn_predict_layers");
    take_gating();
    if (said_.has("attention.kv_lora_rank")) take_latent_widths();
  }
  void take_gating() {
    const auto fixed = own_key(rules_, "expert_gating_func");
    const std::uint64_t gating = said_.count("expert_gating_func");
    if (gating == 0 || (fixed != nullptr && fixed->constant)) return;
    config_["scoring_func"] = gating == kGgufSigmoidGating        ? "sigmoid"
                              : gating == kGgufSqrtSoftplusGating ? "sqrtsoftplus"
                                                                  : "softmax";
  }
  // Keys and values of a head, beside what is cached for all heads.
  void take_latent_widths() {
    const std::uint64_t rotary = said_.count("rope.dimension_count");
    const std::uint64_t key = said_.count("attention.key_length_mla", said_.count("attention.key_length"));
    config_["qk_rope_head_dim"] = rotary;
    config_["qk_nope_head_dim"] = key - std::min(key, rotary);
    const std::uint64_t heads = std::max<std::uint64_t>(1, said_.count("attention.head_count"));
    const auto output = said_.shape("blk.0.attn_output.weight");
    config_["v_head_dim"] =
        said_.count("attention.value_length_mla", output.size() == 2 ? output[1] / heads : 0);
    config_["q_lora_rank"] =
        said_.count("attention.q_lora_rank") == 0 ? ParsedJson() : said_.json("attention.q_lora_rank");
    config_["num_key_value_heads"] = heads;
    config_.erase("head_dim");
  }
  bool is_put_by_own(std::string_view key) const {
    const GgufOwnKey* own = own_key(rules_, key);
    return own != nullptr && (own->back != nullptr || !own->config.empty());
  }
  // A list that all layers share is a single value.
  ParsedJson single(std::string_view key) const {
    ParsedJson value = said_.json(key);
    if (!value.is_array()) return value;
    const auto shared = said_.number(key);
    return shared ? ParsedJson(static_cast<std::uint64_t>(*shared)) : ParsedJson();
  }

  void take_rope() {
    const ParsedJson type = said_.json("rope.scaling.type");
    ParsedJson scaling = ParsedJson::object();
    const bool scaled = type == "yarn" || type == "linear";
    if (scaled) {
      scaling["rope_type"] = type;
      for (const auto& [key, name] : {std::pair{"factor", "factor"},
                                      {"original_context_length", "original_max_position_embeddings"},
                                      {"yarn_ext_factor", "extrapolation_factor"},
                                      {"yarn_attn_factor", "attention_factor"},
                                      {"yarn_beta_fast", "beta_fast"},
                                      {"yarn_beta_slow", "beta_slow"}}) {
        ParsedJson value = said_.json(fmt::format("rope.scaling.{}", key));
        if (!value.is_null()) scaling[name] = std::move(value);
      }
      if (const auto log = said_.number("rope.scaling.yarn_log_multiplier"))
        scaling["mscale"] = scaling["mscale_all_dim"] = shortest_decimal(*log * 10);
    }
    const bool has_axes = rules_.rope_types.find("mrope") != std::string_view::npos ||
                          own_key(rules_, "rope.dimension_sections") != nullptr;
    const ParsedJson sections = has_axes ? said_.json("rope.dimension_sections") : ParsedJson();
    if (sections.is_array() && sections.size() == 4) {
      if (!scaled) scaling["rope_type"] = "default";
      scaling["mrope_section"] = sections;
      scaling["mrope_section"].erase(3);
    }
    if (family_.writes_rope_factors && !scaled) take_factors(scaling);
    take_long_factors(scaling);
    if (!scaling.empty()) config_["rope_scaling"] = std::move(scaling);
    if (own_key(rules_, "rope.dimension_count") == nullptr ||
        own_key(rules_, "rope.dimension_count")->back == nullptr)
      keys_back::partial_rotary(said_, config_);
  }

  // Of Llama 3's scaling a file has the factors it leads to, and no key.
  void take_factors(ParsedJson& scaling) const {
    const std::vector<float> factors = said_.values("rope_freqs.weight");
    const auto base = static_cast<float>(said_.number("rope.freq_base").value_or(10000));
    const auto found = factors.empty() ? std::nullopt : llama3_rope_of(factors, base);
    if (found) scaling = llama3_scaling(*found);
  }

  void take_long_factors(ParsedJson& scaling) const {
    const std::vector<float> longer = said_.values("rope_factors_long.weight"),
                             shorter = said_.values("rope_factors_short.weight");
    if (longer.empty() || shorter.empty()) return;
    scaling["rope_type"] = "longrope";
    for (const auto& [name, factors] : {std::pair{"long_factor", &longer}, {"short_factor", &shorter}}) {
      ParsedJson& list = scaling[name] = ParsedJson::array();
      for (const float factor : *factors) list.push_back(shortest_decimal(static_cast<double>(factor)));
    }
    if (said_.has("rope.scaling.original_context_length"))
      scaling["original_max_position_embeddings"] = said_.count("rope.scaling.original_context_length");
  }

  void take_tensors() {
    if (const auto shape = said_.shape("token_embd.weight"); shape.size() == 2)
      config_["vocab_size"] = shape[0];
    config_["tie_word_embeddings"] = !said_.has_tensor("output.weight");
    if (said_.count("attention.head_count") > 0)
      config_["attention_bias"] = said_.any_tensor("attn_q.bias") || said_.any_tensor("attn_qkv.bias");
    if (said_.any_tensor("ffn_down.bias")) config_["mlp_bias"] = true;
  }

  void take_own(const GgufOwnKey& key) {
    if (key.form == GgufOwnKey::Form::file_type || key.key.starts_with("tokenizer.")) return;
    if (key.back != nullptr) {
      if (said_.has(key.key)) key.back(said_, config_);
      return;
    }
    ParsedJson value = key.config.empty() ? ParsedJson() : said_.json(key.key);
    if (!value.is_null()) put(config_, key.config, std::move(value));
  }

  // Of several names for one thing a class reads one: where it takes a default for that, it has been given another.
  void settle_names() {
    constexpr std::string_view kNames[] = {
        "num_local_experts|num_experts|n_routed_experts|moe_num_experts",
        "num_experts_per_tok|moe_topk|num_experts_per_token|top_k_experts|moe_k|moe_top_k",
        "max_position_embeddings|n_positions|model_max_length|max_seq_len|seq_length|n_ctx",
        "intermediate_size|ffn_hidden_size|n_inner|hidden_dim|ffn_dim",
        "hidden_size|n_embd|d_model|n_embed",
        "num_hidden_layers|n_layer|n_layers|num_layers",
        "num_attention_heads|n_head|n_heads",
        "num_key_value_heads|num_kv_heads|n_head_kv"};
    const ModuleTree tree = describe(ModelConfig::from_json(config_, said_.source()));
    for (const DefaultTaken& taken : tree.defaults) {
      for (const std::string_view names : kNames) {
        if (has_name(names, taken.key)) give(names, taken.key);
      }
    }
    settle_epsilon(tree);
  }
  static bool has_name(std::string_view names, std::string_view name) {
    bool found = false;
    each(names, [&](std::string_view one) { found = found || one == name; });
    return found;
  }
  template <class Take>
  static void each(std::string_view names, const Take& take) {
    for (std::size_t begin = 0; begin <= names.size();) {
      const std::size_t end = std::min(names.find('|', begin), names.size());
      take(names.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  void give(std::string_view names, std::string_view wanted) {
    each(names, [&](std::string_view name) {
      const auto found = config_.find(name);
      if (name == wanted || found == config_.end() || config_.contains(wanted)) return;
      config_[std::string(wanted)] = *found;
      config_.erase(std::string(name));
    });
  }
  void settle_epsilon(const ModuleTree& tree) {
    constexpr std::string_view kNames =
        "rms_norm_eps|layer_norm_epsilon|layer_norm_eps|norm_eps|norm_epsilon|layernorm_epsilon";
    const auto epsilon =
        said_.number(said_.has("attention.layer_norm_rms_epsilon") ? "attention.layer_norm_rms_epsilon"
                                                                   : "attention.layer_norm_epsilon");
    const auto* read = std::get_if<Hyperparameters>(&tree.read_hyperparameters);
    const auto is_it = [&](const Hyperparameters& h) {
      return std::fabs(h.epsilon - *epsilon) <= 1e-6 * *epsilon;
    };
    if (!epsilon || read == nullptr || is_it(*read)) return;
    each(kNames, [&](std::string_view name) {
      ParsedJson tried = config_;
      each(kNames, [&](std::string_view other) { tried.erase(std::string(other)); });
      tried[std::string(name)] = shortest_decimal(*epsilon);
      const ModuleTree again = describe(ModelConfig::from_json(tried, said_.source()));
      const auto* found = std::get_if<Hyperparameters>(&again.read_hyperparameters);
      if (found != nullptr && is_it(*found)) config_ = std::move(tried);
    });
  }

  const GgufSaid& said_;
  const GgufFamily& family_;
  const GgufRules& rules_;
  ParsedJson config_ = ParsedJson::object();
};

// --- keys that it would be written with ----------------------------------------------------------------------------

std::vector<double> key_numbers(const gguf::Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return {*flag ? 1.0 : 0.0};
  if (const auto* n = std::get_if<std::uint64_t>(&value)) return {static_cast<double>(*n)};
  if (const auto* n = std::get_if<std::int64_t>(&value)) return {static_cast<double>(*n)};
  if (const auto* x = std::get_if<double>(&value)) return {*x};
  const auto* list = std::get_if<gguf::Array>(&value);
  const bool of_numbers =
      list != nullptr && list->type != gguf::ValueType::string && list->type != gguf::ValueType::array;
  return of_numbers ? list->numbers() : std::vector<double>();
}

// A list of one number, shared by all layers, says what that number says.
bool say_the_same(const gguf::Value& a, const gguf::Value& b) {
  const auto *first = std::get_if<std::string>(&a), *second = std::get_if<std::string>(&b);
  if (first != nullptr || second != nullptr)
    return first != nullptr && second != nullptr && *first == *second;
  std::vector<double> x = key_numbers(a), y = key_numbers(b);
  if (x.size() == 1 && !y.empty()) x.resize(y.size(), x.front());
  if (y.size() == 1 && !x.empty()) y.resize(x.size(), y.front());
  // A number of config.json is written as a float32; what was computed may be the next one.
  const auto near = [](double p, double q) { return p == q || std::fabs(p - q) <= 1e-6 * std::fabs(p); };
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), near);
}

std::string key_shown(const gguf::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return fmt::format("\"{}\"", escape_for_terminal(*text));
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  const std::vector<double> numbers = key_numbers(value);
  return numbers.size() == 1 ? fmt::format("{:.7g}", numbers.front()) : "a list";
}

bool changes_nothing(std::string_view key, const gguf::Value& value) {
  const GgufKey* known = find_gguf_key(key);
  if (known != nullptr && known->fate == GgufKeyFate::idle) return true;
  const std::vector<double> numbers = key_numbers(value);
  const auto is = [&](double x) {
    if (known == nullptr) return x == 0;
    return std::find(known->neutral.begin(), known->neutral.end(), x) != known->neutral.end();
  };
  return !numbers.empty() && std::all_of(numbers.begin(), numbers.end(), is);
}

void check_rewritten_keys(const GgufSaid& said, const GgufFamily& family, const ModelConfig& config,
                          std::vector<std::string>& notes) {
  std::vector<gguf::KeyValue> again = gguf_hyperparameters(config, family, 0);
  for (gguf::KeyValue& key : gguf_early_keys(config, family)) again.push_back(std::move(key));
  const std::string prefix = said.architecture() + ".";
  std::vector<std::string> unknown;
  for (const gguf::KeyValue& entry : said.header().metadata) {
    if (!entry.key.starts_with(prefix)) continue;
    const std::string_view key = std::string_view(entry.key).substr(prefix.size());
    const auto found = std::find_if(again.begin(), again.end(),
                                    [&](const gguf::KeyValue& other) { return other.key == entry.key; });
    if (found != again.end() && say_the_same(entry.value, found->value)) continue;
    const GgufOwnKey* own = own_key(gguf_rules(family), key);
    if (own != nullptr && own->of_tower) continue;
    if (found == again.end() && changes_nothing(key, entry.value)) continue;
    if (found == again.end() && fate_of_gguf_key(key) != GgufKeyFate::changes_numbers) {
      unknown.push_back(entry.key);
      continue;
    }
    throw Error::input(
        fmt::format("{} is {}, which the config.json of a {} cannot say{}", escape_for_terminal(entry.key),
                    key_shown(entry.value), family.hf_class,
                    found == again.end() ? "" : fmt::format(": it would say {}", key_shown(found->value))))
        .in(said.source());
  }
  if (!unknown.empty())
    notes.push_back(fmt::format("not read, and so not in config.json: {}", fmt::join(unknown, ", ")));
}

// --- tensors -------------------------------------------------------------------------------------------------------

// GgufRules::tensor_keys: tensors that are values of a key.
void add_of_keys(const ImaginedCheckpoint& imagined, const ModuleTree& tree, const GgufRules& rules,
                 const GgufSaid& said, std::vector<DerivedTensor>& made) {
  const TensorLookup lookup(tree);
  for (const GgufTensorKey& key : rules.tensor_keys) {
    const gguf::KeyValue* list = said.header().find(key.key);
    const std::vector<double> values = list == nullptr ? std::vector<double>() : key_numbers(list->value);
    for (const LogicalTensor& tensor : imagined.stored.tensors) {
      const auto found = lookup.find(tensor.name);
      if (!found || !found->spec->name.ends_with(key.of)) continue;
      if (found->indices.layer >= values.size())
        throw Error::input(fmt::format("{} has no value for layer {}", key.key, found->indices.layer))
            .in(said.source());
      DerivedTensor one{.name = tensor.name, .shape = tensor.shape};
      one.computed = {static_cast<float>(values[found->indices.layer])};
      made.push_back(std::move(one));
    }
  }
}

}  // namespace

const GgufFamily* family_of_gguf(const GgufSaid& said) {
  const auto is_told = [&](const GgufFamily& family) {
    const GgufRules& rules = gguf_rules(family);
    if (rules.told != nullptr) return rules.told(said);
    switch (family.told_by) {
      case GgufFamily::ToldBy::architecture: return true;
      case GgufFamily::ToldBy::experts: return said.count("expert_count") > 0;
      case GgufFamily::ToldBy::sigmoid_gating:
        return said.count("expert_gating_func") == kGgufSigmoidGating || said.any_tensor("exp_probs_b.bias");
      case GgufFamily::ToldBy::nothing: break;
    }
    return false;
  };
  const GgufFamily* found = nullptr;
  for (const GgufFamily* family : gguf_families()) {
    if (family->architecture != said.architecture() || !can_be_read_back(*family) || !is_told(*family))
      continue;
    const bool closer =
        family->told_by != GgufFamily::ToldBy::architecture || gguf_rules(*family).told != nullptr;
    if (found == nullptr || closer) found = family;
  }
  return found;
}

ParsedJson mirrored_config(const GgufSaid& said, const GgufFamily& family, std::vector<std::string>& notes) {
  ParsedJson config = ConfigOf(said, family).run();
  check_rewritten_keys(said, family, ModelConfig::from_json(config, said.source()), notes);
  return config;
}

std::vector<DerivedTensor> mirrored_tensors(const ModelConfig& config, const ModuleTree& tree,
                                            const GgufFamily& family, const GgufSaid& said,
                                            const StoredTensors& gguf, std::vector<std::string>& left_out) {
  const GgufRules& rules = gguf_rules(family);
  const ImaginedCheckpoint imagined = imagine(tree, rules);
  const std::vector<GgufTensor> written =
      gguf_tensors(config, tree, family, imagined.checkpoint, imagined.stored);
  std::vector<DerivedTensor> made = undo(written, imagined.stored, gguf, said.source(), left_out);
  add_of_keys(imagined, tree, rules, said, made);
  return made;
}

ParsedJson llama3_scaling(const Llama3Rope& rope) {
  return {{"rope_type", "llama3"},
          {"factor", rope.factor},
          {"low_freq_factor", rope.low_freq_factor},
          {"high_freq_factor", rope.high_freq_factor},
          {"original_max_position_embeddings", static_cast<std::uint64_t>(rope.original_context)}};
}

namespace keys_back {

void partial_rotary(const GgufSaid& said, ParsedJson& config) {
  const std::uint64_t rotary = said.count("rope.dimension_count"), heads = said.count("attention.head_count");
  const std::uint64_t shared = heads == 0 ? 0 : said.count("embedding_length") / heads;
  const std::uint64_t width = said.count("attention.key_length", shared);
  if (rotary == 0 || rotary >= width || said.has("attention.kv_lora_rank")) return;
  config["partial_rotary_factor"] = static_cast<double>(rotary) / static_cast<double>(width);
}

void windowed_layers(const GgufSaid& said, ParsedJson& config) {
  ParsedJson types = ParsedJson::array();
  for (const double windowed : said.list("attention.sliding_window_pattern"))
    types.push_back(windowed != 0 ? "sliding_attention" : "full_attention");
  if (!types.empty()) config["layer_types"] = std::move(types);
}

void nothing(const GgufSaid&, ParsedJson&) {}

}  // namespace keys_back

}  // namespace assay
