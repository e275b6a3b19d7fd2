// The JSON form of a checksum manifest, schema "assay.manifest/1" (core/formats/checksum_manifest.h shows
// one).
#pragma once

#include <filesystem>
#include <string_view>

#include "core/formats/checksum_manifest.h"

namespace assay {

inline constexpr std::string_view kManifestSchema = "assay.manifest/1";

// Is it such a document, of any version, as its own keys tell: its "schema", or a list of "files" (no listing of
// a hub has one)? Read as a stream, up to the key that decides. False of what is not JSON.
bool is_chunked_manifest(std::string_view text);

// Throws Error::input for everything that breaks the schema: it is a file assay itself wrote. Read as a stream of
// events, in any order of keys: a digest of 67 characters is kept in 33 bytes, and the text goes as it is read.
ChecksumManifest parse_chunked_manifest(std::string_view text, const std::filesystem::path& source,
                                        const ManifestReading& reading = {});

}  // namespace assay
