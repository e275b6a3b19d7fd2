#include "convert/fused_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/model/fused_sets.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_names.h"
#include "core/numeric/codec.h"

namespace assay {
namespace {

constexpr double kApart = 1e-5;  // FusedMoE.weight_loader's

struct InputScale {
  const CheckpointTensor* tensor;
  double value = 0;
};

bool is_one_float(const CheckpointTensor& tensor) {
  return is_plain_float(tensor.type) && tensor.type != ElementType::F64 && element_count(tensor.shape) == 1;
}

// Of the activations that this matrix meets; nullopt: none, or not one for all.
std::optional<InputScale> input_scale(const CheckpointReader& source, const LogicalTensor& weight) {
  const CheckpointTensor* scale = nullptr;
  for (const std::uint32_t place : weight.auxiliary) {
    const CheckpointTensor& beside = source.checkpoint().tensors[place];
    const auto name = parse_stored_name(beside.name);
    if (!name) continue;
    if (name->suffix == "input_zero_point") return std::nullopt;
    if (name->suffix == "input_scale" || name->suffix == "input_global_scale" ||
        name->suffix == "activation_scale" || name->suffix == "qscale_act")
      scale = &beside;
  }
  if (scale == nullptr || !is_one_float(*scale)) return std::nullopt;
  std::vector<std::byte> bytes(scale->bytes);
  source.read(*scale, 0, bytes);
  float value = 0;
  decode(scale->type, bytes, &value);
  return InputScale{scale, double{value}};
}

double factor_between(double largest, double own) {
  if (!(own > 0) || !std::isfinite(largest)) return std::numeric_limits<double>::infinity();
  return largest / own;
}

std::optional<FusedInput> judge(const std::vector<InputScale>& scales, const std::string& set) {
  double largest = scales.front().value;
  for (const InputScale& scale : scales) {
    if (!(scale.value <= largest)) largest = scale.value;
  }
  FusedInput worst{.set = set, .tensor = {}};
  double least = largest;
  for (const InputScale& scale : scales) {
    const double factor = factor_between(largest, scale.value);
    if (factor <= worst.factor) continue;
    worst.factor = factor;
    worst.tensor = scale.tensor->name;
    least = scale.value;
  }
  if (worst.tensor.empty()) return std::nullopt;
  worst.divides = worst.tensor.ends_with("input_global_scale");
  worst.is_expert = set.find(".experts.") != std::string::npos && !(largest - least <= kApart);
  return worst;
}

}  // namespace

FusedInputs find_fused_inputs(const CheckpointReader& source, const StoredTensors& stored) {
  FusedInputs found;
  for (const FusedSet& set : find_fused_sets(stored.tensors)) {
    std::vector<InputScale> scales;
    for (const std::uint32_t member : set.members) {
      if (const auto scale = input_scale(source, stored.tensors[member])) scales.push_back(*scale);
    }
    if (scales.size() < 2) continue;
    ++found.sets;
    if (auto differs = judge(scales, set.name)) found.differing.push_back(std::move(*differs));
  }
  return found;
}

Finding to_finding(const FusedInput& input) {
  const std::string effect =
      input.divides
          ? fmt::format("of this member's inputs what lies above 1/{:.3g} of the range is cut off",
                        input.factor)
          : fmt::format("this member's inputs are rounded under {:.3g} times its own scale", input.factor);
  return {.severity = Severity::warning,
          .code = "fused.input_scales_differ",
          .message =
              fmt::format("{}: engines scale the inputs of these by the largest of their static scales, "
                          "which differ: {}{}",
                          input.set, effect,
                          input.is_expert ? "; vLLM refuses to load experts of compressed-tensors so" : ""),
          .file = {},
          .tensor = input.tensor,
          .offset = {},
          .remedy = "calibrate them together: they see the same inputs"};
}

}  // namespace assay
