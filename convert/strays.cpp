#include "convert/strays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/model/stored_names.h"

namespace assay {
namespace {

bool is_cache_scale(const CheckpointTensor& tensor) {
  const auto stored = parse_stored_name(tensor.name);
  return stored && stored->weight.empty();
}

// peft, diffusers, MLX, ModelOpt's SVDQuant.
bool is_adapter(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kParts = {
      ".lora_A.", ".lora_B.", ".lora_a", ".lora_b", ".lora_embedding_", "svdquant_lora_"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace

void leave_out_strays(ConversionPlan& plan) {
  if (plan.spec.kind != Spec::Kind::cast && plan.spec.kind != Spec::Kind::quantize) return;
  const auto& tensors = plan.checkpoint.tensors;
  const auto adapter = std::find_if(tensors.begin(), tensors.end(),
                                    [](const CheckpointTensor& tensor) { return is_adapter(tensor.name); });
  if (adapter != tensors.end())
    plan.findings.push_back(
        {.severity = Severity::error,
         .code = "convert.adapter",
         .message = "an adapter that is not merged: the weights without it are another model",
         .file = {},
         .tensor = adapter->name,
         .offset = {},
         .remedy = "merge it first (peft: merge_and_unload)"});
  const auto first = std::find_if(tensors.begin(), tensors.end(), is_cache_scale);
  if (first == tensors.end()) return;
  plan.left_out.resize(tensors.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!is_cache_scale(tensors[i])) continue;
    plan.left_out[i] = true;
    ++count;
  }
  std::erase_if(plan.stored.tensors,
                [&](const LogicalTensor& tensor) { return is_cache_scale(tensors[tensor.codes]); });
  plan.findings.push_back(
      {.severity = Severity::warning,
       .code = "convert.cache_scales",
       .message = fmt::format("{} scales of the key-value cache are left out: config.json "
                              "no longer tells of them",
                              count),
       .file = {},
       .tensor = first->name,
       .offset = {},
       .remedy = {}});
}

}  // namespace assay
