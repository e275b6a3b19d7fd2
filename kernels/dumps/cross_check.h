// Taps held against other taps: is TEST's X really X? Every tap leaves a sample of its numbers, taken at the
// same places in all taps of one size, so that thousands of taps can be held against each other without being
// read again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/dumps/diagnose.h"

namespace assay::dumps {

struct TapSample {
  std::string name;
  std::size_t rows = 0, width = 0;
  std::vector<float> ref, test;
  bool failed = false;
  bool telling = false;  // neither side is vacuous
  double allowed = 0;    // what may be noise, relative
};
TapSample sample(std::string name, const Activations& ref, const Activations& test);

// For each sample: the reason why TEST's tap is another tap than its name says. Of taps that failed: it
// equals REF's tap Y ("mistagged", "layers_off", "swapped"). Of all: it repeats another tap of TEST although
// REF's two differ ("aliased": hooks that kept a buffer, not its numbers).
std::vector<std::optional<Diagnosis>> cross_check(const std::vector<TapSample>& samples);

}  // namespace assay::dumps
