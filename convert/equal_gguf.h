// A GGUF against a checkpoint of transformers' names: the same values under other names, in another order.
#pragma once

#include "convert/equal.h"

namespace assay {

// nullopt: not one of each kind, or the GGUF's architecture is not known; then names are compared as they
// are.
std::optional<EqualReport> compare_with_gguf(const Side& a, const Side& b, const EqualOptions& options,
                                             Progress& progress);

}  // namespace assay
