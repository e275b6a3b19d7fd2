#include "convert/equal_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/formats/two_models.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::size_t kDifferencesShown = 20;

void check_tolerance(const Tolerance& tolerance) {
  const std::pair<const char*, double> kGiven[] = {
      {"--rtol", tolerance.relative}, {"--atol", tolerance.absolute}, {"--norm", tolerance.norm}};
  for (const auto& [option, value] : kGiven) {
    if (!(value >= 0) || std::isinf(value))
      throw Error::usage(fmt::format("{} takes a finite number from 0 up", option));
  }
  if (tolerance.norm > 0 && (tolerance.relative > 0 || tolerance.absolute > 0))
    throw Error::usage("--norm judges a tensor as a whole: --rtol and --atol do not go with it");
}

std::string within(const Tolerance& tolerance) {
  if (tolerance.exact()) return "";
  if (tolerance.norm > 0) return fmt::format(" within {:g} of the norm", tolerance.norm);
  if (tolerance.absolute == 0) return fmt::format(" within {:g}", tolerance.relative);
  return fmt::format(" within {:g} + {:g}·|a|", tolerance.absolute, tolerance.relative);
}

Json to_json(const EqualReport& report, const Tolerance& tolerance) {
  Json differences = Json::array();
  for (const Difference& difference : report.differences)
    differences.push_back(
        {{"tensor", difference.tensor}, {"what", difference.what}, {"largest", difference.largest}});
  return {{"schema", "assay.convert-equal/1"},
          {"equal", report.differences.empty() && !interrupted()},
          {"rtol", tolerance.relative},
          {"atol", tolerance.absolute},
          {"norm", tolerance.norm},
          {"tensors", report.tensors},
          {"elements", report.elements},
          {"notes", report.notes},
          {"differences", std::move(differences)}};
}

// Of two sets of weights in a folder one is compared.
void note_passed_over(const Side& side, std::string_view which, EqualReport& report) {
  for (const Finding& finding : side.checkpoint.findings) {
    if (finding.code == kTwoModels)
      report.notes.push_back(fmt::format("of the {}: {}: {}", which, finding.file, finding.message));
  }
}

}  // namespace

int run_equal(const fs::path& in, const fs::path& out, const EqualOptions& options, ProgressMode mode,
              const Output& output) {
  check_tolerance(options.tolerance);
  const Side a(in, options.jobs), b(out, options.jobs);
  EqualReport report;
  {
    std::uint64_t elements = 0;
    for (const LogicalTensor& tensor : a.stored.tensors) elements += tensor.elements();
    Progress progress(mode, "Comparing", elements);
    report = compare_values(a, b, options, progress);
    if (!interrupted()) compare_fused(a, b, options.jobs, report);
  }
  note_passed_over(a, "first", report);
  note_passed_over(b, "second", report);
  a.reader.check_unchanged();
  b.reader.check_unchanged();
  output.json(to_json(report, options.tolerance));
  for (const std::string& note : report.notes) output.line("note: " + escape_for_terminal(note));
  for (std::size_t i = 0; i < std::min(kDifferencesShown, report.differences.size()); ++i) {
    const Difference& difference = report.differences[i];
    output.line(fmt::format("{}: {}", escape_for_terminal(difference.tensor), difference.what));
  }
  if (interrupted()) return kExitInterrupted;
  const bool equal = report.differences.empty();
  output.paint(equal ? fmt::format("EQUAL{}: {} tensors, {} values", within(options.tolerance),
                                   report.tensors, with_thousands(report.elements))
                     : fmt::format("DIFFERENT: {} of {} tensors", report.differences.size(), report.tensors),
               equal ? Style::green : Style::red);
  return equal ? kExitOk : kExitCheckFailed;
}

}  // namespace assay
