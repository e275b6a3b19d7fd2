// A bill of materials, in any of the forms that are read.
// link: assay_verify
#include "tests/fuzz/fuzz.h"
#include "verify/expected/sbom.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (!is_sbom(text)) return 0;
  const auto expected = fuzz::accepted([&] { return expect_from_sbom(text, "bom.json", "/nonexistent"); });
  if (!expected) return 0;
  for (const ExpectedFile& file : expected->files) {
    fuzz::require(is_safe_relative_path(file.name), "names in a bill of materials stay below the root");
    fuzz::require(!file.digest || !expected->claims.contains(file.name),
                  "weak hashes only where there is no other");
  }
  return 0;
}
