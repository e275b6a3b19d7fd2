// A log's checkpoint, a signed note; and base64 and times as bundles and trusted roots have them.
// link: assay_verify
#include "tests/fuzz/refusal.h"
#include "verify/signature/checkpoint.h"
#include "verify/signature/encoding.h"
#include "verify/signature/trusted_root.h"

using namespace assay;
using namespace assay::signature;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (const auto bytes = decode_base64(text))
    fuzz::require(encode_base64(*bytes) == text, "base64 says what it means in one way only");
  fuzz::believed([&] { return parse_time_ms(text); });
  const auto checkpoint = fuzz::believed([&] { return parse_checkpoint(text); });
  if (!checkpoint) return 0;
  fuzz::require(text.starts_with(checkpoint->text), "what is signed is the beginning of the note");
  fuzz::require(checkpoint->size >= 0 && checkpoint->root.size() == 32, "a checkpoint has a size and a root");
  for (const Log& log : embedded_trusted_root().logs)
    fuzz::believed([&] { return check_checkpoint(*checkpoint, log), 0; });
  return 0;
}
