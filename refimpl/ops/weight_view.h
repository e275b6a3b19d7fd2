// A weight as it is stored: codes and scales where they lie in the file's memory, never expanded. A kernel
// may multiply straight from the bytes; decode_rows() is what every form means.
//
// `rows` × `columns` is the stored shape: [out, in] of a linear layer, [in, out] where input_major (GPT-2,
// stacked experts of some checkpoints); a vector is one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/model/stored_form.h"
#include "core/model/stored_reader.h"
#include "core/numeric/element_type.h"

namespace assay {

struct WeightView {
  // Of messages: "model.layers.0.self_attn.q_proj.weight". It outlives the view.
  const std::string* name = nullptr;
  std::size_t rows = 0, columns = 0;
  bool input_major = false;

  // Codes of element type `type` (GGUF's blocks included), row_bytes apart. Null: of a form that only
  // `reader` decodes, whose row `reader_row` is this view's first.
  FormKind kind = FormKind::plain;
  ElementType type = ElementType::F32;
  const std::byte* codes = nullptr;
  std::size_t row_bytes = 0;

  // FormKind::scaled and fp4: the scale of element (r, c) is number (first_row + r) / block_rows ×
  // scale_columns + c / block_columns of `scales`; fp4 may have a global one.
  const std::byte* scales = nullptr;
  ElementType scale_type = ElementType::F32;
  std::size_t block_rows = 1, block_columns = 1, scale_columns = 0, first_row = 0;
  GlobalScale global = GlobalScale::none;
  float global_scale = 1;

  // Never multiplied in 8 bits, whatever the arithmetic: an absorbed matrix is dequantized first.
  bool weight_only = false;

  const StoredReader* reader = nullptr;
  std::uint64_t reader_row = 0;

  explicit operator bool() const { return name != nullptr; }
  std::size_t outputs() const { return input_major ? columns : rows; }
  std::size_t inputs() const { return input_major ? rows : columns; }
  // Rows [first, first + count) of a fused or per-head matrix.
  WeightView row_range(std::size_t first, std::size_t count) const;
};

// Rows [first, first + count) as numbers. A scaled value is float32(code) × float32(scale), rounded to
// float32 once, whatever T; only a stored F64 keeps more than float32 in a double.
void decode_rows(const WeightView& weight, std::size_t first, std::size_t count, float* out);
void decode_rows(const WeightView& weight, std::size_t first, std::size_t count, double* out);

// The parts of a scaled weight whose bytes are at hand: the codes' values without their scales, and the
// scales of one row, scale_columns of them.
void decode_codes(const WeightView& weight, std::size_t first, std::size_t count, float* out);
void decode_scales(const WeightView& weight, std::size_t row, float* out);

// Bytes of `scales` from their first to the last that a row of the weight has; 0: it has no scales.
std::size_t scale_bytes(const WeightView& weight);

// GGUF's blocks of integers under scales that are float32; rows of them, their bytes at hand.
bool is_integer_block(ElementType type);
bool has_integer_rows(const WeightView& weight);

// A vector (a bias, a norm's weight), whatever its shape.
std::vector<double> decode_vector(const WeightView& weight);

}  // namespace assay
