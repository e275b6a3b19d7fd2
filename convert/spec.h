// What `--to` asks for.
//
//   copy                                            the stored bytes, in other files
//   reblock=64x64                                   the same codes, their scales for other blocks
//   bf16 | f16 | f32                                no quantization
//   fp8:block=128x128 | fp8:channel | fp8:tensor    with ,scale=f32|ue8m0 and ,e4m3|e5m2 and ,fnuz
//   int8:block=128x128 | int8:channel
//   mxfp4 | mxfp8                                   with ,scale=floor|ceil|even|rceil; mxfp4 ,ties=even|down
//   nvfp4                                           with ,layout=compressed-tensors|modelopt ,ties=even|down
//   int4:group=128 | int4:channel                   with ,asym
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/stored_form.h"
#include "core/numeric/block_quantizer.h"
#include "core/numeric/microscaling.h"

namespace assay {

enum class Int8Range : std::uint8_t { symmetric_127, compressed_tensors };  // amax/127, amax/127.5

struct Spec {
  enum class Kind : std::uint8_t { keep, reblock, cast, quantize } kind = Kind::cast;
  enum class Grain : std::uint8_t { block, channel, tensor };
  enum class Family : std::uint8_t { scaled, mxfp4, mxfp8, nvfp4, int4 };

  std::string text;                      // as given
  ElementType type = ElementType::BF16;  // of the values (cast) or codes (quantize)
  Family family = Family::scaled;        // quantize: the rest is of one family or another
  Grain grain = Grain::block;
  std::uint64_t block_rows = 0, block_columns = 0;
  ScaleRounding scale = ScaleRounding::none;
  Int8Range int8_range = Int8Range::symmetric_127;
  MxScaling mx_scaling = MxScaling::even;
  Fp4Ties ties = Fp4Ties::even;
  bool modelopt = false;    // nvfp4: NVIDIA ModelOpt's names and conventions
  bool asymmetric = false;  // int4: zero points
  bool undeclared = false;  // int8:channel: config.json says nothing of it
  std::uint64_t group = 0;  // int4: columns of a group; 0: a row

  // Family::scaled: the quantizer for a matrix of this size.
  BlockQuantizer quantizer(std::uint64_t rows, std::uint64_t columns) const;
};

// Throws Error::usage.
Spec parse_spec(std::string_view text, Int8Range int8_range);

}  // namespace assay
