#include "refimpl/models/rope_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/models/settings.h"

namespace assay {
namespace {

constexpr double kLargestFactor = 1e6, kLargestTheta = 1e15, kLargestContext = 1e12;

// rope_scaling, where it holds anything, else rope_parameters (transformers 5, perhaps one a layer type);
// either may lack a key that stands in the config itself.
class RopeReader {
 public:
  RopeReader(const ModelConfig& config, std::string_view layer_type) : config_(config) {
    const ParsedJson* newer = config_object(config, "rope_parameters");
    object_ = config_object(config, "rope_scaling");
    if (newer == nullptr) return;
    if (layer_type.empty()) {
      if (object_ == nullptr || object_->empty()) object_ = newer;
      for (const ParsedJson& value : *object_) {
        if (value.is_object())
          throw Error::input("rope_parameters are given by kinds of layers, and this family has one for all")
              .in(config.source());
      }
      return;
    }
    const auto own = newer->find(layer_type);
    if (own == newer->end() || !own->is_object()) {
      if (newer->contains("rope_type") || newer->contains("rope_theta"))
        throw Error::input("rope_parameters are not given by kinds of layers, and this family has two")
            .in(config.source());
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
    return json_real(*value, fmt::format("rope {}", key), config_.source(), least, most);
  }
  double real_or_outer(std::string_view key, double least, double most, double otherwise) const {
    if (const auto own = real(key, least, most)) return *own;
    return config_real(config_, key, least, most).value_or(otherwise);
  }
  std::string type() const {
    for (const std::string_view key : {"rope_type", "type"}) {
      if (const ParsedJson* value = find(key)) return json_string(*value, key, config_.source());
    }
    return "default";
  }
  std::vector<double> reals(std::string_view key, std::size_t count) const {
    const ParsedJson* list = find(key);
    if (list == nullptr || !list->is_array() || list->size() != count)
      throw Error::input(fmt::format("rope {} is not a list of {} factors", key, count)).in(config_.source());
    std::vector<double> values;
    for (const ParsedJson& value : *list)
      values.push_back(json_real(value, key, config_.source(), 1e-6, kLargestFactor));
    return values;
  }

 private:
  const ModelConfig& config_;
  const ParsedJson* object_ = nullptr;
  const ParsedJson* update_ = nullptr;  // counts before it
};

RopeRule::Type type_of(const std::string& text, const ModelConfig& config) {
  if (text == "default" || text == "none") return RopeRule::Type::standard;
  if (text == "linear") return RopeRule::Type::linear;
  if (text == "dynamic") return RopeRule::Type::dynamic;
  if (text == "yarn") return RopeRule::Type::yarn;
  if (text == "llama3") return RopeRule::Type::llama3;
  if (text == "longrope" || text == "su") return RopeRule::Type::longrope;
  throw Error::input(fmt::format("rope type \"{}\" is not known here", text))
      .in(config.source())
      .remedy("known: default, linear, dynamic, yarn, llama3, longrope");
}

RopeRule::Type longrope_type(const std::string& text, const ModelConfig& config) {
  if (text == "default") return RopeRule::Type::standard;
  if (text == "longrope" || text == "su" || text == "yarn") return RopeRule::Type::longrope;
  if (config.origin() == ModelConfig::Origin::gguf) return type_of(text, config);
  throw Error::input(fmt::format("rope type is \"{}\", where the class takes longrope only", text))
      .in(config.source());
}

// How much of a head rotates. A class that does not read partial_rotary_factor rotates all of it by the plain
// rule, whatever the key says; the stretched rules of transformers read the key for every class, and make
// frequencies that do not fit the head then.
std::size_t rotary_part(const RopeReader& reader, const Weights& weights, std::size_t head_dim,
                        const RopeClass& of_class, RopeRule::Type type) {
  const double part = reader.real_or_outer("partial_rotary_factor", 0, 1, 1);
  const bool counts = of_class.partial || weights.from_gguf();
  if (!counts && part != 1 && type != RopeRule::Type::standard)
    throw Error::input(fmt::format("partial_rotary_factor is {}, and the class rotates whole heads", part))
        .in(weights.config().source());
  return counts ? static_cast<std::size_t>(static_cast<double>(head_dim) * part) : head_dim;
}

// Factors a GGUF carries as tensors: Llama 3's, already worked out, and longrope's two lists.
bool read_gguf_factors(const Weights& weights, RopeRule& rule) {
  const auto read = [&](std::string_view name) {
    const WeightView view = weights.find_named(name);
    std::vector<double> factors = view ? decode_vector(view) : std::vector<double>();
    if (view && factors.size() != rule.rotary_dim / 2)
      throw Error::input(fmt::format("holds {} factors for {} pairs", factors.size(), rule.rotary_dim / 2))
          .tensor(name);
    return factors;
  };
  rule.long_factor = read("rope_factors_long.weight");
  rule.short_factor = read("rope_factors_short.weight");
  if (!rule.long_factor.empty() && !rule.short_factor.empty()) {
    rule.type = RopeRule::Type::longrope;
    return true;
  }
  rule.long_factor = rule.short_factor = read("rope_freqs.weight");
  if (rule.long_factor.empty()) return false;
  rule.type = RopeRule::Type::longrope;
  rule.attention_factor = 1;
  return true;
}

void read_lengths(const RopeReader& reader, const ModelConfig& config, const RopeClass& of_class,
                  RopeRule& rule) {
  rule.context = read_context(config, of_class.context);
  auto outer = config_real(config, "original_max_position_embeddings", 1, kLargestContext);
  if (!outer && config.origin() == ModelConfig::Origin::json && of_class.original_context)
    outer = static_cast<double>(*of_class.original_context);
  const auto own = reader.real("original_max_position_embeddings", 1, kLargestContext);
  const double original = outer ? *outer : own.value_or(static_cast<double>(rule.context));
  rule.original_context = static_cast<std::size_t>(original);
  const auto factor = reader.real("factor", 1e-6, kLargestFactor);
  rule.factor = factor.value_or(static_cast<double>(rule.context) / original);
}

}  // namespace

std::size_t read_context(const ModelConfig& config, std::size_t otherwise) {
  return static_cast<std::size_t>(
      config_real(config, "max_position_embeddings|n_positions", 1, kLargestContext)
          .value_or(static_cast<double>(otherwise)));
}

std::size_t stretched_context(const RopeRule& rule) {
  if (rule.type != RopeRule::Type::dynamic && rule.type != RopeRule::Type::yarn) return rule.context;
  const double reach = static_cast<double>(rule.original_context) * rule.factor;
  return std::max(rule.context, static_cast<std::size_t>(std::min(reach, kLargestContext)));
}

RopeRule read_rope(const Weights& weights, std::size_t head_dim, const RopeClass& of_class,
                   std::string_view layer_type) {
  const ModelConfig& config = weights.config();
  const RopeReader reader(config, layer_type);
  RopeRule rule;
  rule.theta = reader.real_or_outer("rope_theta", 1e-3, kLargestTheta, of_class.theta);
  rule.type = of_class.longrope_only ? longrope_type(reader.type(), config) : type_of(reader.type(), config);
  rule.rotary_dim = rotary_part(reader, weights, head_dim, of_class, rule.type);
  if (rule.rotary_dim % 2 != 0 || rule.rotary_dim == 0)
    throw Error::input(
        fmt::format("{} of {} elements of a head would rotate: not pairs", rule.rotary_dim, head_dim))
        .in(config.source());
  read_lengths(reader, config, of_class, rule);
  rule.beta_fast = reader.real("beta_fast", 1e-6, kLargestFactor).value_or(32);
  rule.beta_slow = reader.real("beta_slow", 1e-6, kLargestFactor).value_or(1);
  rule.attention_factor = reader.real("attention_factor", 1e-6, kLargestFactor).value_or(0);
  rule.mscale = reader.real("mscale", 0, kLargestFactor).value_or(0);
  rule.mscale_all_dim = reader.real("mscale_all_dim", 0, kLargestFactor).value_or(0);
  rule.low_freq_factor = reader.real("low_freq_factor", 1e-6, kLargestFactor).value_or(1);
  rule.high_freq_factor = reader.real("high_freq_factor", 1e-6, kLargestFactor).value_or(4);
  const ParsedJson* truncate = reader.find("truncate");
  rule.truncate = truncate == nullptr || !truncate->is_boolean() || truncate->get<bool>();
  const bool from_tensors = weights.from_gguf() && read_gguf_factors(weights, rule);
  if (rule.type == RopeRule::Type::longrope && !from_tensors) {
    rule.short_factor = reader.reals("short_factor", rule.rotary_dim / 2);
    rule.long_factor = reader.reals("long_factor", rule.rotary_dim / 2);
  }
  if (rule.type == RopeRule::Type::dynamic && rule.rotary_dim < 4)
    throw Error::input("dynamic rope needs more than one pair").in(config.source());
  return rule;
}

bool same_frequencies(const RopeRule& rule, std::size_t length, std::size_t other) {
  if (rule.type == RopeRule::Type::dynamic)
    return std::max(length, rule.context) == std::max(other, rule.context);
  if (rule.type == RopeRule::Type::longrope)
    return (length > rule.original_context) == (other > rule.original_context) ||
           rule.short_factor == rule.long_factor;
  return true;
}

RopeAngles rope_angles(const RopeRule& rule, const Batch& batch, Ops& ops) {
  const std::size_t pairs = rule.rotary_dim / 2;
  std::vector<double> cos(batch.tokens.size() * pairs), sin(cos.size());
  for (const Batch::Sequence& sequence : batch.sequences) {
    const RopeFrequencies frequencies = rope_frequencies(rule, sequence.cache->length() + sequence.count);
    for (std::size_t t = sequence.first; t < sequence.first + sequence.count; ++t) {
      for (std::size_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(batch.positions[t]) * frequencies.inverse[i];
        cos[t * pairs + i] = std::cos(angle) * frequencies.scale;
        sin[t * pairs + i] = std::sin(angle) * frequencies.scale;
      }
    }
  }
  return {ops.upload(cos, batch.tokens.size(), pairs), ops.upload(sin, batch.tokens.size(), pairs)};
}

}  // namespace assay
