// Every element type assay meets, safetensors' and GGUF's alike, as blocks: `block_elements` values stored in
// `block_bytes` bytes. An ordinary type is a block of one. Sub-byte floats and GGUF quantization are the same
// idea.
//
// Sources: safetensors `Dtype` (safetensors/src/tensor.rs); ggml `type_traits` and static_asserts
// (ggml-common.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

enum class ElementType : std::uint8_t {
  // safetensors, in the order of its enumeration (its writer sorts by it, descending)
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
  // GGUF blocks
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q8_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ2_XXS,
  IQ2_XS,
  IQ3_XXS,
  IQ1_S,
  IQ4_NL,
  IQ3_S,
  IQ2_S,
  IQ4_XS,
  IQ1_M,
  TQ1_0,
  TQ2_0,
  MXFP4,
  NVFP4,
  Q1_0,
  Q2_0,
};
inline constexpr int kElementTypes = static_cast<int>(ElementType::Q2_0) + 1;

struct ElementInfo {
  std::string_view name;         // as safetensors or ggml spells it
  std::uint32_t block_elements;  // F4: 2, F6: 4, Q4_K: 256
  std::uint32_t block_bytes;     // F4: 1, F6: 3, Q4_K: 144
  bool is_float;                 // can hold NaN or Inf in some code, or decodes to fractions
  bool in_safetensors;
  int ggml_id;  // -1: GGUF has no such type
};

const ElementInfo& info(ElementType type);
inline std::string_view name(ElementType type) {
  return info(type).name;
}
std::optional<ElementType> element_type_from_safetensors(std::string_view name);  // exact, "BF16"
std::optional<ElementType> element_type_from_ggml(std::uint32_t id);              // removed ids: nullopt
// "bf16", "BF16", "float8_e4m3fn", "q4_k": what people type.
std::optional<ElementType> element_type_from_text(std::string_view text);

// Bytes of `elements` values; nullopt when they do not fill whole blocks or the product overflows.
std::optional<std::uint64_t> storage_bytes(ElementType type, std::uint64_t elements);

// Product of a shape; nullopt on overflow of 64 bits. The empty shape is a scalar: 1.
template <class Shape>
std::optional<std::uint64_t> element_count(const Shape& shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t dimension : shape) {
    if (__builtin_mul_overflow(product, dimension, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace assay
