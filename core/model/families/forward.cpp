#include "core/model/families/forward.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/system/error.h"

namespace assay::families {
namespace {

constexpr double kLargestFactor = 1e6, kLargestTheta = 1e15, kLargestContext = 1e12;

// rope_scaling, where it holds anything, else rope_parameters (transformers 5, perhaps one a layer type);
// either may lack a key that stands in the config itself.
class RopeReader {
 public:
  RopeReader(const ConfigReader& config, std::string_view layer_type) : config_(config) {
    const ParsedJson* newer = object_in(config, "rope_parameters");
    object_ = object_in(config, "rope_scaling");
    if (newer == nullptr) return;
    if (layer_type.empty()) {
      if (object_ == nullptr || object_->empty()) object_ = newer;
      for (const ParsedJson& value : *object_) {
        if (value.is_object())
          throw fault("rope_parameters are given by kinds of layers, and this family has one for all");
      }
      return;
    }
    const auto own = newer->find(layer_type);
    if (own == newer->end() || !own->is_object()) {
      if (newer->contains("rope_type") || newer->contains("rope_theta"))
        throw fault("rope_parameters are not given by kinds of layers, and this family has two");
      return;
    }
    // Gemma 3 updates the layers of full attention with what rope_scaling has.
    if (layer_type == "full_attention") update_ = object_;
    object_ = &*own;
  }

  const ParsedJson* find(std::string_view key) const {
    for (const ParsedJson* object : {update_, object_}) {
      if (object == nullptr) continue;
      const auto found = object->find(key);
      if (found != object->end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }
  std::optional<double> real(std::string_view key, double least, double most) const {
    const ParsedJson* value = find(key);
    if (value == nullptr) return std::nullopt;
    return config_.to_real(*value, fmt::format("rope {}", key), least, most);
  }
  double factor(std::string_view key, double otherwise, double least = 1e-6) const {
    return real(key, least, kLargestFactor).value_or(otherwise);
  }
  std::string type() const {
    for (const std::string_view key : {"rope_type", "type"}) {
      if (const ParsedJson* value = find(key)) return config_.to_text(*value, key);
    }
    return "default";
  }
  std::vector<double> reals(std::string_view key, std::size_t count) const {
    const ParsedJson* list = find(key);
    if (list == nullptr || !list->is_array() || list->size() != count)
      throw fault(fmt::format("rope {} is not a list of {} factors", key, count));
    std::vector<double> values;
    for (const ParsedJson& value : *list) values.push_back(config_.to_real(value, key, 1e-6, kLargestFactor));
    return values;
  }
  Error fault(const std::string& message) const {
    return Error::input(message).in(config_.config().source());
  }

 private:
  const ConfigReader& config_;
  const ParsedJson* object_ = nullptr;
  const ParsedJson* update_ = nullptr;  // counts before it
};

RopeRule::Type type_of(const RopeReader& reader, const ConfigReader& config, const RopeClass& of_class) {
  const std::string text = reader.type();
  if (text == "default" || text == "mrope") return RopeRule::Type::standard;  // of text, the axes are one
  if (text == "longrope" || text == "su") return RopeRule::Type::longrope;
  if (of_class.longrope_only) {
    if (text == "yarn") return RopeRule::Type::longrope;
    if (!is_gguf(config))
      throw reader.fault(fmt::format("rope type is \"{}\", where the class takes longrope only", text));
  }
  if (text == "none") return RopeRule::Type::standard;
  if (text == "linear") return RopeRule::Type::linear;
  if (text == "dynamic" || text == "xdrope") return RopeRule::Type::dynamic;
  if (text == "yarn" || text == "deepseek_yarn") return RopeRule::Type::yarn;
  if (text == "llama3") return RopeRule::Type::llama3;
  if (text == "proportional") return RopeRule::Type::proportional;
  throw reader.fault(fmt::format("rope type \"{}\" is not known here", text))
      .remedy("known: default, linear, dynamic, yarn, llama3, longrope, proportional");
}

// Of the pairs of a head, those that turn at all.
std::size_t moving_pairs(const RopeReader& reader, std::size_t head_dim) {
  return static_cast<std::size_t>(static_cast<double>(head_dim) *
                                  reader.real("partial_rotary_factor", 0, 1).value_or(1) / 2);
}

// How much of a head rotates. A class that does not read partial_rotary_factor rotates all of it by the plain
// rule, whatever the key says; the stretched rules of transformers read the key for every class, and make
// frequencies that do not fit the head then.
std::size_t rotary_part(const RopeReader& reader, const ConfigReader& config, std::size_t head_dim,
                        const RopeClass& of_class, RopeRule::Type type) {
  const bool whole = is_gguf(config) || (of_class.part_of_plain && type != RopeRule::Type::standard);
  const double part = reader.real("partial_rotary_factor", 0, 1)
                          .value_or(config.real(of_class.part_keys, whole ? 1 : of_class.part, 0, 1));
  if (type == RopeRule::Type::proportional) return head_dim;  // a part of whose pairs stands still
  const bool counts = of_class.partial || is_gguf(config);
  if (!counts && part != 1 && type != RopeRule::Type::standard)
    throw reader.fault(fmt::format("partial_rotary_factor is {}, and the class rotates whole heads", part));
  return counts ? static_cast<std::size_t>(static_cast<double>(head_dim) * part) : head_dim;
}

void read_lengths(const RopeReader& reader, const ConfigReader& config, const RopeClass& of_class,
                  RopeRule& rule) {
  rule.context = read_context(config, of_class.context);
  auto outer = config.optional_real("original_max_position_embeddings", 1, kLargestContext);
  if (!outer && !is_gguf(config) && of_class.original_context)
    outer = static_cast<double>(*of_class.original_context);
  const auto own = reader.real("original_max_position_embeddings", 1, kLargestContext);
  const double original = outer ? *outer : own.value_or(static_cast<double>(rule.context));
  rule.original_context = static_cast<std::size_t>(original);
  rule.factor = reader.factor("factor", static_cast<double>(rule.context) / original);
}

}  // namespace

const ParsedJson* object_in(const ConfigReader& config, std::string_view key) {
  const ParsedJson& text = config.config().text();
  const auto found = text.find(key);
  if (found == text.end() || found->is_null()) return nullptr;
  if (!found->is_object())
    throw Error::input(fmt::format("{} is not an object", key)).in(config.config().source());
  return &*found;
}

std::size_t read_context(const ConfigReader& config, std::size_t class_default) {
  return static_cast<std::size_t>(config.real("max_position_embeddings|n_positions",
                                              static_cast<double>(class_default), 1, kLargestContext));
}

RopeRule read_rope(const ConfigReader& config, std::size_t head_dim, const RopeClass& of_class,
                   std::string_view layer_type) {
  const RopeReader reader(config, layer_type);
  RopeRule rule;
  rule.theta = reader.real("rope_theta", 1e-3, kLargestTheta)
                   .value_or(config.real(of_class.theta_key, of_class.theta, 1e-3, kLargestTheta));
  rule.type = type_of(reader, config, of_class);
  rule.rotary_dim = rotary_part(reader, config, head_dim, of_class, rule.type);
  if (rule.type == RopeRule::Type::proportional) rule.moving_pairs = moving_pairs(reader, head_dim);
  if (rule.rotary_dim % 2 != 0 || rule.rotary_dim == 0)
    throw reader.fault(
        fmt::format("{} of {} elements of a head would rotate: not pairs", rule.rotary_dim, head_dim));
  read_lengths(reader, config, of_class, rule);
  rule.beta_fast = reader.factor("beta_fast", 32);
  rule.beta_slow = reader.factor("beta_slow", 1);
  rule.attention_factor = reader.factor("attention_factor", 0);
  rule.mscale = reader.factor("mscale", 0, 0);
  rule.mscale_all_dim = reader.factor("mscale_all_dim", 0, 0);
  rule.low_freq_factor = reader.factor("low_freq_factor", 1);
  rule.high_freq_factor = reader.factor("high_freq_factor", 4);
  const ParsedJson* truncate = reader.find("truncate");
  rule.truncate = truncate == nullptr || !truncate->is_boolean() || truncate->get<bool>();
  if (rule.type == RopeRule::Type::longrope && !is_gguf(config)) {
    rule.short_factor = reader.reals("short_factor", rule.rotary_dim / 2);
    rule.long_factor = reader.reals("long_factor", rule.rotary_dim / 2);
  }
  if (rule.type == RopeRule::Type::dynamic && rule.rotary_dim < 4)
    throw reader.fault("dynamic rope needs more than one pair");
  return rule;
}

namespace {

double read_factor(const ConfigReader& config, const Factor& factor) {
  if (factor.key.empty()) return 1;
  if (config.is_null(factor.key)) return factor.otherwise;
  return config.real(factor.key, factor.otherwise, -1e9, 1e9);
}

void read_factors(const ConfigReader& config, const ForwardClass& of_class, Hyperparameters& h) {
  if (!of_class.attention_scale.key.empty())
    h.attention_scale = read_factor(config, of_class.attention_scale);
  h.embedding_scale = read_factor(config, of_class.embedding_scale);
  h.residual_scale = read_factor(config, of_class.residual_scale);
  h.head_scale = read_factor(config, of_class.head_scale);
  const double divisor = read_factor(config, of_class.head_divisor);
  if (divisor == 0)
    throw Error::input(fmt::format("{} is 0", of_class.head_divisor.key)).in(config.config().source());
  h.head_scale /= divisor;
}

}  // namespace

Hyperparameters read_forward(ConfigReader& config, const ModuleTree& tree, const ForwardClass& of_class) {
  Hyperparameters h;
  h.epsilon = of_class.epsilon_key.empty() ? of_class.epsilon
                                           : config.real(of_class.epsilon_key, of_class.epsilon, 0, 1);
  h.activation_key = of_class.activation_key;
  h.activation = of_class.activation_key.empty() ? std::string(of_class.activation)
                                                 : config.text(of_class.activation_key, of_class.activation);
  read_factors(config, of_class, h);
  h.interleaved_pairs = of_class.interleaved;
  h.rope_of.assign(tree.layers, std::nullopt);
  if (!of_class.rotates || tree.attention.empty()) {  // or recurrent layers alone
    h.context = read_context(config, of_class.rope.context);
    return h;
  }
  const AttentionGeometry& first = tree.attention.at(0);
  const bool latent = first.kind == AttentionGeometry::Kind::latent;
  h.ropes.push_back(read_rope(config, latent ? first.rope_head_dim : first.qk_head_dim, of_class.rope,
                              of_class.layer_type));
  h.rope_of.assign(tree.layers, 0);
  h.context = h.ropes.front().context;
  return h;
}

}  // namespace assay::families
