// Names that huggingface_hub gives to files it keeps: digests, and what is left of an interrupted download.
#pragma once

#include <optional>
#include <string_view>

#include "core/formats/digest.h"

namespace assay {

// 64 lower-case hex digits: a sha256; 40: a git object id; anything else names no content.
std::optional<Digest> digest_named(std::string_view name);

// "<etag>.incomplete", "<etag>.<8 hex>.incomplete", "<hash>.<etag>.incomplete": the digest of what was to be
// there.
bool is_incomplete(std::string_view name);
std::optional<Digest> digest_of_incomplete(std::string_view name);

}  // namespace assay
