// What a user should know of a model before its numbers are believed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"

namespace assay {

// Of the config: keys that nobody reads, a head that is stored though config.json ties it. Of the precision:
// what the weights and the selection of kernels leave of it (precision_note.h). Lines for "note: …".
std::vector<std::string> model_notes(const Weights& weights, Precision precision, std::string_view kernels);

}  // namespace assay
