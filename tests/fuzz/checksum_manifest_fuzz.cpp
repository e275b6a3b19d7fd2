#include "core/formats/checksum_manifest.h"

#include <set>

#include "tests/fuzz/fuzz.h"

using namespace assay;

namespace {

bool same_entries(const ChecksumManifest& a, const ChecksumManifest& b) {
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const ManifestEntry& x, const ManifestEntry& y) {
                      return x.name == y.name && x.digest == y.digest && x.size == y.size &&
                             x.chunks == y.chunks;
                    });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = [](std::string_view text) {
    return fuzz::accepted([&] { return parse_checksum_manifest(text, "SUMS"); });
  };
  const auto manifest = read(fuzz::as_text(data, size));
  if (!manifest) return 0;
  std::set<std::string> names;
  std::string written;
  for (const ManifestEntry& entry : manifest->entries) {
    fuzz::require(!entry.name.empty() && names.insert(entry.name).second, "names are there, and once");
    written += checksum_line(entry.digest, entry.name);
  }
  if (manifest->chunk_bytes != 0) written = render_chunked_manifest(*manifest);
  if (manifest->entries.empty() && manifest->chunk_bytes == 0)
    fuzz::require(false, "a plain manifest has an entry");
  const auto again = read(written);
  fuzz::require(again && same_entries(*again, *manifest), "what was read can be written and read");
  fuzz::require(again->findings.empty(), "what we write is clean");
  return 0;
}
