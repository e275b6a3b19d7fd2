#include "core/model/plain_ones.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/model/module_patterns.h"
#include "core/model/said_form.h"

namespace assay {
namespace {

// What engines fuse is listed under the name of the whole, too.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNamesOfFused = {
    {{".q_proj.", ".qkv_proj."},
     {".k_proj.", ".qkv_proj."},
     {".v_proj.", ".qkv_proj."},
     {".gate_proj.", ".gate_up_proj."},
     {".up_proj.", ".gate_up_proj."},
     {".q_a_proj.", ".fused_qkv_a_proj."},
     {".kv_a_proj_with_mqa.", ".fused_qkv_a_proj."}}};

// Checkpoints and the modules of engines differ in what stands before the layers.
constexpr std::array<std::string_view, 5> kBeforeLayers = {"", "model.", "language_model.model.",
                                                           "model.language_model.", "language_model."};

struct Exempt {
  explicit Exempt(const QuantizationConfig& config) : patterns(config.ignored), entries(config.ignored) {}
  // transformers takes an entry for the end of a name as well ("self_attn.o_proj"), AutoAWQ for any part of it.
  bool name(const std::string& tensor) const {
    return patterns.name(tensor) ||
           std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) {
             return !entry.empty() && tensor.find(entry) != std::string::npos;
           });
  }
  ModulePatterns patterns;
  const std::vector<std::string>& entries;
};

bool is_exempt(const Exempt& ignored, const std::string& name) {
  if (ignored.name(name)) return true;
  const std::size_t layers = name.find("layers.");
  if (layers == std::string::npos) return false;
  const std::string tail = name.substr(layers);
  return std::any_of(kBeforeLayers.begin(), kBeforeLayers.end(),
                     [&](std::string_view prefix) { return ignored.name(std::string(prefix) + tail); });
}

bool is_exempt_in_any_name(const Exempt& ignored, const std::string& name) {
  if (is_exempt(ignored, name)) return true;
  return std::any_of(kNamesOfFused.begin(), kNamesOfFused.end(), [&](const auto& fused) {
    const std::size_t at = name.find(fused.first);
    if (at == std::string::npos) return false;
    std::string whole = name;
    return is_exempt(ignored, whole.replace(at, fused.first.size(), fused.second));
  });
}

}  // namespace

bool quantizes_every_linear(const QuantizationConfig& config) {
  if (config.method == "fp8") return true;
  if (config.method == "modelopt") return config.layers.empty() && config.format != "MIXED_PRECISION";
  return config.method == "compressed-tensors" && config.groups.size() == 1 &&
         config.groups.front().targets == std::vector<std::string>{"Linear"};
}

Findings plain_though_named(const std::vector<const CheckpointTensor*>& plain,
                            const QuantizationConfig& config) {
  if (plain.empty()) return {};
  const Exempt ignored(config);
  Findings findings;
  for (const CheckpointTensor* tensor : plain) {
    if (is_exempt_in_any_name(ignored, tensor->name)) continue;
    findings.push_back(tensor_error(
        "model.plain_undeclared", tensor->name,
        fmt::format(
            "is {}, and quantization_config does not leave its module out, which is quantized in other "
            "layers: engines look for codes there",
            name(tensor->type)),
        "list the module among those that are not quantized"));
  }
  return told_once(std::move(findings));
}

}  // namespace assay
