#include "core/model/adapter_faults.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/json.h"

namespace assay {
namespace {

constexpr const char* kConfig = "adapter_config.json";

struct Pair {
  const CheckpointTensor *a = nullptr, *b = nullptr;
};
using Pairs = std::map<std::string, Pair>;  // by module: "base_model.model.model.layers.0.self_attn.q_proj"

Pairs pairs_of(const Checkpoint& checkpoint) {
  constexpr std::array<std::pair<std::string_view, bool>, 4> kHalves = {
      {{".lora_A.", true}, {".lora_B.", false}, {".lora_embedding_A", true}, {".lora_embedding_B", false}}};
  Pairs pairs;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    for (const auto& [part, is_a] : kHalves) {
      const auto at = tensor.name.find(part);
      if (at == std::string::npos) continue;
      Pair& pair = pairs[tensor.name.substr(0, at)];
      (is_a ? pair.a : pair.b) = &tensor;
      break;
    }
  }
  return pairs;
}

bool is_called(std::string_view module, std::string_view name) {
  return module == name || (module.ends_with(name) && module[module.size() - name.size() - 1] == '.');
}

// Collects findings of one kind, of which the first module is named.
class Told {
 public:
  Told(std::string code, std::string remedy) : code_(std::move(code)), remedy_(std::move(remedy)) {}
  void of(const std::string& module, std::string message) {
    if (++count_ == 1) module_ = module, message_ = std::move(message);
  }
  void add_to(Findings& findings) const {
    if (count_ == 0) return;
    const std::string others = count_ == 1 ? ""
                                           : fmt::format("; {} other {} alike", count_ - 1,
                                                         count_ == 2 ? "module is" : "modules are");
    findings.push_back({Severity::error, code_, message_ + others, kConfig, module_, {}, remedy_});
  }

 private:
  std::string code_, remedy_, module_, message_;
  std::size_t count_ = 0;
};

// r, unless rank_pattern has a name that the module ends with.
std::optional<std::uint64_t> rank_of(const ParsedJson& config, const std::string& module) {
  const auto number = [](const ParsedJson& value) {
    return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
  };
  const auto pattern = config.find("rank_pattern");
  if (pattern != config.end() && pattern->is_object()) {
    for (const auto& [name, rank] : pattern->items())
      if (is_called(module, name)) return number(rank);
    if (!pattern->empty()) return std::nullopt;  // regular expressions, perhaps
  }
  const auto r = config.find("r");
  return r == config.end() ? std::nullopt : number(*r);
}

void check_pair(const ParsedJson& config, const std::string& module, const Pair& pair, Told& halves,
                Told& ranks) {
  if (pair.a == nullptr || pair.b == nullptr) {
    const char* here = pair.a == nullptr ? "B" : "A";
    const char* missing = pair.a == nullptr ? "A" : "B";
    return halves.of(
        module,
        fmt::format("has {} of a pair and no {}: loaders leave it as the base model has it", here, missing));
  }
  if (pair.a->shape.size() < 2 || pair.b->shape.size() < 2) return;
  const std::uint64_t of_a = pair.a->shape[0], of_b = pair.b->shape[1];
  if (of_a != of_b) return ranks.of(module, fmt::format("A has rank {} and B has {}", of_a, of_b));
  const auto said = rank_of(config, module);
  if (said && *said != of_a) ranks.of(module, fmt::format("is of rank {}, and r is {}", of_a, *said));
}

void check_targets(const ParsedJson& config, const Pairs& pairs, Findings& findings) {
  const auto targets = config.find("target_modules");
  if (targets == config.end() || !targets->is_array()) return;
  for (const ParsedJson& target : *targets) {
    if (!target.is_string()) continue;
    const auto& name = target.get_ref<const std::string&>();
    const bool here = std::any_of(pairs.begin(), pairs.end(),
                                  [&](const auto& pair) { return is_called(pair.first, name); });
    if (here) continue;
    findings.push_back(
        {Severity::error,
         "adapter.target_missing",
         fmt::format("target_modules names {}, and no pair of it is here: it stays as the base model has it",
                     name),
         kConfig,
         {},
         {},
         "take the whole adapter, or take the name out of target_modules"});
  }
}

}  // namespace

Findings adapter_faults(const Checkpoint& checkpoint) {
  std::error_code ignored;
  const fs::path path = checkpoint.root / kConfig;
  if (checkpoint.container == Checkpoint::Container::gguf || !fs::is_regular_file(path, ignored)) return {};
  const ParsedJson config = read_json(path, kPythonJson);
  const auto kind = config.is_object() ? config.find("peft_type") : config.end();
  if (!config.is_object() || kind == config.end() || *kind != "LORA") return {};
  const Pairs pairs = pairs_of(checkpoint);
  Told halves("adapter.half_missing", "take the whole adapter");
  Told ranks("adapter.rank_differs",
             "make r and rank_pattern say what is stored, or take the weights that they are of");
  for (const auto& [module, pair] : pairs) check_pair(config, module, pair, halves, ranks);
  Findings findings;
  halves.add_to(findings);
  ranks.add_to(findings);
  check_targets(config, pairs, findings);
  return findings;
}

}  // namespace assay
