// A saved listing of a hub's files, in any of the forms that are read, and the names and digests in it.
// link: assay_verify
#include "tests/fuzz/fuzz.h"
#include "verify/expected/hub_listing.h"
#include "verify/expected/hub_names.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (const auto digest = digest_named(text))
    fuzz::require(digest->hex().size() == text.size(), "a digest is its name");
  if (digest_of_incomplete(text))
    fuzz::require(is_incomplete(text), "only leftovers have a digest of what they miss");
  const auto listing = fuzz::accepted([&] { return parse_hub_listing(text, "listing.json"); });
  if (!listing) return 0;
  for (const auto& [name, entry] : listing->files) {
    fuzz::require(is_safe_relative_path(name), "names in a listing stay below the root");
  }
  return 0;
}
