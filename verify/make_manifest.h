// A checksum manifest of what lies at a path: from the digests its source already knows, or by reading a good
// copy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/checksum_manifest.h"
#include "core/system/progress.h"
#include "verify/expected/find.h"

namespace assay {

struct ManifestOptions {
  FindOptions find;
  bool hash = false;              // read the files
  std::uint64_t chunk_bytes = 0;  // with it, a digest for every so many bytes; implies reading
  bool everything = false;        // with `hash`: also what the source does not list
  std::function<bool(const std::string&)> left_out;  // names that are no part of it; none: all are
  std::optional<fs::path> state;  // with `hash`: what is known to be unchanged is not read again
  std::vector<fs::path> written;  // where the manifest and the report go: never listed in itself
  int jobs = 1;
  ProgressMode progress = ProgressMode::automatic;
};

struct MadeManifest {
  Expectation source;                // who said what, for the report
  ChecksumManifest manifest;         // sorted by name
  std::vector<std::string> omitted;  // no sha256 is known of them without reading
  Findings findings;                 // files left out because they are not what they should be, or unreadable
  std::uint64_t bytes_read = 0, bytes_known = 0;  // known: from the state file
  bool interrupted = false;
};

// A file that its source knows and that differs from it is left out with an error: a manifest must not bless
// damage.
MadeManifest make_manifest(const fs::path& path, const ManifestOptions& options);

}  // namespace assay
