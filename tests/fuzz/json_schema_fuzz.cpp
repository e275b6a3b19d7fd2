// A JSON schema from a stranger: it is refused, or becomes a grammar that is read again.
// link: assay_grammar
#include "refimpl/grammar/json_schema.h"

#include "refimpl/grammar/matcher.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text =
      fuzz::accepted([&] { return grammar::gbnf_of_schema(fuzz::as_text(data, size), "fuzz.json"); });
  if (!text) return 0;
  const auto automaton = fuzz::accepted([&]() -> std::optional<grammar::Automaton> {
    try {
      return grammar::Automaton(grammar::parse_gbnf(*text, "fuzz.gbnf"), 300'000);
    } catch (const Error& error) {
      // Too large, or a $ref to itself; never a mistake in what was made.
      const std::string what = error.message();
      const bool of_the_schema = what.find("left recursive") != std::string::npos ||
                                 what.find("never comes") != std::string::npos ||
                                 what.find("more than") != std::string::npos;
      fuzz::require(of_the_schema, "the grammar of a schema is well formed");
      return std::nullopt;
    }
  });
  if (!automaton || !*automaton) return 0;
  const auto matcher = fuzz::accepted([&] { return std::make_unique<grammar::Matcher>(**automaton); });
  if (matcher) fuzz::require((*matcher)->start() != grammar::kDead, "something holds the schema");
  return 0;
}
