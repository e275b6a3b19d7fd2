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
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/numeric/ceil_div.h"
#include "core/numeric/packed_ints.h"
#include "core/system/finding.h"

namespace assay {

enum class FormKind : std::uint8_t {
  plain,   // one tensor; a float type, or an integer that is no code of anything
  scaled,  // one code an element × a scale a block: FP8 and INT8, by block, channel or tensor; MXFP8
  fp4,  // two E2M1 codes a byte, low nibble first × a scale a block (× or / a global scale): NVFP4, MXFP4
  packed,    // integers in 32-bit words, a zero point and a scale a group: GPTQ, AWQ, compressed-tensors, MLX
  codebook,  // bitsandbytes: two codes a byte, high nibble first, a table of 16 values, a scale every so many
};

// How a second, tensor-wide scale enters: ModelOpt multiplies by weight_scale_2, compressed-tensors divides
// by weight_global_scale.
enum class GlobalScale : std::uint8_t { none, multiply, divide };

// What is taken from a packed integer q before it is scaled.
enum class ZeroPoint : std::uint8_t {
  middle,         // w = (q - 2^(bits-1)) s
  packed,         // w = (q - z) s, z packed as q is
  packed_less_1,  // the same, but z - 1 is what is stored: GPTQ's first format
  bias,           // w = q s + b, b a float tensor: MLX
};

// The integers of FormKind::packed.
struct PackedForm {
  IntPacking codes, zeros;
  bool codes_across = false;  // a word holds values of one column, of neighbouring stored rows (GPTQ)
  bool zeros_across = false;  // the same for zero points (compressed-tensors)
  // Bytes of two neighbouring rows, the even one low, in two's complement (ModelOpt's INT4).
  bool paired_rows = false;
  ZeroPoint zero = ZeroPoint::middle;
};

// The scales of FormKind::codebook: one every `block` elements, whatever the rows; with `nested` they are
// codes of a second table, a scale every so many, around `offset`.
struct CodebookForm {
  std::uint64_t block = 64, nested = 0;
  float offset = 0;
};

struct StoredForm {
  FormKind kind = FormKind::plain;
  ElementType codes = ElementType::BF16;  // of the stored codes; I32 for packed ones
  ElementType scales = ElementType::F32;  // as read: bytes of a U8 scale are F8_E8M0
  GlobalScale global = GlobalScale::none;
  float scale_factor = 1;                           // bitsandbytes' INT8 stores a row's amax: 1/127
  std::uint64_t block_rows = 1, block_columns = 1;  // of the logical tensor
  // Codes, scales and zero points lie as [columns, rows]: inputs first.
  bool transposed = false;
  PackedForm packed;
  CodebookForm codebook;
};

struct ComposedTensor;  // core/model/composed_tensor.h

struct LogicalTensor {
  std::string name;                  // "model.layers.0.mlp.up_proj.weight", however it is stored
  std::vector<std::uint64_t> shape;  // of the values, not of the codes
  std::uint64_t slices = 1, rows = 1, columns = 1;
  StoredForm form;
  // Places in Checkpoint::tensors.
  std::uint32_t codes = 0;
  std::optional<std::uint32_t> scale, global_scale;
  std::optional<std::uint32_t> zeros;        // zero points, or MLX's biases
  std::optional<std::uint32_t> group_index;  // of every column, the group it belongs to (GPTQ's act-order)
  std::optional<std::uint32_t> table, nested_table, nested_scale;  // of a codebook
  std::optional<std::uint32_t>
      input_factors;                     // a factor a column, outside of it all: ModelOpt's SmoothQuant, AWQ
  std::vector<std::uint32_t> auxiliary;  // of no use to decoding: scales of activations, stored shapes

  // Put together from others, which alone are stored: form and places are those of the first of them.
  std::shared_ptr<const ComposedTensor> composed;

  bool quantized() const { return form.kind != FormKind::plain; }
  std::uint64_t all_rows() const { return slices * rows; }
  std::uint64_t elements() const { return slices * rows * columns; }
  std::uint64_t scale_rows() const { return ceil_div(rows, form.block_rows); }  // of one slice
  std::uint64_t scale_columns() const { return ceil_div(columns, form.block_columns); }
  // Rows that are best decoded together: those of a transposed form are strips of the stored columns.
  std::uint64_t rows_together() const { return form.transposed && !composed ? 256 : 1; }
  // Every place above: what the tensor is stored in.
  std::vector<std::uint32_t> places() const;
};

// "F8_E4M3 128x128", "I8 channel", "F8_E4M3 tensor", "NVFP4", "AWQ INT4 group 128", "BF16": for people.
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

// What the files beside the weights say: config.json, which may be no model's, and where that is silent
// ModelOpt's hf_quant_config.json. nullopt: nothing. Throws Error::input on malformed ones.
std::optional<QuantizationConfig> read_quantization(const Checkpoint& checkpoint);

// The largest number a code of `type` stands for: 448 for F8_E4M3, 127 for I8.
float largest_code_value(ElementType type);

}  // namespace assay
