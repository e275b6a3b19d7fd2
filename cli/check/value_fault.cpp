#include "cli/check/value_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

// Rows looked at to recognize a tensor by; values that agree so far are the same tensor's, rounded or not.
constexpr std::uint64_t kRowsToRecognize = 8;
constexpr double kSameCosine = 0.95;
// A cause explains a fault when what remains is this much smaller.
constexpr double kExplains = 0.3;

std::vector<float> first_rows(const CheckpointReader& reader, const LogicalTensor& tensor,
                              std::uint64_t rows) {
  std::vector<float> values(rows * tensor.columns);
  StoredReader(reader, tensor).decode_rows(0, rows, values);
  return values;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  ValueError error;
  error.add(a, b);
  return error.cosine();
}

// The tensor of `there` whose values these are: exchanged experts, layers, projections.
std::string other_tensor(const Side& here, const LogicalTensor& tensor, const Side& there) {
  const std::uint64_t rows = std::min(kRowsToRecognize, tensor.all_rows());
  const std::vector<float> values = first_rows(here.reader, tensor, rows);
  for (const LogicalTensor& other : there.stored.tensors) {
    if (other.shape != tensor.shape || other.name == tensor.name || !is_decodable(other) || interrupted())
      continue;
    if (cosine(values, first_rows(there.reader, other, rows)) > kSameCosine) return other.name;
  }
  return {};
}

bool has_square_grid(const LogicalTensor& tensor) {
  const std::uint64_t grid = tensor.scale_rows();
  return tensor.form.kind == FormKind::scaled && !tensor.form.transposed && grid >= 2 &&
         grid == tensor.scale_columns();
}

// Were rows and columns of the grid of scales exchanged? Of the side that has scales, a value becomes
// a · s(j, i) / s(i, j) when they are exchanged (back): does it then agree with the other side's?
bool has_transposed_scales(const Side& here, const LogicalTensor& tensor, const Side& there,
                           const LogicalTensor& intended) {
  const bool own = has_square_grid(tensor);
  if (!own && !has_square_grid(intended)) return false;
  const LogicalTensor& scaled = own ? tensor : intended;
  const StoredReader of_scaled((own ? here : there).reader, scaled);
  const StoredReader of_other((own ? there : here).reader, own ? intended : tensor);
  const std::uint64_t grid = scaled.scale_rows();
  std::vector<float> scales(grid * grid), a(scaled.columns), b(scaled.columns), transposed(scaled.columns);
  ValueError as_it_is, exchanged;
  for (std::uint64_t row = 0; row < scaled.all_rows(); ++row) {
    const std::uint64_t in_slice = row % scaled.rows;
    if (in_slice == 0) of_scaled.decode_scales(row / scaled.rows * grid, grid, scales);
    of_scaled.decode_rows(row, 1, a);
    of_other.decode_rows(row, 1, b);
    const std::uint64_t i = in_slice / scaled.form.block_rows;
    for (std::uint64_t c = 0; c < scaled.columns; ++c) {
      const std::uint64_t j = c / scaled.form.block_columns;
      transposed[c] = a[c] / scales[i * grid + j] * scales[j * grid + i];
    }
    as_it_is.add(a, b);
    exchanged.add(transposed, b);
  }
  return exchanged.relative() < kExplains * as_it_is.relative();
}

// f where the values are f × what they should be.
double constant_factor(const ValueError& error) {
  if (!(error.own > 0) || !(error.squares > 0) || error.cosine() < 0.999) return 1;
  return error.product / error.squares;
}

std::string rows_that_differ(const Side& here, const LogicalTensor& tensor, const Side& there,
                             const LogicalTensor& intended, double usual) {
  const StoredReader reader(here.reader, tensor), right(there.reader, intended);
  std::vector<float> a(tensor.columns), b(tensor.columns);
  std::uint64_t differing = 0, first = 0;
  for (std::uint64_t row = 0; row < tensor.all_rows(); ++row) {
    reader.decode_rows(row, 1, a);
    right.decode_rows(row, 1, b);
    ValueError error;
    error.add(a, b);
    if (!(error.relative() > usual)) continue;
    if (differing++ == 0) first = row;
  }
  if (differing == tensor.all_rows()) return "all of its rows differ";
  return fmt::format("{} of its {} rows differ, from row {} on", differing, tensor.all_rows(), first);
}

}  // namespace

std::string explain_fault(const Side& here, const LogicalTensor& tensor, const Side& there,
                          const LogicalTensor& intended, const ValueError& error) {
  if (!std::isfinite(error.error)) return "it holds values that are not finite";
  if (const double factor = constant_factor(error); std::abs(factor - 1) > 1e-3)
    return fmt::format("all of it is {:.4g} × what it should be", factor);
  if (has_transposed_scales(here, tensor, there, intended)) return "its grid of scales is stored transposed";
  if (error.cosine() < kSameCosine) {
    if (const std::string other = other_tensor(here, tensor, there); !other.empty())
      return "it holds the values of " + other;
  }
  return rows_that_differ(here, tensor, there, intended, 0.05 * error.relative());
}

}  // namespace assay
