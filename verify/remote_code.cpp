#include "verify/remote_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

constexpr std::uint64_t kConfigLimit = 16u << 20;
constexpr std::string_view kModules = "modules.json", kModelIndex = "model_index.json";

// The strings below a value, at most two levels down: "m.Class", ["m.Slow", "m.Fast"], {"impl": "m.Class"}.
void collect(const ParsedJson& value, std::set<std::string>& references, int levels = 2) {
  if (value.is_string()) references.insert(value.get<std::string>());
  if (!value.is_structured() || levels == 0) return;
  for (const ParsedJson& part : value) collect(part, references, levels - 1);
}

std::string text_of(const ParsedJson& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

bool is_dotted(std::string_view name) {
  return name.find('.') != name.npos;
}

class ModuleReader {
 public:
  explicit ModuleReader(const std::string& name) : name_(name) {}

  RemoteCode read(const ParsedJson& document) {
    const std::string_view base = base_of(name_);
    if (base == kModules)
      modules(document);
    else if (base == kModelIndex)
      model_index(document);
    else
      config(document);
    return std::move(result_);
  }

 private:
  void config(const ParsedJson& config) {
    if (!config.is_object()) return;
    std::set<std::string> references;
    for (const char* key : {"auto_map", "custom_pipelines"}) {
      if (config.contains(key)) collect(config.at(key), references);
    }
    result_.asked = !references.empty();
    for (const std::string& reference : references) elsewhere(reference);

    imported_by_sentence_transformers(config);
    if (const auto nested = config.find("sentence_transformers");
        nested != config.end() && nested->is_object())
      imported_by_sentence_transformers(*nested);
    // A router's modules: {"types": {"query_0_Dense": "sentence_transformers.models.Dense"}, "structure": …}.
    const auto types = config.find("types");
    if (!config.contains("structure") || types == config.end() || !types->is_object()) return;
    for (const ParsedJson& type : *types) {
      if (type.is_string()) module_class(type.get<std::string>());
    }
  }

  void imported_by_sentence_transformers(const ParsedJson& config) {
    for (const char* key : {"activation_function", "activation_fn", "sbert_ce_default_activation_function",
                            "tokenizer_class"}) {
      const std::string reference = text_of(config, key);
      if (is_dotted(reference) && !reference.starts_with("torch.")) module_class(reference);
    }
  }

  void modules(const ParsedJson& list) {
    if (!list.is_array()) return;
    for (const ParsedJson& module : list) {
      if (!module.is_object()) continue;
      if (const std::string type = text_of(module, "type"); !type.empty()) module_class(type);
    }
  }

  // Its own are imported; for others Python in the model's folder is looked for first.
  void module_class(const std::string& reference) {
    if (reference.starts_with("sentence_transformers.")) return;
    result_.asked = true;
    if (!elsewhere(reference)) imported(reference, "sentence-transformers");
  }

  // "unet": ["diffusers", "UNet2DConditionModel"]; of a component's own class the first is a file in its
  // folder. "_class_name": ["pipeline", "MyPipeline"] is one beside model_index.json.
  void model_index(const ParsedJson& index) {
    if (!index.is_object()) return;
    for (const auto& [key, value] : index.items()) {
      if (!value.is_array() || value.empty() || !value[0].is_string()) continue;
      const std::string module = value[0].get<std::string>();
      if (key == "_class_name") {
        result_.asked = true;
        imported(module, "diffusers");
        continue;
      }
      const std::string folder = name_.substr(0, name_.size() - kModelIndex.size());
      result_.python.insert(folder + key + "/" + module + ".py");
      if (is_dotted(module) && !is_known_library(module.substr(0, module.find('.'))))
        imported(module, "diffusers");
    }
  }

  static bool is_known_library(std::string_view root) {
    static constexpr std::array<std::string_view, 6> kKnown = {"diffusers",   "transformers", "flax",
                                                               "onnxruntime", "optimum",      "torch"};
    return std::find(kKnown.begin(), kKnown.end(), root) != kKnown.end();
  }

  // "org/name--module.Class": true for what is fetched from another repository.
  bool elsewhere(const std::string& reference) {
    const auto dashes = reference.find("--");
    if (dashes == std::string::npos) return false;
    const std::string repository = reference.substr(0, dashes);
    if (repositories_.insert(repository).second) {
      add("code.remote_repository",
          fmt::format("makes loaders fetch and run Python of another repository, {}, under trust_remote_code",
                      repository));
    }
    return true;
  }

  void imported(const std::string& reference, std::string_view loader) {
    if (!references_.insert(reference).second) return;
    add("code.custom_class",
        fmt::format("has {} import {}, which is not its own: Python of that name runs, from this folder or "
                    "wherever it is installed",
                    loader, reference));
  }

  void add(std::string code, std::string message) {
    result_.findings.push_back({.severity = Severity::warning,
                                .code = std::move(code),
                                .message = std::move(message),
                                .file = name_});
  }

  const std::string& name_;
  RemoteCode result_;
  std::set<std::string> repositories_, references_;  // told already
};

}  // namespace

bool may_name_code(std::string_view name) {
  const std::string_view base = base_of(name);
  return base.ends_with("config.json") || base == kModules || base == kModelIndex;
}

RemoteCode read_remote_code(const std::string& name, const fs::path& path) {
  try {
    return ModuleReader(name).read(read_json(path, {.max_bytes = kConfigLimit, .duplicate_keys = true}));
  } catch (const Error&) {
    return {};  // no loader reads it either
  }
}

}  // namespace assay
