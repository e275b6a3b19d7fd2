// The JSON form of a checksum manifest, schema "assay.manifest/1" (core/formats/checksum_manifest.h shows
// one).
#pragma once

#include <filesystem>
#include <string_view>

#include "core/formats/checksum_manifest.h"

namespace assay {

inline constexpr std::string_view kManifestSchema = "assay.manifest/1";

// Throws Error::input for everything that breaks the schema: it is a file assay itself wrote. Read as a stream of
// events, in any order of keys: a digest of 67 characters is kept in 33 bytes, and the text goes as it is read.
ChecksumManifest parse_chunked_manifest(std::string_view text, const std::filesystem::path& source,
                                        const ManifestReading& reading = {});

}  // namespace assay
