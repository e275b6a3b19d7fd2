#include "core/formats/lfs_pointer.h"

#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view blob = fuzz::as_text(data, size);
  std::string why;
  const auto pointer = parse_lfs_pointer(blob, &why);
  fuzz::require(pointer.has_value() == why.empty(), "a refusal has a reason");
  if (!pointer) return 0;
  fuzz::require(size < kLfsPointerMaxBytes, "pointers are short");
  const std::string encoded = encode_lfs_pointer(*pointer);
  fuzz::require(pointer->canonical == (encoded == blob),
                "canonical means that encoding gives the same bytes");
  if (pointer->size == 0 || encoded.size() >= kLfsPointerMaxBytes) return 0;
  const auto again = parse_lfs_pointer(encoded);
  fuzz::require(again && again->canonical, "an encoded pointer is canonical");
  fuzz::require(again->oid == pointer->oid && again->size == pointer->size, "encoding keeps oid and size");
  fuzz::require(again->checkout_digest() == pointer->checkout_digest(), "encoding keeps the extensions");
  return 0;
}
