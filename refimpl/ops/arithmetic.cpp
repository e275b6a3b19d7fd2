#include "refimpl/ops/arithmetic.h"

#include <array>
#include <utility>

namespace assay {
namespace {

constexpr std::array<std::pair<Precision, std::string_view>, 7> kNames = {
    {{Precision::f64, "f64"},
     {Precision::f32, "f32"},
     {Precision::bf16, "bf16"},
     {Precision::fp8_block, "fp8-block"},
     {Precision::int8, "int8"},
     {Precision::int16, "int16"},
     {Precision::int8_block, "int8-block"}}};

}  // namespace

std::string_view name(Precision precision) {
  for (const auto& [value, text] : kNames) {
    if (value == precision) return text;
  }
  return "";
}

std::optional<Precision> precision_from_text(std::string_view text) {
  for (const auto& [value, known] : kNames) {
    if (known == text) return value;
  }
  return std::nullopt;
}

}  // namespace assay
