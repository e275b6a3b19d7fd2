// A GGUF may hold all of a model, so that starting it afresh would be starting the conversion afresh. Its files are
// written, brought to disk and noted in the journal in sections, each some of the tensors in their order; killed at any
// moment, --resume goes on inside the file. Files that derived tensors are imported into are treated alike.
#pragma once

#include <vector>

#include "convert/plan.h"
#include "core/system/file.h"

namespace assay {

// OutputShard::part_of is the file, offsets are in it.
std::vector<OutputShard> sections_of(const OutputShard& file);

// What is in `folder` of no section: the header, and the zeros after the last tensor. Those between tensors are the
// holes between what is written.
void begin_file(const OutputShard& file, const fs::path& folder);

}  // namespace assay
