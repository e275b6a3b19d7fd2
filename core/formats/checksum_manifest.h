// Checksum files: what sha256sum, `openssl dgst` and BSD tools write, and our own chunked manifest.
//
//   4d7a…2393  model.safetensors              coreutils, text mode
//   4d7a…2393 *model.safetensors              coreutils, binary mode
//   \4d7a…2393  odd\nname                     coreutils, escaped (\\ \n \r)
//   SHA256 (model.safetensors) = 4d7a…2393    BSD tag; "SHA2-256(name)= …" as openssl writes it
//   # comments and CRLF line ends are accepted
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/digest.h"
#include "core/system/finding.h"

namespace assay {

struct ManifestEntry {
  std::string name;
  Digest digest;
  std::optional<std::uint64_t> size;  // chunked manifests only
  std::vector<Digest> chunks;         // chunked manifests only: one a `chunk_bytes`, the last may be shorter
};

struct ChecksumManifest {
  std::vector<ManifestEntry> entries;  // in file order
  std::uint64_t chunk_bytes = 0;       // 0: a plain manifest
  Findings findings;                   // lines that are none of the above, names twice with different digests
};

// Names are returned as written; whether one may be used as a path is the caller's check
// (is_safe_relative_path).
ChecksumManifest parse_checksum_manifest(std::string_view text, const std::filesystem::path& source);
// Plain text of coreutils, or the chunked JSON document (schema "assay.manifest/1").
ChecksumManifest read_checksum_manifest(const std::filesystem::path& path);

// One line as `sha256sum` writes it, escaped where the name needs it, with '\n'.
std::string checksum_line(const Digest& digest, std::string_view name);

}  // namespace assay
