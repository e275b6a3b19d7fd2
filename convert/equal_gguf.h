// A GGUF against a checkpoint of transformers' names: the same values under other names, in another order.
#pragma once

#include "convert/equal.h"
#include "core/model/derived_tensor.h"

namespace assay {

// nullopt: not one of each kind, or the GGUF's architecture is not known; then names are compared as they
// are.
std::optional<EqualReport> compare_with_gguf(const Side& a, const Side& b, const EqualOptions& options,
                                             Progress& progress);

// A tensor of one side and what `maker` makes of the other's; nullopt: equal.
std::optional<Difference> compare_with_made(const Side& side, const LogicalTensor& own,
                                            const DerivedReader& maker, const DerivedTensor& made,
                                            bool made_first, const Tolerance& tolerance, Progress& progress);

}  // namespace assay
