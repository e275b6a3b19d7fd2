// Explanation by a few single elements: a stray write, a race, a bit that turned over. All elements are
// looked at, not those of the sampled tokens alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/dumps/hypotheses.h"

namespace assay::dumps {
namespace {

constexpr std::size_t kMostStrays = 4;
constexpr std::size_t kShareOfStrays = 16;  // more than one: at most every 16th element

struct Stray {
  std::size_t at = 0;
  double distance = 0;
};

double distance(double ref, double test) {
  if (ref == test || (std::isnan(ref) && std::isnan(test))) return 0;
  const double d = std::fabs(test - ref);
  return std::isfinite(d) ? d : std::numeric_limits<double>::infinity();
}

// The elements that differ most, the worst first.
std::vector<Stray> worst_elements(const Activations& ref, const Activations& test) {
  std::vector<Stray> worst;
  for (std::size_t i = 0; i < test.values.size(); ++i) {
    const double d = distance(ref.values[i], test.values[i]);
    if (d == 0 || (worst.size() == kMostStrays && d <= worst.back().distance)) continue;
    const auto place =
        std::find_if(worst.begin(), worst.end(), [&](const Stray& s) { return s.distance < d; });
    worst.insert(place, {i, d});
    if (worst.size() > kMostStrays) worst.pop_back();
  }
  return worst;
}

// |TEST - REF| / |TEST| of all elements but the first `count` of `worst`.
double left_without(const Activations& ref, const Activations& test, const std::vector<Stray>& worst,
                    std::size_t count) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < test.values.size(); ++i) {
    const bool out = std::any_of(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count),
                                 [&](const Stray& s) { return s.at == i; });
    if (out) continue;
    const double d = distance(ref.values[i], test.values[i]);
    error += d * d;
    size += std::isfinite(test.values[i]) ? test.values[i] * test.values[i] : 0;
  }
  return error == 0 ? 0 : std::sqrt(error / size);
}

Diagnosis told(const Activations& ref, const Activations& test, std::vector<Stray> strays, double left) {
  std::sort(strays.begin(), strays.end(), [](const Stray& a, const Stray& b) { return a.at < b.at; });
  std::string which;
  for (const Stray& s : strays)
    which += fmt::format("{}token {}, column {} ({:.6g} in REF, {:.6g} in TEST)", which.empty() ? "" : "; ",
                         s.at / ref.width, s.at % ref.width, ref.values[s.at], test.values[s.at]);
  return {"elements",
          fmt::format("{} of {} elements {} off: {}; the others agree", strays.size(), ref.values.size(),
                      strays.size() == 1 ? "is" : "are", which),
          "a stray write, a race, or a bit that turned over", left};
}

}  // namespace

void search_elements(Search& search) {
  const Activations &ref = search.ref(), &test = search.test();
  const std::vector<Stray> worst = worst_elements(ref, test);
  for (std::size_t count = 1; count <= worst.size(); ++count) {
    if (count > 1 && count * kShareOfStrays > test.values.size()) return;
    const double left = left_without(ref, test, worst, count);
    if (!search.believes(left)) continue;
    const std::vector<Stray> strays(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count));
    return search.offer(told(ref, test, strays, left));
  }
}

}  // namespace assay::dumps
