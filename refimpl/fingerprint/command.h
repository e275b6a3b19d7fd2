// assay fingerprint URL: the hidden size of the model behind it.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_fingerprint(CLI::App& program, Action& action);

}  // namespace assay
