#include "kernels/harness/cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

std::vector<float> narrow(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<OutputPart> parts_of(Ops& ops, const Matrix& result) {
  return {{"y", result.rows(), result.columns(), narrow(ops.download(result))}};
}

std::vector<OutputPart> parts_of(Ops& ops, const Routing& result) {
  const std::size_t rows = result.top_k == 0 ? 0 : result.experts.size() / result.top_k;
  return {{"experts", rows, result.top_k, {result.experts.begin(), result.experts.end()}},
          {"weights", result.weights.rows(), result.weights.columns(), narrow(ops.download(result.weights))}};
}

std::vector<OutputPart> parts_of(Ops&, const QuantizedMatrix& result) {
  const std::size_t down =
      result.rule.block_rows == 0 ? std::max<std::size_t>(1, result.rows) : result.rule.block_rows;
  const std::size_t scale_rows = (result.rows + down - 1) / down;
  const std::size_t scale_columns = scale_rows == 0 ? 0 : result.scales.size() / scale_rows;
  std::vector<float> values(result.codes.size());
  decode(result.rule.codes, result.codes, values.data());
  // A code is judged by what it stands for, so that both neighbours of a tie are right.
  const std::size_t across =
      result.rule.block_columns == 0 ? std::max<std::size_t>(1, result.columns) : result.rule.block_columns;
  for (std::size_t i = 0; i < values.size() && result.columns != 0; ++i) {
    const std::size_t at = i / result.columns / down * scale_columns + i % result.columns / across;
    values[i] *= at < result.scales.size() ? result.scales[at] : std::numeric_limits<float>::quiet_NaN();
  }
  return {{"scales", scale_rows, scale_columns, result.scales},
          {"values", result.rows, result.columns, std::move(values)}};
}

OutputPart part_of_states(Ops& ops, const std::vector<Matrix>& states) {
  OutputPart part = {.name = "states", .columns = states.front().columns(), .of_tokens = false};
  for (const Matrix& state : states) {
    part.rows += state.rows();
    const std::vector<float> values = narrow(ops.download(state));
    part.values.insert(part.values.end(), values.begin(), values.end());
  }
  return part;
}

std::vector<double> TruthPart::budget(const Roundoffs& u) const {
  if (per_roundoff.empty() && absolute.empty()) return {};
  const double u_out = unit_roundoff(type), floor = resolution_floor(type);
  std::vector<double> budget(values.size());
  for (std::size_t i = 0; i < budget.size(); ++i) {
    budget[i] = u_out * std::fabs(values[i]) + floor;
    double sums = per_roundoff.empty() ? 0 : u.accumulator * per_roundoff[i];
    if (u.promoted != 0 && !products.empty())
      sums = std::min(sums, unit_roundoff(ElementType::F32) * per_roundoff[i] +
                                u.accumulator * accumulation_factor(u.promoted) * products[i]);
    budget[i] += sums;
    if (!products.empty()) budget[i] += u.operands * products[i];
    if (!absolute.empty()) budget[i] += absolute[i];
  }
  return budget;
}

Filled filled(const Arithmetic& arithmetic, InputKind kind, const FillOptions& options) {
  if (ShapesOnly::asked())
    return {options.rows, options.columns, std::vector<double>(options.rows * options.columns)};
  std::vector<float> values(options.rows * options.columns);
  fill_inputs(kind, options, values);
  Filled result = {options.rows, options.columns, {values.begin(), values.end()}};
  for (double& x : result.values) x = arithmetic.round(x);
  return result;
}

Matrix upload(Ops& ops, const Filled& values) {
  return ops.upload(values.values, values.rows, values.columns);
}

void fill_row_with_nan(const Matrix& x, std::size_t row) {
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    std::fill_n(x.row<T>(row), x.columns(), std::numeric_limits<T>::quiet_NaN());
  });
}

ReferenceOps truth_ops(int jobs) {
  return ReferenceOps(Arithmetic{Precision::f64}, jobs);
}

ElementType output_type(const Arithmetic& arithmetic) {
  return arithmetic.bfloat16() ? ElementType::BF16 : ElementType::F32;
}

double stage_error(int roundings) {
  return std::pow(1 + unit_roundoff(ElementType::BF16), roundings + 1) - 1 - unit_roundoff(ElementType::BF16);
}

Arithmetic narrow_arithmetic(const CaseId& id) {
  const std::string text = id.word("act", "f32");
  if (text != "f32" && text != "bf16")
    throw Error::usage("act=" + text + ": " + id.op() + " computes in f32 or bf16");
  return {*precision_from_text(text)};
}

void demand_equality(TruthPart& part) {
  const Arithmetic arithmetic{part.type == ElementType::BF16 ? Precision::bf16 : Precision::f32};
  for (double& x : part.values) x = arithmetic.round(x);
  part.per_roundoff.clear();
  part.products.clear();
  part.absolute.clear();
  part.fine_digits = false;
}

}  // namespace assay
