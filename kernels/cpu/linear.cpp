#include "kernels/cpu/linear.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/team.h"

namespace assay::cpu {
namespace {

void add_bias(const WeightView& bias, const Matrix& y) {
  if (!bias) return;
  std::vector<float> values(bias.columns);
  decode_rows(bias, 0, 1, values.data());
  for (std::size_t r = 0; r < y.rows(); ++r) {
    float* row = y.row<float>(r);
    for (std::size_t c = 0; c < values.size(); ++c) row[c] += values[c];
  }
}

void finish(const LinearProduct& product, const Arithmetic& arithmetic, int jobs) {
  if (arithmetic.bfloat16())
    finish_bf16(product.bias, product.rounding == ResultRounding::float32, product.y, jobs);
  else
    add_bias(product.bias, product.y);
}

}  // namespace

void linear_by(LinearWay way, const Matrix& x, const WeightView& weight, const Matrix& y, int jobs) {
  const LinearWork work(way, x, weight, y, jobs);
  run_all({&work, 1}, jobs, true);
}

void linear_together(const Matrix& x, std::span<const LinearProduct> products, const Arithmetic& arithmetic,
                     int jobs, SumOrder order) {
  if (x.rows() == 0) return;
  std::vector<LinearWork> works;
  works.reserve(products.size());  // they refer to each other
  for (const LinearProduct& product : products) {
    const LinearWork* beside = works.empty() ? nullptr : &works.front();
    works.emplace_back(way_for(x.rows(), product.weight, arithmetic, order), x, product.weight, product.y,
                       jobs, beside);
  }
  run_all(works, jobs, true);
  for (const LinearProduct& product : products) finish(product, arithmetic, jobs);
}

void linear_input_major(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs) {
  const std::size_t width = panel_width(), padded = (weight.columns + width - 1) / width * width;
  const std::size_t step = std::max<std::size_t>(1, std::min(kDecodedAtOnce / padded, weight.rows));
  // Kept: latent attention comes here for every head of every token. What pads a row may be anything finite or not, for
  // no output is made of it.
  thread_local std::vector<float> kept;
  if (kept.size() < step * padded) kept.resize(step * padded);
  float* const strip = kept.data();  // of this thread, whoever reads it below
  for (std::size_t k = 0; k < weight.rows; k += step) {
    const std::size_t terms = std::min(step, weight.rows - k);
    for (std::size_t i = 0; i < terms; ++i) decode_rows(weight, k + i, 1, strip + i * padded);
    team_for(jobs, padded / width, [&](std::size_t index) {
      const std::size_t first = index * width;
      multiply_panel({.x = x.row<float>(0) + k,
                      .tokens = x.rows(),
                      .x_stride = x.stride(),
                      .panel = strip + first,
                      .terms = terms,
                      .y = y.row<float>(0) + first,
                      .y_stride = y.stride(),
                      .outputs = std::min(width, weight.columns - first),
                      .panel_stride = padded,
                      .accumulate = k != 0});
    });
  }
}

void linear(const Matrix& x, const WeightView& weight, const WeightView& bias, const Arithmetic& arithmetic,
            const Matrix& y, int jobs, ResultRounding rounding, SumOrder order) {
  if (x.rows() == 0 || weight.outputs() == 0) return;
  if (weight.input_major)
    linear_input_major(x, weight, y, jobs);
  else
    linear_by(way_for(x.rows(), weight, arithmetic, order), x, weight, y, jobs);
  finish({weight, bias, y, rounding}, arithmetic, jobs);
}

}  // namespace assay::cpu
