// What becomes of a GGUF's keys under what a family, or a config.json of it, uses.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/formats/json.h"
#include "core/model/gguf_keys.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

bool is_one_of(std::span<const std::string_view> list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
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
      const GgufKey* known = find_gguf_key(key);
      // Of an object of config.json all or nothing is read: "rope_scaling" of "rope_scaling.factor".
      if (fate == GgufKeyFate::unknown || (fate == GgufKeyFate::read && !known->by_tree &&
                                           !reads(known->config.substr(0, known->config.find('.')))))
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
    if (is_of_other_layers(key)) return all([](double x) { return x == 0; });
    if (key == "attention.value_length" && !is_latent())
      return all([&](double x) { return x == head_width(); });
    const GgufKey* known = find_gguf_key(key);
    if (known == nullptr || known->fate != GgufKeyFate::changes_numbers) return true;
    if (known->judged) return all([&](double x) { return is_computed(key, x); });
    if (uses(known->config)) return true;
    if (key == "rope.freq_base_swa")
      return all([&](double x) { return x == number("rope.freq_base").value_or(10000); });
    if (key == "attention.scale") return all([&](double x) { return x == 0 || is_usual_scale(x); });
    return all([&](double x) {
      return std::find(known->neutral.begin(), known->neutral.end(), x) != known->neutral.end();
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

void require_gguf_keys(const Checkpoint& checkpoint, const ModelConfig& config, const ConfigKeys& keys,
                       std::string_view fault) {
  Judge(checkpoint, config, keys).require_all(fault);
}

std::vector<std::string> unread_gguf_keys(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const ConfigKeys& keys) {
  return Judge(checkpoint, config, keys).unread();
}

}  // namespace assay
