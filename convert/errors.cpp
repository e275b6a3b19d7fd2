#include "convert/errors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr std::size_t kLanes = 8;  // independent sums: the compiler may keep them in vectors

double total(const std::array<double, kLanes>& lanes) {
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

void ErrorSums::add(std::span<const float> before, std::span<const float> after) {
  std::array<double, kLanes> errors{}, befores{}, afters{}, dots{}, largest{};
  const auto take = [&](std::size_t i, std::size_t lane) {
    const double x = before[i], y = after[i], e = y - x;
    errors[lane] += e * e;
    befores[lane] += x * x;
    afters[lane] += y * y;
    dots[lane] += x * y;
    largest[lane] = std::max(largest[lane], std::abs(e));
  };
  const std::size_t whole = before.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(i + lane, lane);
  }
  for (std::size_t i = whole; i < before.size(); ++i) take(i, i - whole);
  error_squares += total(errors);
  before_squares += total(befores);
  after_squares += total(afters);
  products += total(dots);
  largest_error = std::max(largest_error, *std::max_element(largest.begin(), largest.end()));
  elements += before.size();
}

void ErrorSums::add(const ErrorSums& other) {
  error_squares += other.error_squares;
  before_squares += other.before_squares;
  after_squares += other.after_squares;
  products += other.products;
  largest_error = std::max(largest_error, other.largest_error);
  elements += other.elements;
  clamped += other.clamped;
  zero_blocks += other.zero_blocks;
}

double ErrorSums::relative_frobenius() const {
  if (error_squares == 0) return 0;
  return std::sqrt(error_squares / before_squares);
}

double ErrorSums::sqnr_db() const {
  if (error_squares == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(before_squares / error_squares);
}

double ErrorSums::one_minus_cosine() const {
  if (error_squares == 0) return 0;
  return 1 - products / (std::sqrt(before_squares) * std::sqrt(after_squares));
}

Json to_json(const ErrorSums& sums) {
  Json json = {{"relative_frobenius", sums.relative_frobenius()},
               {"max_abs", sums.largest_error},
               {"one_minus_cosine", sums.one_minus_cosine()},
               {"clamped", sums.clamped},
               {"zero_blocks", sums.zero_blocks},
               {"elements", sums.elements},
               {"sums",
                {{"error", sums.error_squares},
                 {"before", sums.before_squares},
                 {"after", sums.after_squares},
                 {"product", sums.products}}}};
  json["sqnr_db"] = sums.error_squares == 0 ? Json(nullptr) : Json(sums.sqnr_db());  // no number is infinite
  return json;
}

ErrorSums error_sums_from_json(const Json& json) {
  ErrorSums sums;
  sums.error_squares = json.at("sums").at("error").get<double>();
  sums.before_squares = json.at("sums").at("before").get<double>();
  sums.after_squares = json.at("sums").at("after").get<double>();
  sums.products = json.at("sums").at("product").get<double>();
  sums.largest_error = json.at("max_abs").get<double>();
  sums.clamped = json.at("clamped").get<std::uint64_t>();
  sums.zero_blocks = json.at("zero_blocks").get<std::uint64_t>();
  sums.elements = json.at("elements").get<std::uint64_t>();
  return sums;
}

}  // namespace assay
