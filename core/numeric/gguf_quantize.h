// From float32 into GGUF's block types, bit for bit as llama.cpp does it, with and without an importance
// matrix.
//
//   if (const auto fault = gguf_quantize(ElementType::Q4_K, values, out)) … fault->index, fault->kind …
//
// "Bit for bit" means ggml's reference functions (ggml-quants.c: quantize_row_*_ref; for IQ4_NL and IQ4_XS,
// quantize_iq4_*), which llama-quantize uses, compiled for x86-64, where no multiply and add are fused. On
// processors whose compilers do fuse them (AArch64) llama.cpp's own files differ from these in a few codes.
//
// What llama-quantize refuses (ggml_validate_row_data) is refused here: a scale that comes out infinite or
// NaN. So are values beyond 2^32 in types under halves, which ggml would store as zeros, and beyond 2688 in
// NVFP4, which it would store as 2688.
//
// Blocks do not depend on their neighbours: a row may be quantized in pieces of whole blocks, on any number
// of threads, with the same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/numeric/element_type.h"

namespace assay {

struct QuantizeFault {
  enum class Kind : std::uint8_t {
    not_finite,  // the value is NaN or infinite
    too_large,  // the block's scale, or the value itself, is beyond the largest half (ggml_validate_row_data)
  };
  Kind kind;
  std::uint64_t index;  // into `values`; of the block's first value where the scale is at fault
};

// F32, F16, BF16; Q1_0, Q2_0, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0; Q2_K to Q6_K; IQ4_NL, IQ4_XS; TQ1_0, TQ2_0;
// MXFP4, NVFP4.
bool gguf_can_quantize_to(ElementType type);

// `values` fill whole blocks; `out` has room for storage_bytes(type, values.size()). The first fault, if any:
// then what `out` holds is of no use. Other types are refused (Error).
[[nodiscard]] std::optional<QuantizeFault> gguf_quantize(ElementType type, std::span<const float> values,
                                                         std::byte* out);

// One whole row, with an importance matrix's values for its columns, none negative: as ggml's
// quantize_row_*_impl. Types that know no such weights are quantized as above.
[[nodiscard]] std::optional<QuantizeFault> gguf_quantize_row(ElementType type, std::span<const float> row,
                                                             std::span<const float> importance,
                                                             std::byte* out);

}  // namespace assay
