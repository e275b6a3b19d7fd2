#include "kernels/dumps/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/dumps/align.h"
#include "kernels/dumps/hypotheses.h"

namespace assay::dumps {
namespace {

constexpr double kHardlyAnything = 0.02;  // of the tensor's norm: far below any fault, above 16-bit noise

double dot(const double* a, const double* b, std::size_t n) {
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += a[j] * b[j];
  return sum;
}

// What a factor may come of.
std::string familiar(double factor, std::size_t width) {
  const auto near = [&](double value) { return std::fabs(factor / value - 1) < 0.01; };
  if (near(-1)) return ": the sign is turned";
  for (const double root :
       {std::sqrt(static_cast<double>(width)), 1 / std::sqrt(static_cast<double>(width))}) {
    if (near(root))
      return fmt::format(": the {} of the width {}", root > 1 ? "root" : "reciprocal root", width);
  }
  for (std::size_t d = 16; d <= 576; d += 16) {
    if (near(std::sqrt(static_cast<double>(d)))) return fmt::format(": the root of {}", d);
    if (near(1 / std::sqrt(static_cast<double>(d)))) return fmt::format(": 1/√{}, a softmax scale", d);
  }
  return "";
}

void search_factors(Search& s) {
  const Activations &ref = s.ref(), &test = s.test();
  double product = 0, size = 0, sum = 0;
  for (const std::size_t i : s.rows()) {
    product += dot(ref.row(i), test.row(i), ref.width);
    size += dot(ref.row(i), ref.row(i), ref.width);
    for (std::size_t j = 0; j < ref.width; ++j) sum += test.row(i)[j] - ref.row(i)[j];
  }
  const double factor = product / size;
  s.attempt([&](std::size_t i, std::size_t j) { return factor * ref.row(i)[j]; },
            [&] {
              return Diagnosis{
                  "scaled",
                  fmt::format("every element is {:.6g} times REF's{}", factor, familiar(factor, ref.width)),
                  fmt::format("if that is meant, say scale={:.9g} in the map file", 1 / factor)};
            });
  const double offset = sum / static_cast<double>(s.rows().size() * ref.width);
  s.attempt([&](std::size_t i, std::size_t j) { return ref.row(i)[j] + offset; },
            [&] {
              return Diagnosis{"offset", fmt::format("every element is REF's plus {:.6g}", offset), ""};
            });
  if (ref.width >= 8) {
    std::vector<double> factors(test.rows, 1);
    for (const std::size_t i : s.rows()) {
      const double own = dot(ref.row(i), ref.row(i), ref.width);
      factors[i] = own > 0 ? dot(ref.row(i), test.row(i), ref.width) / own : 1;
    }
    s.attempt([&](std::size_t i, std::size_t j) { return factors[i] * ref.row(i)[j]; },
              [] {
                return Diagnosis{
                    "scaled_by_token",
                    "every token's vector is REF's times a factor of its own: a norm left out or done twice",
                    ""};
              });
  }
  if (s.rows().size() >= 4) {
    std::vector<double> factors(ref.width, 1);
    for (std::size_t j = 0; j < ref.width; ++j) {
      double with = 0, own = 0;
      for (const std::size_t i : s.rows()) {
        with += ref.row(i)[j] * test.row(i)[j];
        own += ref.row(i)[j] * ref.row(i)[j];
      }
      if (own > 0) factors[j] = with / own;
    }
    s.attempt([&](std::size_t i, std::size_t j) { return factors[j] * ref.row(i)[j]; },
              [] {
                return Diagnosis{"scaled_by_column",
                                 "every column is REF's times a factor of its own: a norm's weight left out, "
                                 "doubled, or another's",
                                 ""};
              });
  }
}

void search_tokens(Search& s) {
  const Activations &ref = s.ref(), &test = s.test();
  const auto rows = static_cast<std::ptrdiff_t>(ref.rows);
  for (const std::ptrdiff_t by : {1, -1, 2, -2}) {
    if (rows < 4) break;
    // Tokens without a counterpart are left out by being taken as right.
    s.attempt(
        [&](std::size_t i, std::size_t j) {
          const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(i) + by;
          return from < 0 || from >= rows ? test.row(i)[j] : ref.row(static_cast<std::size_t>(from))[j];
        },
        [&] {
          return Diagnosis{"shifted",
                           fmt::format("token t is REF's token t {} {}", by > 0 ? '+' : '-', std::abs(by)),
                           "positions, a BOS too many or too few, or a cache read one slot off"};
        });
  }
  if (ref.rows < 2 || ref.rows > 4096) return;
  const auto [a, b] = symbols_of(ref, test);
  const auto map = align(a, b);
  if (!map || map->identity || map->pairs.size() != ref.rows) return;
  std::vector<std::size_t> from(ref.rows);
  for (const auto& [r, t] : map->pairs) from[t] = r;
  s.attempt([&](std::size_t i, std::size_t j) { return ref.row(from[i])[j]; },
            [] {
              return Diagnosis{"tokens_permuted", "the tokens are REF's in another order",
                               "rows of a batch, or of a scatter, mixed up"};
            });
}

void search_transposed(Search& s) {
  const Activations& ref = s.ref();
  const std::size_t rows = ref.rows, width = ref.width;
  if (rows < 2 || width < 2) return;
  // [tokens, heads, dim] written as [heads, tokens, dim]; dim 1: the whole matrix transposed.
  for (std::size_t dim = 1; dim < width; ++dim) {
    if (width % dim != 0) continue;
    s.attempt(
        [&](std::size_t i, std::size_t j) {
          const std::size_t flat = i * width + j, head = flat / (rows * dim), rest = flat % (rows * dim);
          return ref.row(rest / dim)[head * dim + rest % dim];
        },
        [&] {
          return dim == 1
                     ? Diagnosis{"transposed", "the matrix is transposed: tokens run fastest",
                                 "say transpose=1,0 in the map file if the dump is meant so"}
                     : Diagnosis{"heads_before_tokens", fmt::format("it lies as [heads, tokens, {}]", dim),
                                 "say axes=head,token,dim in the map file if the dump is meant so"};
        });
  }
}

// Tokens, or columns, that were never written.
void search_holes(Search& s) {
  const Activations &ref = s.ref(), &test = s.test();
  std::vector<bool> full_column(test.width), row_zero(test.rows, true);
  for (std::size_t i = 0; i < test.rows; ++i) {
    for (std::size_t j = 0; j < test.width; ++j) {
      if (test.row(i)[j] == 0) continue;
      row_zero[i] = false;
      full_column[j] = true;
    }
  }
  const auto zero_rows = static_cast<std::size_t>(std::count(row_zero.begin(), row_zero.end(), true));
  const auto zero_columns =
      static_cast<std::size_t>(std::count(full_column.begin(), full_column.end(), false));
  const auto left = [&](const auto& is_zero) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < test.rows; ++i) {
      for (std::size_t j = 0; j < test.width; ++j) {
        const double t = test.row(i)[j], difference = is_zero(i, j) ? 0 : t - ref.row(i)[j];
        error += difference * difference;
        size += t * t;
      }
    }
    return std::sqrt(error / size);
  };
  if (zero_rows > 0) {
    const std::size_t first =
        static_cast<std::size_t>(std::find(row_zero.begin(), row_zero.end(), true) - row_zero.begin());
    s.offer({"tokens_zero",
             fmt::format("{} of {} tokens, the first of them token {}, are all zeros; the others agree",
                         zero_rows, test.rows, first),
             "rows never written", left([&](std::size_t i, std::size_t) { return row_zero[i]; })});
  }
  if (zero_columns > 0) {
    const std::size_t first = static_cast<std::size_t>(
        std::find(full_column.begin(), full_column.end(), false) - full_column.begin());
    s.offer({"columns_zero",
             fmt::format("{} of {} columns, from column {} on, are all zeros; the others agree", zero_columns,
                         test.width, first),
             "heads or a rank's part never written",
             left([&](std::size_t, std::size_t j) { return !full_column[j]; })});
  }
}

}  // namespace

double believable(double error, double allowed) {
  return std::min(std::max(3 * allowed, kHardlyAnything), 0.2 * error);
}

std::optional<Diagnosis> vacuous(const Activations& of, std::string_view whose) {
  if (of.values.empty()) return Diagnosis{"empty", fmt::format("{} has no elements", whose), "", 0};
  std::size_t zeros = 0, not_numbers = 0, same = 0;
  for (const double value : of.values) {
    zeros += value == 0 ? 1 : 0;
    not_numbers += std::isfinite(value) ? 0 : 1;
    same += value == of.values.front() ? 1 : 0;
  }
  const std::size_t all = of.values.size();
  if (zeros == all)
    return Diagnosis{"all_zero", fmt::format("{} is all zeros", whose),
                     "taken before it was computed, or of a buffer since cleared", 0};
  if (not_numbers == all)
    return Diagnosis{"not_numbers", fmt::format("{} holds no number, only NaN or Inf", whose),
                     "a buffer never written, or an overflow before", 0};
  if (same == all && all > 1 && of.width > 1)
    return Diagnosis{"constant", fmt::format("every element of {} is {:.6g}", whose, of.values.front()),
                     "taken before it was computed", 0};
  return std::nullopt;
}

std::optional<Diagnosis> diagnose(const Activations& ref, const Activations& test, double error,
                                  double allowed) {
  if (ref.rows != test.rows || ref.width != test.width || ref.values.empty()) return std::nullopt;
  Search search(ref, test, believable(std::isfinite(error) ? error : 1, allowed), allowed);
  search_holes(search);
  search_elements(search);
  search_factors(search);
  search_tokens(search);
  search_transposed(search);
  search_columns(search);
  return search.best();
}

std::optional<Diagnosis> diagnose_shapes(const Activations& ref, const Activations& test, double allowed) {
  const double limit = std::max(3 * allowed, kHardlyAnything);
  Activations expected;
  const auto left = [&](auto&& value_of) {
    expected.rows = test.rows;
    expected.width = test.width;
    expected.values.resize(test.values.size());
    for (std::size_t i = 0; i < test.rows; ++i) {
      for (std::size_t j = 0; j < test.width; ++j) expected.values[i * test.width + j] = value_of(i, j);
    }
    return Search(expected, test, limit, allowed).remaining([&](std::size_t i, std::size_t j) {
      return expected.row(i)[j];
    });
  };
  if (ref.rows == test.width && ref.width == test.rows &&
      left([&](std::size_t i, std::size_t j) { return ref.row(j)[i]; }) <= limit)
    return Diagnosis{"transposed", "the matrix is transposed: tokens run fastest",
                     "say transpose=1,0 in the map file if the dump is meant so", 0};
  if (ref.rows != test.rows || ref.width == 0 || test.width == 0) return std::nullopt;
  if (ref.width % test.width == 0) {
    for (std::size_t part = 0; part < ref.width / test.width; ++part) {
      if (left([&](std::size_t i, std::size_t j) { return ref.row(i)[part * test.width + j]; }) <= limit)
        return Diagnosis{
            "one_part",
            fmt::format("it is part {} of {} of REF's columns: one rank's", part + 1, ref.width / test.width),
            "dump all ranks, into folders tp0, tp1 …", 0};
    }
  }
  if (test.width % ref.width == 0) {
    const std::size_t times = test.width / ref.width;
    for (std::size_t dim = ref.width; dim >= 2; --dim) {
      if (ref.width % dim != 0) continue;
      if (left([&](std::size_t i, std::size_t j) { return ref.row(i)[j / (dim * times) * dim + j % dim]; }) <=
          limit)
        return Diagnosis{"heads_repeated",
                         fmt::format("every head of {} stands there {} times: taken after keys and values "
                                     "were repeated for grouped queries",
                                     dim, times),
                         "tap it before", 0};
    }
  }
  return std::nullopt;
}

}  // namespace assay::dumps
