// The JSON of a safetensors header, read as a stream of events: no document is built, and the text may go as it
// is read, so that what stays is the tensors. Offsets are not judged here; core/formats/safetensors.cpp does
// that.
#pragma once

#include <string_view>

#include "core/formats/safetensors.h"
#include "core/system/memory_pages.h"

namespace assay::safetensors {

// Appends to `header` the tensors in the order of the text, its metadata, and, under Reading::reference, what
// it holds that the specification forbids and the reference reader accepts. `json` begins at byte 8 of
// `source`. `passing`, if any, is that text's memory: it is told what has been read.
void read_header_json(std::string_view json, Reading reading, const fs::path& source, Header& header,
                      PassingText* passing = nullptr);

}  // namespace assay::safetensors
