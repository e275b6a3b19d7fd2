// A pickle of plain values, which ModelScope's client keeps its lists in.
// link: assay_verify
#include "tests/fuzz/fuzz.h"
#include "verify/expected/plain_pickle.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::as_text(data, size);
  const auto value = read_plain_pickle(bytes);
  if (value) fuzz::require(bytes.ends_with('.'), "what is read ends with its end");
  return 0;
}
