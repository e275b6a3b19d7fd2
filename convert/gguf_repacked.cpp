#include "convert/gguf_repacked.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "convert/gguf_plan.h"
#include "convert/repack.h"
#include "core/model/stored_checks.h"
#include "core/system/error.h"

namespace assay {
namespace {

using Fp4 = GgufRules::Fp4;
constexpr std::string_view kWeight = ".weight";

const LogicalTensor* first_source(const ConversionPlan& plan, const DerivedTensor& tensor) {
  return tensor.pieces.empty() ? nullptr : &plan.stored.tensors[tensor.pieces.front().source];
}

// Floats as they are; other quantized tensors in bfloat16.
ElementType float_type(const ConversionPlan& plan, const DerivedTensor& tensor) {
  const LogicalTensor* source = first_source(plan, tensor);
  if (source == nullptr) return ElementType::F32;
  const bool is_float = !source->quantized() && !source->composed && is_plain_float(source->form.codes) &&
                        source->form.codes != ElementType::F64;
  return is_float ? source->form.codes : ElementType::BF16;
}

// As it is stored, whatever it is of: a router in bfloat16, and FP8 in blocks of eight bits (DeepSeek-V4).
ElementType stored_type(const ConversionPlan& plan, const DerivedTensor& tensor) {
  const LogicalTensor* source = first_source(plan, tensor);
  const bool vector = tensor.shape.size() <= 1 || tensor.name.ends_with("_norm.weight");
  if (source == nullptr || vector) return ElementType::F32;
  const bool in_blocks = tensor.columns() % info(ElementType::Q8_0).block_elements == 0;
  if (is_one_byte_float(source->form.codes)) return in_blocks ? ElementType::Q8_0 : ElementType::F16;
  return float_type(plan, tensor);
}

ElementType type_beside(const ConversionPlan& plan, const GgufRules& rules, const GgufTensor& tensor) {
  if (tensor.whole_numbers) return ElementType::I32;
  if (rules.fp4 == Fp4::first_and_others_as_stored) return stored_type(plan, tensor.made);
  return tensor.always_f32 ? ElementType::F32 : float_type(plan, tensor.made);
}

// Which are moved before the converter looks at any other: tables of tokens by layers, then a layer's experts as they
// are called (w1, w2, w3); {2}: the others.
std::array<std::uint64_t, 3> turn_of(const DerivedOutput& tensor) {
  constexpr std::string_view kLayer = "blk.", kStacks[] = {"ffn_gate_exps", "ffn_down_exps", "ffn_up_exps"};
  const std::string_view name = tensor.made.name;
  std::uint64_t layer = 0;
  if (name.starts_with(kLayer))
    std::from_chars(name.data() + kLayer.size(), name.data() + name.size(), layer);
  if (tensor.type == ElementType::I32) return {0, layer, 0};
  for (std::size_t i = 0; tensor.repacked && i < std::size(kStacks); ++i) {
    if (name.find(kStacks[i]) != std::string_view::npos) return {1, layer, i};
  }
  return {2, 0, 0};
}

void put_in_order(const GgufRules& rules, std::vector<DerivedOutput>& tensors) {
  if (rules.fp4 == Fp4::in_place) {
    // gpt-oss' experts come before anything else.
    std::stable_partition(tensors.begin(), tensors.end(), [](const DerivedOutput& tensor) {
      return tensor.repacked && tensor.made.pieces.front().transposed;
    });
    return;
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const DerivedOutput& a, const DerivedOutput& b) { return turn_of(a) < turn_of(b); });
}

}  // namespace

std::vector<DerivedOutput> repacked_tensors(const ConversionPlan& plan, const GgufRules& rules,
                                            std::vector<GgufTensor> tensors, GgufFileType type,
                                            const fs::path& in) {
  const ElementType wanted = gguf_default_type(type);
  const CheckpointReader source(plan.checkpoint);
  std::vector<DerivedOutput> made;
  std::size_t count = 0;
  for (GgufTensor& tensor : tensors) {
    if (!can_repack(tensor.made, wanted, plan.stored)) {
      const ElementType kept = type_beside(plan, rules, tensor);
      made.push_back({std::move(tensor.made), kept});
      continue;
    }
    ++count;
    std::string name = tensor.made.name;
    auto factors = factors_of(source, plan.stored, tensor.made);
    made.push_back({.made = std::move(tensor.made), .type = wanted, .repacked = true});
    if (factors.empty()) continue;
    name.replace(name.size() - kWeight.size(), kWeight.size(), ".scale");
    DerivedTensor scale{.name = std::move(name), .shape = {factors.size()}};
    scale.computed = std::move(factors);
    made.push_back({std::move(scale), ElementType::F32});
  }
  put_in_order(rules, made);
  if (count > 0) return made;
  throw Error::refused(
      fmt::format("no matrix here is {0} in whole blocks of {1}, and --to gguf:{2} only moves "
                  "what is {0} already",
                  name(wanted), info(wanted).block_elements, lower_case(name(wanted))))
      .in(in)
      .remedy(fmt::format("convert to {} first, or take another GGUF type", lower_case(name(wanted))));
}

}  // namespace assay
