// Layers of BART's kind, for models that have one side of it.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

// Layers below `path`; those of the side that writes attend to what was read, too.
Module bart_layers(const blocks::Decoder& d, const std::string& path, const std::string& title, bool writes);

}  // namespace assay::families
