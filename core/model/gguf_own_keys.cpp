#include "core/model/gguf_own_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/gguf_write.h"
#include "core/formats/json.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_loaded.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

using Form = GgufOwnKey::Form;

const ParsedJson* there(const ParsedJson& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// "a|b": each of them, until `take` wants no more.
template <class Take>
void each_name(std::string_view names, const Take& take) {
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find('|', begin), names.size());
    if (!take(names.substr(begin, end - begin))) return;
    begin = end + 1;
  }
}

bool names_one(std::string_view names, std::string_view wanted) {
  bool found = false;
  each_name(names, [&](std::string_view name) { return !(found = name == wanted); });
  return found;
}

// The values that a class of transformers would give a config that leaves them out: sizes, without which a
// GGUF loads nowhere.
void add_class_sizes(ParsedJson& values, const ModuleTree& tree) {
  constexpr std::string_view kSizes =
      "hidden_size|num_hidden_layers|num_attention_heads|num_key_value_heads|intermediate_size|head_dim|"
      "vocab_size";
  for (const DefaultTaken& taken : tree.defaults) {
    if (taken.number && names_one(kSizes, taken.key) && there(values, taken.key) == nullptr)
      values[taken.key] = *taken.number;
  }
}

class OwnKeys {
 public:
  OwnKeys(const ModelConfig& config, const GgufFamily& family)
      : config_(config),
        family_(family),
        rules_(gguf_rules(family)),
        tree_(describe(config)),
        values_(values_of(config)),
        rope_(rope_parameters_of(config)) {
    add_class_sizes(values_, tree_);
    if (rules_.ignores_head_dim) values_.erase("head_dim");
    if (const ParsedJson* full = there(rope_, "full_attention"))
      full_ = *full;
    else
      full_ = rope_;
  }

  std::vector<gguf::KeyValue> all(std::uint64_t file_type) {
    file_type_ = file_type;
    require_what_is_computed();
    require_what_is_granted();
    if (rules_.keys_of == GgufRules::Keys::of_config) {
      write_sizes();
      write_rope();
      write_rest();
    }
    for (const GgufOwnKey& key : rules_.keys) write_own(key);
    return std::move(made_);
  }
  std::vector<gguf::KeyValue> early() {
    for (const GgufOwnKey& key : rules_.early_keys) write_own(key);
    return std::move(made_);
  }
  std::vector<DerivedTensor> more_tensors() const { return rules_.more_tensors(facts()); }

 private:
  GgufFacts facts() const { return {config_, tree_, values_, full_}; }

  [[noreturn]] void refuse(const std::string& why) const { throw Error::refused(why).in(config_.source()); }

  void require_what_is_computed() const {
    const ParsedJson* act = facts().find("hidden_activation|hidden_act|activation_function");
    if (!rules_.activations.empty() && act != nullptr && act->is_string() &&
        !names_one(rules_.activations, act->get_ref<const std::string&>()))
      refuse(fmt::format("the activation is {}: a GGUF has no key for it, and llama.cpp computes {} for {}",
                         act->dump(), rules_.activations.substr(0, rules_.activations.find('|')),
                         family_.architecture));
    const ParsedJson* type = there(full_, "rope_type");
    if (type == nullptr) return;
    if (!type->is_string())
      throw Error::input(fmt::format("rope_type is {}, and no name", type->dump())).in(config_.source());
    const std::string name = type->get<std::string>();
    if (name == "default" || names_one(rules_.rope_types, name)) return;
    if (tells_scaling() && names_one("linear|yarn|llama3", name)) return;
    refuse(fmt::format("rope scaling {} has no keys in a GGUF of this family", type->dump()));
  }

  // Families that have all keys of their own may have none for it.
  bool tells_scaling() const {
    return rules_.keys_of != GgufRules::Keys::own ||
           std::any_of(rules_.keys.begin(), rules_.keys.end(),
                       [](const GgufOwnKey& key) { return key.key.starts_with("rope.scaling."); });
  }

  void require_what_is_granted() const {
    for (const auto& demands : {gguf_demands(), gguf_demands_2026()}) {
      for (const GgufDemand& demand : demands) {
        if (!demand.architectures.empty() && !names_one(demand.architectures, family_.architecture)) continue;
        if (const std::string why = demand.broken(facts()); !why.empty()) refuse(why);
      }
    }
  }

  void set(std::string_view key, Form form, const ParsedJson& value) {
    const bool of_tokenizer = key.starts_with("tokenizer.");
    const std::string name =
        of_tokenizer ? std::string(key) : fmt::format("{}.{}", family_.architecture, key);
    const auto number = [&]() -> double {
      if (!value.is_number())
        throw Error::input(fmt::format("{} cannot be made of {}", name, value.dump())).in(config_.source());
      return value.get<double>();
    };
    const auto whole = [&](const ParsedJson& of) {
      const std::uint64_t count = json_u64(of, key, config_.source());
      if (count > UINT32_MAX)
        throw Error::input(fmt::format("{} is {}, too large for a GGUF", key, count)).in(config_.source());
      return count;
    };
    switch (form) {
      case Form::u32:
        if (value.is_array()) return set(key, Form::i32s, value);
        return gguf::set_value(made_, gguf::u32_value(name, whole(value)));
      case Form::f32: return gguf::set_value(made_, gguf::f32_value(name, number()));
      case Form::flag: return gguf::set_value(made_, gguf::bool_value(name, value == true || value == 1.0));
      case Form::text: return gguf::set_value(made_, gguf::text_value(name, value.get<std::string>()));
      case Form::flags: {
        std::vector<bool> flags;
        for (const ParsedJson& one : value) flags.push_back(one == true);
        return gguf::set_value(made_, gguf::bools_value(name, flags));
      }
      case Form::i32s: {
        std::vector<std::int32_t> numbers;
        for (const ParsedJson& one : value) numbers.push_back(one.get<std::int32_t>());
        return gguf::set_value(made_, gguf::i32s_value(name, numbers));
      }
      case Form::f32s: {
        std::vector<float> numbers;
        for (const ParsedJson& one : value) numbers.push_back(one.get<float>());
        return gguf::set_value(made_, gguf::f32s_value(name, numbers));
      }
      case Form::file_type: return gguf::set_value(made_, gguf::u32_value("general.file_type", file_type_));
    }
  }
  void set_from(std::string_view key, Form form, std::string_view names) {
    if (const ParsedJson* value = facts().find(names)) set(key, form, *value);
  }

  void write_sizes() {
    set("block_count", Form::u32, tree_.layers);
    set_from("context_length", Form::u32,
             "max_position_embeddings|n_ctx|n_positions|max_length|max_sequence_length|model_max_length");
    set_from("embedding_length", Form::u32, "hidden_size|n_embd|dim");
    set_from("feed_forward_length", Form::u32,
             "prefix_dense_intermediate_size|dense_intermediate_size|intermediate_size|n_inner|hidden_dim");
    set_from("attention.head_count", Form::u32, "num_attention_heads|n_head|n_heads");
    if (family_.latent)  // absorbed: all queries look at one key
      set("attention.head_count_kv", Form::u32, 1U);
    else
      set_from("attention.head_count_kv", Form::u32, "num_key_value_heads|n_kv_heads");
  }

  void write_rope() {
    const ParsedJson* type = there(full_, "rope_type");
    const ParsedJson* factor = there(full_, "factor");
    if (type != nullptr && (*type == "su" || *type == "longrope"))
      set("rope.scaling.type", Form::text, "longrope");
    if (type != nullptr && factor != nullptr && (*type == "linear" || *type == "yarn")) {
      set("rope.scaling.type", Form::text, *type);
      set("rope.scaling.factor", Form::f32, *factor);
      if (*type == "yarn") write_yarn();
    }
    if (const ParsedJson* sections = there(rope_, "mrope_section")) {
      ParsedJson four = *sections;
      while (four.size() < 4) four.push_back(0);
      set("rope.dimension_sections", Form::i32s, four);
    }
    if (const ParsedJson* theta = there(full_, "rope_theta")) set("rope.freq_base", Form::f32, *theta);
    const ParsedJson* windowed = there(rope_, "sliding_attention");
    const ParsedJson* local = windowed == nullptr ? nullptr : there(*windowed, "rope_theta");
    if (local != nullptr) set("rope.freq_base_swa", Form::f32, *local);
  }

  void write_yarn() {
    const auto yarn = [&](std::string_view key, Form form, std::string_view name) {
      if (const ParsedJson* value = there(full_, name)) set(key, form, *value);
      return there(full_, name) != nullptr;
    };
    if (!yarn("rope.scaling.original_context_length", Form::u32, "original_max_position_embeddings"))
      set_from("rope.scaling.original_context_length", Form::u32, "max_position_embeddings");
    yarn("rope.scaling.yarn_ext_factor", Form::f32, "extrapolation_factor");
    if (!yarn("rope.scaling.yarn_attn_factor", Form::f32, "attention_factor"))
      yarn("rope.scaling.yarn_attn_factor", Form::f32, "attn_factor");
    yarn("rope.scaling.yarn_beta_fast", Form::f32, "beta_fast");
    yarn("rope.scaling.yarn_beta_slow", Form::f32, "beta_slow");
  }

  void write_rest() {
    set_from("attention.layer_norm_rms_epsilon", Form::f32, "rms_norm_eps|norm_eps");
    set_from("attention.layer_norm_epsilon", Form::f32, "layer_norm_eps|layer_norm_epsilon|norm_epsilon");
    set_from("expert_count", Form::u32, "num_local_experts|num_experts|n_routed_experts");
    set_from("expert_used_count", Form::u32, "num_experts_per_tok|num_experts_per_token|top_k_experts");
    if (!rules_.omits_lone_group || facts().number("n_group", 1) != 1) {
      set_from("expert_group_count", Form::u32, "n_group");
      set_from("expert_group_used_count", Form::u32, "topk_group");
    }
    write_gating();
    set_from("attention.key_length", Form::u32, "head_dim");
    set_from("attention.value_length", Form::u32, "head_dim");
    set("general", Form::file_type, nullptr);
  }

  void write_gating() {
    const ParsedJson* scoring = facts().find(
        "score_function|scoring_func|score_func|moe_router_activation|moe_router_activation_func|"
        "expert_selection_fn");
    if (scoring == nullptr) return;
    const bool sigmoid = *scoring == "sigmoid", rooted = *scoring == "sqrtsoftplus";
    const bool is_fixed = std::any_of(rules_.keys.begin(), rules_.keys.end(), [](const GgufOwnKey& key) {
      return key.key == "expert_gating_func" && key.constant;
    });
    if (is_fixed && !sigmoid) return;  // whatever it is called (dots.llm1's "noaux_tc")
    if (!sigmoid && !rooted && *scoring != "softmax")
      refuse(fmt::format("experts are scored by {}, which has no GGUF value", scoring->dump()));
    set("expert_gating_func", Form::u32,
        sigmoid  ? kGgufSigmoidGating
        : rooted ? kGgufSqrtSoftplusGating
                 : kGgufSoftmaxGating);
  }

  void write_own(const GgufOwnKey& key) {
    if (key.form == Form::file_type) return set(key.key, key.form, nullptr);
    ParsedJson value;
    if (key.constant)
      value = key.form == Form::u32 ? ParsedJson(static_cast<std::uint64_t>(*key.constant))
                                    : ParsedJson(*key.constant);
    else if (key.made != nullptr)
      value = key.made(facts());
    else if (const ParsedJson* found = facts().find(key.config))
      value = *found;
    const bool zero = value.is_number() ? value.get<double>() == 0 : value == false;
    if (value.is_null() || (key.unless_zero && zero)) return;
    set(key.key, key.form, value);
  }

  const ModelConfig& config_;
  const GgufFamily& family_;
  const GgufRules& rules_;
  const ModuleTree tree_;
  ParsedJson values_, rope_, full_;
  std::uint64_t file_type_ = 0;
  std::vector<gguf::KeyValue> made_;
};

}  // namespace

ParsedJson values_of(const ModelConfig& config) {
  ParsedJson values = config.document();
  values.update(config.text());
  return values;
}

namespace {

// PLaMo 3's YaRN, under keys of its own (conversion/plamo.py).
void add_plamo_scaling(const ParsedJson& values, ParsedJson& rope) {
  const ParsedJson *factor = there(values, "rope_scaling_factor"),
                   *context = there(values, "initial_context_length");
  if (factor == nullptr || context == nullptr || !factor->is_number() || *factor == 1 ||
      rope.contains("rope_type"))
    return;
  rope["rope_type"] = "yarn";
  rope["factor"] = *factor;
  rope["original_max_position_embeddings"] = *context;
  rope["beta_fast"] = 32.0;
  rope["beta_slow"] = 1.0;
  rope["truncate"] = false;
}

}  // namespace

ParsedJson rope_parameters_of(const ModelConfig& config) {
  const ParsedJson values = values_of(config);
  ParsedJson rope = ParsedJson::object();
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (const ParsedJson* given = there(values, key)) rope = *given;
  }
  if (!rope.is_object()) return ParsedJson::object();
  if (rope.contains("full_attention") || rope.contains("sliding_attention")) return rope;
  const auto mirror = [&](const char* key, std::string_view names) {
    each_name(names, [&](std::string_view name) {
      const ParsedJson* value = there(values, name);
      if (value != nullptr && !rope.contains(key)) rope[key] = *value;
      return value == nullptr;
    });
  };
  each_name("local_rope_theta|rope_local_theta|rope_theta_local|swa_rope_theta|rope_local_base_freq",
            [&](std::string_view name) {
              const ParsedJson* theta = there(values, name);
              if (theta != nullptr) rope["sliding_attention"] = {{"rope_theta", *theta}};
              return theta == nullptr;
            });
  // One for each layer, of which the first sees everything and the second has a window (Step 3.5).
  const ParsedJson* thetas = there(values, "rope_theta");
  if (thetas != nullptr && thetas->is_array() && thetas->size() >= 2) {
    rope["rope_theta"] = (*thetas)[0];
    rope["sliding_attention"] = {{"rope_theta", (*thetas)[1]}};
  }
  mirror("rope_theta", "global_rope_theta|rope_global_theta|rope_theta_global|rope_theta|rotary_emb_base");
  if (const ParsedJson* type = there(rope, "type"); type != nullptr && !rope.contains("rope_type"))
    rope["rope_type"] = *type;
  mirror("partial_rotary_factor", "partial_rotary_factor|rope_pct|rope_percent");
  add_plamo_scaling(values, rope);
  mirror("original_max_position_embeddings", "original_max_position_embeddings");
  return rope;
}

const ParsedJson* GgufFacts::find(std::string_view names) const {
  const ParsedJson* found = nullptr;
  each_name(names, [&](std::string_view name) {
    const auto dot = name.find('.');
    const ParsedJson* object = dot == std::string_view::npos ? &values : there(values, name.substr(0, dot));
    if (object == nullptr) return true;
    const std::string_view key = dot == std::string_view::npos ? name : name.substr(dot + 1);
    found = there(*object, key);
    return !object->is_object() || !object->contains(key);  // one that is null is there, too
  });
  return found;
}

double GgufFacts::number(std::string_view names, double otherwise) const {
  const ParsedJson* found = find(names);
  return found != nullptr && found->is_number() ? found->get<double>() : otherwise;
}

double GgufFacts::number(std::string_view names) const {
  const ParsedJson* found = find(names);
  if (found != nullptr && found->is_number()) return found->get<double>();
  throw Error::input(fmt::format("{} is missing, which a GGUF of {} needs", names, tree.title))
      .in(config.source());
}

double GgufFacts::rope_number(const char* key, double otherwise) const {
  const ParsedJson* found = there(rope, key);
  return found != nullptr && found->is_number() ? found->get<double>() : otherwise;
}

std::uint64_t GgufFacts::head_dim() const {
  if (find("head_dim") != nullptr) return static_cast<std::uint64_t>(number("head_dim"));
  const auto heads = static_cast<std::uint64_t>(number("num_attention_heads|n_head|n_heads"));
  return static_cast<std::uint64_t>(number("hidden_size|n_embd|d_model")) / std::max<std::uint64_t>(1, heads);
}

namespace own_keys {

ParsedJson rotary_width(const GgufFacts& facts) {
  const ParsedJson* part = there(facts.rope, "partial_rotary_factor");
  const double factor = part != nullptr && part->is_number() ? part->get<double>() : 1;
  return static_cast<std::uint64_t>(static_cast<double>(facts.head_dim()) * factor);
}

ParsedJson head_width(const GgufFacts& facts) {
  return facts.head_dim();
}

ParsedJson windowed_layers(const GgufFacts& facts) {
  const ParsedJson* types = facts.find("layer_types");
  if (types == nullptr || !types->is_array()) return nullptr;
  ParsedJson flags = ParsedJson::array();
  for (const ParsedJson& type : *types) flags.push_back(type == "sliding_attention");
  return flags;
}

ParsedJson windows_by_layer(const GgufFacts& facts) {
  ParsedJson flags = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) flags.push_back(false);
  for (const AttentionGeometry& geometry : facts.tree.attention) {
    for (const std::uint64_t layer : geometry.layers) flags[layer] = geometry.window != 0;
  }
  return flags;
}

ParsedJson latent_width(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("kv_lora_rank") + facts.number("qk_rope_head_dim"));
}
ParsedJson latent_key_width(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("qk_nope_head_dim") + facts.number("qk_rope_head_dim"));
}

ParsedJson dense_layers(const GgufFacts& facts) {
  std::vector<bool> sparse(facts.tree.layers);
  for_each_spec(facts.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.main() || spec.role != Role::router) return;
    for (const Module* module : where.path) {
      if (module->repeat.over != Repeat::Over::layers) continue;
      for (const std::uint64_t layer : module->repeat.indices) sparse[layer] = true;
    }
  });
  const auto first = std::find(sparse.begin(), sparse.end(), true);
  if (std::find(first, sparse.end(), false) != sparse.end())
    throw Error::refused(
        "a layer without experts behind one with experts, which a GGUF of this family cannot tell")
        .in(facts.config.source());
  return static_cast<std::uint64_t>(first - sparse.begin());
}

ParsedJson shared_expert_width(const GgufFacts& facts) {
  if (const ParsedJson* width = facts.find("moe_shared_expert_intermediate_size")) return *width;
  return static_cast<std::uint64_t>(facts.number("moe_intermediate_size") *
                                    facts.number("num_shared_experts"));
}

ParsedJson attending_layers(const GgufFacts& facts) {
  ParsedJson heads = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) heads.push_back(0);
  for (const AttentionGeometry& geometry : facts.tree.attention) {
    for (const std::uint64_t layer : geometry.layers) heads[layer] = 1;
  }
  return heads;
}

std::vector<DerivedTensor> longrope_factors(const GgufFacts& facts) {
  const auto type = facts.rope.find("rope_type");
  const bool is_long =
      type != facts.rope.end() && type->is_string() && (*type == "longrope" || *type == "su");
  if (!is_long && !facts.rope.contains("long_factor") && !facts.rope.contains("short_factor")) return {};
  std::vector<DerivedTensor> made;
  for (const char* kind : {"long", "short"}) {
    const auto factors = facts.rope.find(std::string(kind) + "_factor");
    const bool right =
        factors != facts.rope.end() && factors->is_array() && !factors->empty() &&
        std::all_of(factors->begin(), factors->end(), [](const ParsedJson& x) { return x.is_number(); });
    if (!right)
      throw Error::input(fmt::format("{}_factor is no list of numbers, one for each pair that rotates", kind))
          .in(facts.config.source());
    DerivedTensor tensor{.name = "rope_factors_" + std::string(kind) + ".weight", .shape = {factors->size()}};
    tensor.computed = factors->get<std::vector<float>>();
    made.push_back(std::move(tensor));
  }
  const AttentionGeometry& g = facts.tree.attention.front();
  const std::uint64_t pairs =
      g.kind == AttentionGeometry::Kind::latent ? g.rope_head_dim / 2 : made[0].shape[0];
  if (made[0].shape != made[1].shape || made[0].shape[0] != pairs)
    throw Error::input(fmt::format("long_factor has {} numbers and short_factor {}, for {} pairs that rotate",
                                   made[0].shape[0], made[1].shape[0], pairs))
        .in(facts.config.source());
  return made;
}

}  // namespace own_keys

std::vector<gguf::KeyValue> gguf_own_keys(const ModelConfig& config, const GgufFamily& family,
                                          std::uint64_t file_type) {
  return OwnKeys(config, family).all(file_type);
}

std::vector<gguf::KeyValue> gguf_early_keys(const ModelConfig& config, const GgufFamily& family) {
  return OwnKeys(config, family).early();
}

std::vector<DerivedTensor> gguf_more_tensors(const ModelConfig& config, const GgufFamily& family) {
  if (gguf_rules(family).more_tensors == nullptr) return {};
  return OwnKeys(config, family).more_tensors();
}

}  // namespace assay
