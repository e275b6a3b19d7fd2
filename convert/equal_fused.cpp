// Two checkpoints that decode alike, and differ once engines have fused what they fuse.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "convert/equal.h"
#include "convert/fused_errors.h"
#include "convert/fused_inputs.h"

namespace assay {
namespace {

using Errors = std::map<std::string, FusedError>;  // by set

Errors errors_of(const Side& side, int jobs) {
  Errors errors;
  if (side.checkpoint.container != Checkpoint::Container::safetensors) return errors;
  for (FusedError& error : find_fused_errors(side.reader, side.stored, jobs).errors)
    errors.emplace(error.set, std::move(error));
  return errors;
}

// What `errors` has and `others` has not in the same measure.
void report_side(const Errors& errors, const Errors& others, std::string_view which, EqualReport& report) {
  std::uint64_t rounded = 0;
  double most = 0;
  for (const auto& [set, error] : errors) {
    const auto other = others.find(set);
    if (other != others.end() && other->second.error == error.error) continue;
    if (!error.rounded_again) {
      report.differences.push_back(
          {error.tensor,
           fmt::format("fused by engines, the {}'s is {:.3g} off: {} have scales that differ", which,
                       error.error, set),
           error.error});
      continue;
    }
    ++rounded;
    most = std::max(most, error.error);
  }
  if (rounded > 0) {
    report.notes.push_back(
        fmt::format("{} sets of the {} are rounded again by engines that fuse them, under "
                    "the largest of scales that differ: up to {:.3g} off",
                    rounded, which, most));
  }
}

using Factors = std::map<std::string, double>;  // by set

Factors input_factors_of(const Side& side) {
  Factors factors;
  if (side.checkpoint.container != Checkpoint::Container::safetensors) return factors;
  for (const FusedInput& input : find_fused_inputs(side.reader, side.stored).differing)
    factors.emplace(input.set, input.factor);
  return factors;
}

void report_inputs(const Factors& factors, const Factors& others, std::string_view which,
                   EqualReport& report) {
  std::uint64_t sets = 0;
  double most = 1;
  for (const auto& [set, factor] : factors) {
    const auto other = others.find(set);
    if (other != others.end() && other->second == factor) continue;
    ++sets;
    most = std::max(most, factor);
  }
  if (sets > 0)
    report.notes.push_back(
        fmt::format("inputs of {} sets of the {} are scaled, by engines that fuse them, by the largest of "
                    "static scales that differ: up to {:.3g} times a member's own",
                    sets, which, most));
}

}  // namespace

void compare_fused(const Side& a, const Side& b, int jobs, EqualReport& report) {
  const Errors in_a = errors_of(a, jobs), in_b = errors_of(b, jobs);
  report_side(in_a, in_b, "first", report);
  report_side(in_b, in_a, "second", report);
  const Factors inputs_a = input_factors_of(a), inputs_b = input_factors_of(b);
  report_inputs(inputs_a, inputs_b, "first", report);
  report_inputs(inputs_b, inputs_a, "second", report);
}

}  // namespace assay
