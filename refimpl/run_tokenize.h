// assay tokenize MODEL [TEXT]: ids and pieces of a text, or the text of ids.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_tokenize(CLI::App& program, Action& action);

}  // namespace assay
