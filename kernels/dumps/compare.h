// Two dumps, tap by tap in forward order: how far apart, where first, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/system/file.h"
#include "kernels/dumps/diagnose.h"
#include "kernels/dumps/limits.h"

namespace assay::dumps {

struct CompareRequest {
  fs::path ref, test, map, yardstick;  // the last two may be empty
  std::string include, exclude;        // names of taps, after the map
  std::optional<double> rtol;
  int jobs = 1;
};

struct TapResult {
  std::string name;
  ForwardKey key;
  CaseStatus status = CaseStatus::skipped;
  std::optional<Diagnosis> diagnosis;
  ElementType ref_type = ElementType::F32, test_type = ElementType::F32;  // as stored
  ElementType precision = ElementType::F32;  // what a derived limit was derived from
  std::size_t rows = 0, width = 0;           // compared
  std::size_t rows_left_out = 0;             // tokens that only one of the two has
  Limit limit;
  TapError error;
  double ref_value = 0, test_value = 0;  // of the worst element
  std::string note;                      // how it was read
  double share_over() const;             // of the elements
  bool said_no() const { return status == CaseStatus::failed || status == CaseStatus::mistrusted; }
};

struct DumpComparison {
  std::vector<TapResult> taps;              // in forward order
  std::vector<std::string> missing, extra;  // of TEST
  std::vector<std::string> holes;           // of the missing: TEST has the same of other layers
  std::vector<std::string> notes;           // alignment, what was left aside
  std::string vacuous;                      // why the whole proves nothing; empty: it does not
  // How the two dumps' tokens differ: surely, or so that numbers that differ are no wonder. Empty: they do
  // not, or no number is the worse for it.
  std::string inputs;
  ElementType precision = ElementType::F32;
  std::size_t tokens = 0;
  std::vector<double> token_heat;  // of each token the largest error/limit of all taps
  const TapResult* first_divergence() const;
  std::size_t count(CaseStatus status) const;
  bool good() const;
};

// Throws Error::input for dumps and maps that cannot be read.
DumpComparison compare_dumps(const CompareRequest& request);

}  // namespace assay::dumps
