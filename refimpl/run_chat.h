// `assay run MODEL --interactive`: a conversation on the terminal, a line a turn.
#pragma once

#include "refimpl/run_model.h"

namespace assay {

// Models without a known chat format simply go on from each line. Ends with the input; returns the exit code.
int chat(OpenModel& model, const RunSettings& settings);

}  // namespace assay
