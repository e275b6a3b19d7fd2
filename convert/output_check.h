// Will the output be the model that its own config.json describes? Asked of the plan, before a byte is
// written: a loader fills in at random what it does not find by name.
#pragma once

#include <string>
#include <vector>

#include "convert/plan.h"
#include "core/system/finding.h"

namespace assay {

// `root`: where the output will lie; `config`: the text of its config.json.
// `partial_source`: the source is known to lack tensors, which are then warned of. Errors are
// convert.not_the_model; an architecture that is not known gives a note, convert.not_reconciled.
Findings check_output_against_config(const ConversionPlan& plan, const fs::path& root,
                                     const std::string& config, bool partial_source);

}  // namespace assay
