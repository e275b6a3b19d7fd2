// Faults of recurrent layers, planted in whole models (kernels/model_compare): their operations have no kernels to
// examine one by one.
#pragma once

#include <vector>

#include "kernels/harness/mutants.h"

namespace assay {

template <>
std::vector<Mutant<ConvolutionCall>> mutants_of();
template <>
std::vector<Mutant<DeltaRuleCall>> mutants_of();
template <>
std::vector<Mutant<StateSpaceCall>> mutants_of();
template <>
std::vector<Mutant<GatedNormCall>> mutants_of();
template <>
std::vector<Mutant<OutputGateCall>> mutants_of();

}  // namespace assay
