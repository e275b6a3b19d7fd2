// A manifest of tensors' digests.
// link: assay_verify
#include "tests/fuzz/fuzz.h"
#include "verify/claims/claim_digest.h"
#include "verify/expected/gguf_hashes.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (!is_gguf_hash_manifest(text)) return 0;
  const auto expected =
      fuzz::accepted([&] { return expect_from_gguf_hashes(text, "hashes", "/nonexistent"); });
  if (!expected) return 0;
  for (const auto& [file, claims] : expected->claims) {
    fuzz::require(is_safe_relative_path(file), "names in it stay below the root");
    for (const FileClaim& claim : claims)
      fuzz::require(claim.digest.size() == claim_digits(claim.algorithm), "a digest is as long as its kind");
  }
  return 0;
}
