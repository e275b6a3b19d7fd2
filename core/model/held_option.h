// --engine, --tp, --ep and --dtype: the tensors of a model as an engine holds them (held_tensors.h).
#pragma once

#include "core/model/held_tensors.h"
#include "core/system/command_line.h"

namespace assay {

struct HeldSettings {
  HeldAs as;
  bool asked() const {
    return as.names != HeldNames::stored || as.grid.tp != 1 || as.grid.ep != 1 || as.type;
  }
};
// `settings` outlives the command.
void add_held_options(CLI::App& command, HeldSettings& settings);

}  // namespace assay
