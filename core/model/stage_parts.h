// Which stage of a pipeline has what.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/module_tree.h"
#include "core/model/parallel_cut.h"

namespace assay {

// It makes what enters the first layer, and lies in the first stage; else it stands behind the last one.
bool feeds_first_layer(const TensorSpec& spec);

// The layers an occurrence repeats over; {0} where it stands outside layers.
std::vector<std::uint64_t> layers_of(const Occurrence& where);

// How many of them lie in the stage of layers `stage`; what stands outside layers belongs to the first stage (the
// embedding) or the last (final norm and head), and counts as one.
std::vector<std::uint64_t> layers_in_stage(const TensorSpec& spec, const Occurrence& where,
                                           const IndexRange& stage, bool first, bool last);

}  // namespace assay
