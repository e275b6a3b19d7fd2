// Checksum files: what sha256sum, `openssl dgst` and BSD tools write, and our own chunked manifest.
//
//   4d7a…2393  model.safetensors              coreutils, text mode
//   4d7a…2393 *model.safetensors              coreutils, binary mode
//   \4d7a…2393  odd\nname                     coreutils, escaped (\\ \n \r)
//   SHA256 (model.safetensors) = 4d7a…2393    BSD tag; "SHA2-256(name)= …" as openssl writes it
//   4d7a…2393                                 in model.safetensors.sha256, or the only line: without a name
//   # comments, CRLF line ends and UTF-16 are accepted; so is what Windows prints (windows_checksums.h)
//
// A chunked manifest is JSON, so that a damaged range can be named without the good copy at hand:
//
//   {"schema": "assay.manifest/1", "chunk_bytes": 16777216,
//    "files": [{"name": "model.safetensors", "size": 20000000, "sha256": "4d7a…", "chunks": ["09af…",
//    "77c2…"]}]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/digest.h"
#include "core/system/compact.h"
#include "core/system/finding.h"
#include "core/system/memory_pages.h"

namespace assay {

struct ManifestEntry {
  std::string name;
  Digest digest;
  KnownSize size;  // chunked manifests only
  Box<std::vector<Digest>>
      chunks;  // chunked manifests only: one for every `chunk_bytes`, the last may be shorter
};

struct ChecksumManifest {
  std::vector<ManifestEntry> entries;  // in file order, every name once (the first of several)
  std::uint64_t chunk_bytes = 0;       // 0: a plain manifest
  bool nameless = false;               // the one entry has no name ("-"): it is of the one file that is meant
  Findings findings;                   // lines that are none of the above or not sha256, names given twice
};

// Plain text or the chunked JSON document, whichever `text` is. Throws Error::input where it holds no
// checksum at all, or is JSON that breaks the schema. Names are returned as written; whether one may be
// used as a path is the caller's check (is_safe_relative_path).
ChecksumManifest parse_checksum_manifest(std::string_view text, const std::filesystem::path& source);

// A list may name a million files: how to read one in little more than the room that its entries take.
struct ManifestReading {
  // Of a plain manifest, entries beyond the first thousand are dropped unless they are wanted; whether a
  // dropped name was given before is not asked.
  std::function<bool(std::string_view name)> wanted = {};
  PassingText* passing = nullptr;  // the text's memory: told what has been read
};
inline constexpr std::size_t kEntriesAlwaysKept = 1000;
ChecksumManifest parse_checksum_manifest(std::string_view text, const std::filesystem::path& source,
                                         const ManifestReading& reading);

// One line as `sha256sum` writes it, escaped where the name needs it, with '\n'. `digest` must be a sha256.
std::string checksum_line(const Digest& digest, std::string_view name);

// The chunked document, one file a line. Throws Error::input for names that are not UTF-8, which JSON cannot
// hold.
std::string render_chunked_manifest(const ChecksumManifest& manifest);

}  // namespace assay
