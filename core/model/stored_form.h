// The second idea of the house: a weight is one thing, stored in many ways.
//
//   logical tensor (name, shape)  <->  stored form (codes, and the scales, zero points, tables beside them)
//
// find_stored() tells, from names, shapes and quantization_config alone, how every weight of a checkpoint is
// stored; a format is one StoredForm, so N formats cost N descriptions. No module tree is needed: it works on
// architectures nobody has described and on checkpoints that hold only some layers. StoredReader
// (stored_reader.h) decodes rows of any of them.
//
// A logical tensor is seen as `slices` matrices of `rows` × `columns` (stacked experts are slices; of what
// has one dimension or none there is one row); one scale covers block_rows × block_columns of a slice, and a
// block that runs over the edge is cut off there: a slice has ceil(rows/block_rows) ×
// ceil(columns/block_columns) scales.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/system/finding.h"

namespace assay {

enum class FormKind : std::uint8_t {
  plain,   // one tensor; a float type, or an integer that is no code of anything
  scaled,  // one code an element × a scale a block: FP8 and INT8, by block, channel or tensor; MXFP8
  fp4,  // two E2M1 codes a byte, low nibble first × a scale a block (× or / a global scale): NVFP4, MXFP4
};

// How a second, tensor-wide scale enters: ModelOpt multiplies by weight_scale_2, compressed-tensors divides
// by weight_global_scale.
enum class GlobalScale : std::uint8_t { none, multiply, divide };

struct StoredForm {
  FormKind kind = FormKind::plain;
  ElementType codes = ElementType::BF16;  // of the stored codes
  ElementType scales = ElementType::F32;  // as read: bytes of a U8 scale are F8_E8M0
  GlobalScale global = GlobalScale::none;
  std::uint64_t block_rows = 1, block_columns = 1;
};

struct LogicalTensor {
  std::string name;                  // "model.layers.0.mlp.up_proj.weight", however it is stored
  std::vector<std::uint64_t> shape;  // of the values, not of the codes
  std::uint64_t slices = 1, rows = 1, columns = 1;
  StoredForm form;
  // Places in Checkpoint::tensors.
  std::uint32_t codes = 0;
  std::optional<std::uint32_t> scale, global_scale;
  std::vector<std::uint32_t> companions;  // of no use to decoding: scales of activations, stored shapes

  bool quantized() const { return form.kind != FormKind::plain; }
  std::uint64_t all_rows() const { return slices * rows; }
  std::uint64_t elements() const { return slices * rows * columns; }
  std::uint64_t scale_rows() const { return ceil_div(rows, form.block_rows); }  // of one slice
  std::uint64_t scale_columns() const { return ceil_div(columns, form.block_columns); }

  static std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
};

// "F8_E4M3 128x128", "I8 channel", "F8_E4M3 tensor", "NVFP4", "BF16": for people.
std::string form_name(const LogicalTensor& tensor);

struct StoredTensors {
  std::vector<LogicalTensor> tensors;  // in the order of their codes: by file, then offset
  // What cannot be understood is an error here, never a guess: codes without a scale, a scale without codes,
  // a scale whose shape is no grid over its weight, a quant_method or a form nobody has described. Codes:
  // stored.* (docs/findings.md).
  Findings findings;
  bool any_quantized = false;
};
StoredTensors find_stored(const Checkpoint& checkpoint,
                          const std::optional<QuantizationConfig>& quantization);

// Of a config.json that may be no model's: nullopt where there is none. Throws Error::input on a malformed
// one.
std::optional<QuantizationConfig> read_quantization(const fs::path& config_json);

// The largest number a code of `type` stands for: 448 for F8_E4M3, 127 for I8.
float largest_code_value(ElementType type);

}  // namespace assay
