#include "refimpl/models/sine_positions.h"

#include <cmath>

namespace assay {
namespace {

double sine_angle(SineForm form, std::size_t place, std::size_t pair, std::size_t width) {
  constexpr double kBase = 10000;
  const double p = static_cast<double>(place), j = static_cast<double>(pair);
  if (form == SineForm::ctrl) return p / std::pow(kBase, 2 * j / static_cast<double>(width));
  return p * std::exp(-j * std::log(kBase) / (static_cast<double>(width / 2) - 1));
}

}  // namespace

OwnWeight sine_positions(SineForm form, std::size_t rows, std::size_t width,
                         std::optional<std::size_t> silent) {
  const std::size_t sines = form == SineForm::ctrl ? (width + 1) / 2 : width / 2, cosines = width / 2;
  OwnWeight table;
  table.name = "positions";
  table.rows = rows;
  table.columns = width;
  table.values.resize(rows * width);
  for (std::size_t row = 0; row < rows; ++row) {
    if (silent == row) continue;
    double* at = table.values.data() + row * width;
    for (std::size_t j = 0; j < sines; ++j) at[j] = std::sin(sine_angle(form, row, j, width));
    for (std::size_t j = 0; j < cosines; ++j) at[sines + j] = std::cos(sine_angle(form, row, j, width));
  }
  return table;
}

}  // namespace assay
