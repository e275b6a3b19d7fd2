#include "kernels/cpu/linear.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/gemm_i16.h"
#include "kernels/cpu/row_dot.h"
#include "kernels/cpu/row_dot_int.h"
#include "kernels/cpu/team.h"
#include "kernels/cpu/tile_rows.h"

namespace assay::cpu {
namespace {

// Rows of a piece of work: enough that starting it costs nothing beside it, few enough to share out evenly.
constexpr std::size_t kBytesAPiece = 128 << 10;
constexpr std::size_t kDecodedAtOnce = 1 << 20;  // elements of an input_major matrix

std::size_t rows_a_piece(const WeightView& weight) {
  const std::size_t row_bytes = std::max<std::size_t>(1, weight.row_bytes);
  return std::clamp<std::size_t>(kBytesAPiece / row_bytes, 16, 1024);
}

void add_bias(const WeightView& bias, const Matrix& y) {
  if (!bias) return;
  std::vector<float> values(bias.columns);
  decode_rows(bias, 0, 1, values.data());
  for (std::size_t r = 0; r < y.rows(); ++r) {
    float* row = y.row<float>(r);
    for (std::size_t c = 0; c < values.size(); ++c) row[c] += values[c];
  }
}

}  // namespace

void linear_by_rows(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs) {
  std::vector<DotInput> inputs;
  for (std::size_t t = 0; t < x.rows(); ++t) inputs.emplace_back(std::span(x.row<float>(t), x.columns()));
  const std::size_t step = rows_a_piece(weight), count = (weight.rows + step - 1) / step;
  team_for(jobs, count, [&](std::size_t piece) {
    const std::size_t first = piece * step, rows = std::min(step, weight.rows - first);
    for (std::size_t t = 0; t < inputs.size(); ++t)
      row_dots(weight, first, rows, inputs[t], y.row<float>(t) + first);
  });
}

void linear_by_integer_rows(const Matrix& x, const WeightView& weight, bool fine, const Matrix& y, int jobs) {
  std::vector<IntInput> inputs;
  for (std::size_t t = 0; t < x.rows(); ++t)
    inputs.emplace_back(std::span(x.row<float>(t), x.columns()), fine);
  const std::size_t step = rows_a_piece(weight), count = (weight.rows + step - 1) / step;
  team_for(jobs, count, [&](std::size_t piece) {
    const std::size_t first = piece * step, rows = std::min(step, weight.rows - first);
    for (std::size_t t = 0; t < inputs.size(); ++t)
      integer_row_dots(weight, first, rows, inputs[t], y.row<float>(t) + first);
  });
}

void linear_by_panels(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs) {
  const std::size_t width = panel_width(), terms = weight.inputs(), outputs = weight.outputs();
  std::vector<float> packed(x.rows() * terms);
  constexpr std::size_t kTokens = 2 * kMostTileRows;  // a multiple of every tile's
  team_for(jobs, (x.rows() + kTokens - 1) / kTokens, [&](std::size_t i) {
    const std::size_t first = i * kTokens, count = std::min(kTokens, x.rows() - first);
    pack_tokens(x.row<float>(first), x.stride(), count, terms, packed.data() + first * terms);
  });
  team_for(jobs, (outputs + width - 1) / width, [&](std::size_t index) {
    thread_local std::vector<float> rows, panel;
    std::vector<const float*> row_of(width);
    rows.resize(width * terms);
    for (std::size_t n = 0; n < width; ++n) row_of[n] = rows.data() + n * terms;
    panel.resize(width * terms);
    const std::size_t first = index * width, count = std::min(width, outputs - first);
    decode_rows(weight, first, count, rows.data());
    pack_panel(row_of.data(), count, terms, panel.data());
    multiply_panel({.x = packed.data(),
                    .tokens = x.rows(),
                    .x_stride = 0,
                    .panel = panel.data(),
                    .terms = terms,
                    .y = y.row<float>(0) + first,
                    .y_stride = y.stride(),
                    .outputs = count,
                    .x_packed = true});
  });
}

void linear_by_integer_panels(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs) {
  const IntTiles tiles(x, jobs);
  const std::size_t width = panel_width(), outputs = weight.outputs();
  team_for(jobs, (outputs + width - 1) / width, [&](std::size_t index) {
    const std::size_t first = index * width;
    integer_panel(tiles, weight, first, std::min(width, outputs - first), y);
  });
}

void linear_input_major(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs) {
  const std::size_t width = panel_width(), padded = (weight.columns + width - 1) / width * width;
  const std::size_t step = std::max<std::size_t>(1, kDecodedAtOnce / padded);
  std::vector<float> decoded(weight.columns), strip(step * padded);
  for (std::size_t k = 0; k < weight.rows; k += step) {
    const std::size_t terms = std::min(step, weight.rows - k);
    for (std::size_t i = 0; i < terms; ++i) {
      decode_rows(weight, k + i, 1, decoded.data());
      std::copy(decoded.begin(), decoded.end(), strip.begin() + static_cast<std::ptrdiff_t>(i * padded));
    }
    team_for(jobs, padded / width, [&](std::size_t index) {
      const std::size_t first = index * width;
      multiply_panel({.x = x.row<float>(0) + k,
                      .tokens = x.rows(),
                      .x_stride = x.stride(),
                      .panel = strip.data() + first,
                      .terms = terms,
                      .y = y.row<float>(0) + first,
                      .y_stride = y.stride(),
                      .outputs = std::min(width, weight.columns - first),
                      .panel_stride = padded,
                      .accumulate = k != 0});
    });
  }
}

namespace {

void linear_int16(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs) {
  if (x.rows() < kPackFrom)
    linear_by_integer_rows(x, weight, false, y, jobs);
  else
    linear_by_integer_panels(x, weight, y, jobs);
}

void linear_float32(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs) {
  if (weight.input_major)
    linear_input_major(x, weight, y, jobs);
  else if (x.rows() >= kPackFrom)
    linear_by_panels(x, weight, y, jobs);
  else if (has_integer_rows(weight))
    linear_by_integer_rows(x, weight, true, y, jobs);
  else
    linear_by_rows(x, weight, y, jobs);
}

}  // namespace

void linear(const Matrix& x, const WeightView& weight, const WeightView& bias, bool int16, const Matrix& y,
            int jobs) {
  if (x.rows() == 0 || weight.outputs() == 0) return;
  int16 ? linear_int16(x, weight, y, jobs) : linear_float32(x, weight, y, jobs);
  add_bias(bias, y);
}

}  // namespace assay::cpu
