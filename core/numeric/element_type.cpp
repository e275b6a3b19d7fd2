#include "core/numeric/element_type.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace assay {
namespace {

// name, elements and bytes of a block, float?, in safetensors?, ggml's id.
constexpr std::array<ElementInfo, kElementTypes> kInfo = {{
    {"BOOL", 1, 1, false, true, -1},       {"F4", 2, 1, true, true, -1},
    {"F6_E2M3", 4, 3, true, true, -1},     {"F6_E3M2", 4, 3, true, true, -1},
    {"U8", 1, 1, false, true, -1},         {"I8", 1, 1, false, true, 24},
    {"F8_E5M2", 1, 1, true, true, -1},     {"F8_E4M3", 1, 1, true, true, -1},
    {"F8_E8M0", 1, 1, true, true, -1},     {"F8_E4M3FNUZ", 1, 1, true, true, -1},
    {"F8_E5M2FNUZ", 1, 1, true, true, -1}, {"I16", 1, 2, false, true, 25},
    {"U16", 1, 2, false, true, -1},        {"F16", 1, 2, true, true, 1},
    {"BF16", 1, 2, true, true, 30},        {"I32", 1, 4, false, true, 26},
    {"U32", 1, 4, false, true, -1},        {"F32", 1, 4, true, true, 0},
    {"C64", 1, 8, true, true, -1},         {"F64", 1, 8, true, true, 28},
    {"I64", 1, 8, false, true, 27},        {"U64", 1, 8, false, true, -1},
    {"Q4_0", 32, 18, true, false, 2},      {"Q4_1", 32, 20, true, false, 3},
    {"Q5_0", 32, 22, true, false, 6},      {"Q5_1", 32, 24, true, false, 7},
    {"Q8_0", 32, 34, true, false, 8},      {"Q8_1", 32, 36, true, false, 9},
    {"Q2_K", 256, 84, true, false, 10},    {"Q3_K", 256, 110, true, false, 11},
    {"Q4_K", 256, 144, true, false, 12},   {"Q5_K", 256, 176, true, false, 13},
    {"Q6_K", 256, 210, true, false, 14},   {"Q8_K", 256, 292, true, false, 15},
    {"IQ2_XXS", 256, 66, true, false, 16}, {"IQ2_XS", 256, 74, true, false, 17},
    {"IQ3_XXS", 256, 98, true, false, 18}, {"IQ1_S", 256, 50, true, false, 19},
    {"IQ4_NL", 32, 18, true, false, 20},   {"IQ3_S", 256, 110, true, false, 21},
    {"IQ2_S", 256, 82, true, false, 22},   {"IQ4_XS", 256, 136, true, false, 23},
    {"IQ1_M", 256, 56, true, false, 29},   {"TQ1_0", 256, 54, true, false, 34},
    {"TQ2_0", 256, 66, true, false, 35},   {"MXFP4", 32, 17, true, false, 39},
    {"NVFP4", 64, 36, true, false, 40},    {"Q1_0", 128, 18, true, false, 41},
    {"Q2_0", 64, 18, true, false, 42},
}};

template <class Predicate>
std::optional<ElementType> find_type(Predicate matches) {
  const auto it = std::find_if(kInfo.begin(), kInfo.end(), matches);
  if (it == kInfo.end()) return std::nullopt;
  return static_cast<ElementType>(it - kInfo.begin());
}

}  // namespace

const ElementInfo& info(ElementType type) {
  return kInfo[static_cast<std::size_t>(type)];
}

std::optional<ElementType> element_type_from_safetensors(std::string_view name) {
  return find_type([&](const ElementInfo& i) { return i.in_safetensors && i.name == name; });
}

std::optional<ElementType> element_type_from_ggml(std::uint32_t id) {
  return find_type(
      [&](const ElementInfo& i) { return i.ggml_id >= 0 && static_cast<std::uint32_t>(i.ggml_id) == id; });
}

std::optional<ElementType> element_type_from_text(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  static constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
      {"FLOAT32", "F32"},
      {"FP32", "F32"},
      {"FLOAT", "F32"},
      {"FLOAT16", "F16"},
      {"FP16", "F16"},
      {"HALF", "F16"},
      {"BFLOAT16", "BF16"},
      {"FLOAT64", "F64"},
      {"FP64", "F64"},
      {"DOUBLE", "F64"},
      {"FLOAT8_E4M3FN", "F8_E4M3"},
      {"FP8", "F8_E4M3"},
      {"FP8_E4M3", "F8_E4M3"},
      {"FLOAT8_E5M2", "F8_E5M2"},
      {"FP8_E5M2", "F8_E5M2"},
      {"FLOAT8_E8M0FNU", "F8_E8M0"},
      {"UE8M0", "F8_E8M0"},
      {"FLOAT8_E4M3FNUZ", "F8_E4M3FNUZ"},
      {"FLOAT8_E5M2FNUZ", "F8_E5M2FNUZ"},
      {"INT8", "I8"},
      {"UINT8", "U8"},
      {"INT16", "I16"},
      {"INT32", "I32"},
      {"INT64", "I64"},
      {"FP4", "F4"},
      {"FLOAT4_E2M1FN_X2", "F4"},
      {"COMPLEX64", "C64"}};
  for (const auto& [alias, canonical] : kAliases) {
    if (upper == alias) upper = canonical;
  }
  return find_type([&](const ElementInfo& i) { return i.name == upper; });
}

std::optional<std::uint64_t> storage_bytes(ElementType type, std::uint64_t elements) {
  const ElementInfo& i = info(type);
  std::uint64_t bytes = 0;
  if (elements % i.block_elements != 0) return std::nullopt;
  if (__builtin_mul_overflow(elements / i.block_elements, i.block_bytes, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace assay
