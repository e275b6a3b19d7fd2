#include "kernels/harness/operand_rounding.h"

#include <algorithm>
#include <cmath>

#include "kernels/harness/made_weight.h"

namespace assay {
namespace {

constexpr double kSigmas = 6;

double step_of(const OperandRounding& rounding, double x, double largest) {
  if (largest == 0) return 0;
  switch (rounding.step) {
    case OperandRounding::Step::power_of_two: return std::ldexp(1.0, std::ilogb(largest) - rounding.bits + 1);
    case OperandRounding::Step::part_of_largest: return largest / (std::ldexp(1.0, rounding.bits) - 1);
    case OperandRounding::Step::e4m3: break;
  }
  const double scale = largest / 448;
  const int exponent = x == 0 ? -6 : std::max(-6, std::ilogb(x / scale));
  return std::ldexp(scale, exponent - rounding.bits);
}

// Σ_k a[t, k] · b[o, k]
std::vector<double> product(ReferenceOps& wide, const Filled& a, std::vector<float> b) {
  const std::size_t outputs = a.columns == 0 ? 0 : b.size() / a.columns;
  const MadeWeight weight(std::move(b), outputs, a.columns);
  return wide.download(run_reference(wide, LinearCall{upload(wide, a), weight.view(), {}, {}}));
}

Filled squares(Filled x) {
  for (double& value : x.values) value *= value;
  return x;
}
std::vector<float> squares(std::vector<float> w) {
  for (float& value : w) value *= value;
  return w;
}

}  // namespace

std::vector<double> steps_of(const OperandRounding& rounding, std::span<const double> row) {
  const std::size_t group = rounding.group == 0 ? std::max<std::size_t>(1, row.size()) : rounding.group;
  std::vector<double> steps;
  for (std::size_t first = 0; first < row.size(); first += group) {
    const std::span part = row.subspan(first, std::min(group, row.size() - first));
    double largest = 0;
    for (const double x : part) largest = std::max(largest, std::fabs(x));
    for (const double x : part) steps.push_back(step_of(rounding, x, largest));
  }
  return steps;
}

Unrounded unrounded_product(ReferenceOps& wide, const Filled& x, const std::vector<float>& w,
                            const RoundedOperands& how) {
  Unrounded result;
  result.values = product(wide, x, w);
  Filled steps = {x.rows, x.columns, {}};
  for (std::size_t t = 0; t < x.rows; ++t) {
    const std::vector<double> row =
        steps_of(how.inputs, std::span(x.values).subspan(t * x.columns, x.columns));
    steps.values.insert(steps.values.end(), row.begin(), row.end());
  }
  std::vector<double> variances = product(wide, squares(std::move(steps)), squares(w));
  if (how.weights) {
    std::vector<float> w_steps;
    for (std::size_t first = 0; first < w.size(); first += x.columns) {
      const std::vector<double> row(w.begin() + static_cast<std::ptrdiff_t>(first),
                                    w.begin() + static_cast<std::ptrdiff_t>(first + x.columns));
      const std::vector<double> of_row = steps_of(*how.weights, row);
      w_steps.insert(w_steps.end(), of_row.begin(), of_row.end());
    }
    const std::vector<double> more = product(wide, squares(x), squares(std::move(w_steps)));
    for (std::size_t i = 0; i < more.size(); ++i) variances[i] += more[i];
  }
  for (const double v : variances) result.allowed.push_back(kSigmas * std::sqrt(v / 12));
  return result;
}

}  // namespace assay
