// What `--to` asks for.
//
//   copy                                            the stored bytes, in other files
//   reblock=64x64                                   the same codes, their scales for other blocks
//   bf16 | f16 | f32                                no quantization
//   fp8:block=128x128 | mxfp4 | …                   what a stored format names (core/model/formats)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/model/weight_encoder.h"
#include "core/numeric/element_type.h"

namespace assay {

struct Spec {
  enum class Kind : std::uint8_t { keep, reblock, cast, quantize } kind = Kind::cast;

  std::string text;                                   // as given
  ElementType type = ElementType::BF16;               // cast: of the values
  std::uint64_t block_rows = 0, block_columns = 0;    // reblock
  std::shared_ptr<const WeightEncoder> encoder = {};  // quantize
};

// Throws Error::usage.
Spec parse_spec(std::string_view text, Int8Range int8_range);

}  // namespace assay
