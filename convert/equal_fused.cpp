// Two checkpoints that decode alike, and differ once engines have fused what they fuse.
#include <fmt/format.h>

#include <map>
#include <string>

#include "convert/equal.h"
#include "convert/fused_errors.h"

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

}  // namespace

void compare_fused(const Side& a, const Side& b, int jobs, EqualReport& report) {
  const Errors in_a = errors_of(a, jobs), in_b = errors_of(b, jobs);
  report_side(in_a, in_b, "first", report);
  report_side(in_b, in_a, "second", report);
}

}  // namespace assay
