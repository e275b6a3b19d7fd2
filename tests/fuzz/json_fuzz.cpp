#include "core/formats/json.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto read = [](std::string_view json, bool duplicates) {
    return fuzz::accepted([&] { return parse_json(json, "fuzz.json", {1 << 20, 64, duplicates}); });
  };
  const auto value = read(text, false);
  const auto lenient = read(text, true);
  if (!value) return 0;
  fuzz::require(lenient && *lenient == *value, "what has no key twice reads alike either way");
  fuzz::require(*value == ParsedJson::parse(text), "what is read is what nlohmann's parser reads");
  const auto again = read(value->dump(), false);
  fuzz::require(again && *again == *value, "what was read can be written and read");
  return 0;
}
