// Faults planted in one call of a whole model: does the comparison name the layer and the tap?
//
// Every fault of mutants.h is planted in a call of its operation in the middle of the model (reference
// kernels otherwise), once; and what blocks are put together with (sums, factors, caps, parts of rows) is forgotten
// before each kind of tap. What has to be named is the first tap that is looked at after the call.
#pragma once

#include <string>
#include <vector>

#include "kernels/model_compare/model_compare.h"

namespace assay {

enum class MutantFate : std::uint8_t {
  named,     // by layer and tap
  misnamed,  // something else was
  missed,    // the planted call's result and a tap are off by more than rounding, and nothing was named
  idle,  // wherever it was planted, the call's result or what is behind it stayed within rounding of what it was
};
std::string_view name(MutantFate fate);

struct ModelMutantResult {
  std::string op, name, family;
  std::string expected;  // the first tap it changes; empty: none, or it cannot be planted here
  std::string named;     // by the comparison; empty: nothing
  double ratio = 0;      // of what was named, else of the expected tap
  MutantFate fate = MutantFate::idle;
};

// Of the request's test side only checkpoint and arithmetic count. Throws Error::usage on one that is not
// float32: faults are written for it.
std::vector<ModelMutantResult> run_model_mutants(const ModelCompareRequest& request);

}  // namespace assay
