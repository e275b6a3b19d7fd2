// The JSON of a safetensors header, read as a stream of events: no document is built, so memory stays within
// a small multiple of the text however it is made. Offsets are not judged here; core/formats/safetensors.cpp
// does that.
#pragma once

#include <string_view>

#include "core/formats/safetensors.h"

namespace assay::safetensors {

// Appends to `header` the tensors in the order of the text, its metadata, and, under Reading::reference, what
// it holds that the specification forbids and the reference reader accepts. `json` begins at byte 8 of
// `source`.
void read_header_json(std::string_view json, Reading reading, const fs::path& source, Header& header);

}  // namespace assay::safetensors
