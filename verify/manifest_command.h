// `assay manifest PATH`: a checksum file that `sha256sum -c` reads, or a chunked one.
#pragma once

#include "core/system/command_line.h"

namespace assay {

void add_manifest(CLI::App& program, Action& action);

}  // namespace assay
