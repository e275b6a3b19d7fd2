#include "kernels/harness/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "core/system/error.h"
#include "kernels/harness/normal_numbers.h"

namespace assay {
namespace {

// Some 1 in 32 channels, and no fewer than one, is an outlier.
std::vector<float> channel_gains(std::uint64_t columns, InputStream& stream) {
  std::vector<float> gains(columns, 1.0F);
  const std::uint64_t outliers = std::max<std::uint64_t>(1, columns / 32);
  for (std::uint64_t i = 0; i < outliers && columns > 0; ++i) {
    const auto at = static_cast<std::size_t>(stream.next() % columns);
    gains[at] = static_cast<float>(20.0 + 80.0 * stream.uniform());
  }
  return gains;
}

// Rows and columns each have a pattern that repeats after a prime number of places, so that no shift by a
// tile or a warp maps one onto another.
float signature_of(std::uint64_t row, std::uint64_t column) {
  const double row_part = static_cast<double>(row * 37 % 1009) / 1009.0 + 0.25;
  const double column_part = static_cast<double>(column * 53 % 2003) / 2003.0 - 0.5;
  return static_cast<float>(row_part * column_part);
}

}  // namespace

std::string_view name(InputKind kind) {
  switch (kind) {
    case InputKind::exact: return "exact";
    case InputKind::zero_mean: return "zero";
    case InputKind::positive_mean: return "positive";
    case InputKind::heavy_tailed: return "heavy";
    case InputKind::large: return "large";
    case InputKind::one_hot: return "onehot";
    case InputKind::signature: return "signature";
  }
  return "";
}

constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ull;  // SplitMix64

void InputStream::skip(std::uint64_t count) {
  state_ += count * kStep;
}

std::uint64_t InputStream::next() {
  std::uint64_t z = (state_ += kStep);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

double InputStream::uniform() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

double InputStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::int64_t InputStream::integer(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
}

ExactFill exact_fill(std::uint64_t terms, int digits, std::int64_t largest_code) {
  if (digits < 2 || digits > 52 || largest_code < 1) throw Error::internal("no exact fill for such a type");
  const double capacity = std::ldexp(1.0, digits);
  const double count = static_cast<double>(std::max<std::uint64_t>(1, terms));
  ExactFill fill;
  // Magnitudes first, down to 4: zeros cost more power than small codes do.
  fill.largest = largest_code;
  while (fill.largest > 4 && count * static_cast<double>(fill.largest * fill.largest) > capacity)
    fill.largest /= 2;
  fill.density = std::min(1.0, capacity / (count * static_cast<double>(fill.largest * fill.largest)));
  // Zeros keep the sums short, and so faults gross: a quarter of the elements is enough of them.
  fill.density = std::min(fill.density, terms > 16 ? 0.25 : 1.0);
  return fill;
}

namespace {

void fill_exactly(const FillOptions& options, InputStream& stream, std::span<float> values) {
  const ExactFill exact = exact_fill(options.terms, options.digits, options.largest_code);
  for (float& value : values)
    value = stream.uniform() < exact.density
                ? static_cast<float>(stream.integer(-exact.largest, exact.largest))
                : 0.0F;
}

// mean + spread · normal, rounded once.
void fill_normally(double mean, double spread, const InputStream& stream, std::span<float> values) {
  const NormalNumbers numbers = normal_numbers(stream.state(), values.size());
  std::transform(values.begin(), values.end(), numbers->begin(), values.begin(),
                 [&](float, double x) { return static_cast<float>(mean + spread * x); });
}

void fill_with_outliers(const FillOptions& options, InputStream& stream, std::span<float> values) {
  const std::vector<float> gains = channel_gains(options.columns, stream);
  fill_normally(0, 1, stream, values);
  for (std::size_t at = 0; at < values.size(); at += gains.size())
    for (std::size_t column = 0; column < gains.size(); ++column) values[at + column] *= gains[column];
}

void fill_rows(const FillOptions& options, std::span<float> values,
               const std::function<float(std::uint64_t row, std::uint64_t column)>& of) {
  float* value = values.data();
  for (std::uint64_t row = 0; row < options.rows; ++row)
    for (std::uint64_t column = 0; column < options.columns; ++column) *value++ = of(row, column);
}

}  // namespace

void fill_inputs(InputKind kind, const FillOptions& options, std::span<float> values) {
  if (values.size() != options.rows * options.columns)
    throw Error::internal(
        fmt::format("{} inputs for [{}, {}]", values.size(), options.rows, options.columns));
  if (ShapesOnly::asked()) return std::fill(values.begin(), values.end(), 0.0F);
  InputStream stream(options.seed * 0xD1342543DE82EF95ull + static_cast<std::uint64_t>(kind));
  switch (kind) {
    case InputKind::exact: fill_exactly(options, stream, values); break;
    case InputKind::zero_mean: fill_normally(0, 1, stream, values); break;
    case InputKind::positive_mean: fill_normally(1, 0.1, stream, values); break;
    case InputKind::large: fill_normally(0, 30, stream, values); break;
    case InputKind::heavy_tailed: fill_with_outliers(options, stream, values); break;
    case InputKind::one_hot:
      // 61 is prime to the usual widths: rows walk through all columns, tiles and blocks.
      fill_rows(options, values, [&](std::uint64_t row, std::uint64_t column) {
        return column == (row * 61 + options.seed) % options.columns ? 1.0F : 0.0F;
      });
      break;
    case InputKind::signature: fill_rows(options, values, signature_of); break;
  }
  if (options.halvings == 0) return;
  const double factor = std::ldexp(1.0, -options.halvings);
  for (float& value : values) value = static_cast<float>(value * factor);
}

namespace {
thread_local int shapes_only = 0;
}

ShapesOnly::ShapesOnly() {
  ++shapes_only;
}
ShapesOnly::~ShapesOnly() {
  --shapes_only;
}
bool ShapesOnly::asked() {
  return shapes_only != 0;
}

}  // namespace assay
