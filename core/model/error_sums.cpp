#include "core/model/error_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/system/json.h"

namespace assay {

void ErrorSums::add(std::span<const float> before, std::span<const float> after) {
  add(difference_sums(before.data(), after.data(), before.size()), before.size());
}

// With y = x + e: Σy² = Σx² + 2Σxe + Σe², Σxy = Σx² + Σxe.
void ErrorSums::add(const DifferenceSums& sums, std::uint64_t of_elements) {
  error_squares += sums.error_squares;
  before_squares += sums.before_squares;
  after_squares += std::max(0.0, sums.before_squares + 2 * sums.products + sums.error_squares);
  products += sums.before_squares + sums.products;
  largest_error = std::max(largest_error, sums.largest);
  elements += of_elements;
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
