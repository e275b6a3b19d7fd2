// A grammar from a stranger, and texts read by it: what comes after a 0 byte of the input, and the grammar itself.
// link: assay_grammar
#include "refimpl/grammar/matcher.h"

#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::as_text(data, size);
  const std::size_t end = input.find('\0');
  const std::string_view text = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  const grammar::GrammarLimits limits = {.expressions = 20'000, .repetitions = 1000};
  const auto rules =
      fuzz::accepted([&] { return grammar::parse_gbnf(input.substr(0, end), "fuzz.gbnf", limits); });
  if (!rules) return 0;
  const auto automaton = fuzz::accepted([&] { return grammar::Automaton(*rules, 200'000); });
  if (!automaton) return 0;
  const grammar::MatchLimits few = {
      .places_of_a_state = 300, .places = 20'000, .states = 5'000, .returns = 100'000};
  const auto matcher = fuzz::accepted([&] { return std::make_unique<grammar::Matcher>(*automaton, few); });
  if (!matcher) return 0;
  grammar::Matcher& m = **matcher;
  fuzz::require(m.start() != grammar::kDead, "a grammar that is accepted has a text");
  for (const std::string_view each : {text, input.substr(0, end)}) {
    grammar::StateId state = m.start();
    for (const char c : each) {
      const auto next = fuzz::accepted([&] { return m.step(state, static_cast<std::uint8_t>(c)); });
      if (!next || *next == grammar::kDead) break;
      fuzz::require(m.step(state, static_cast<std::uint8_t>(c)) == *next, "a step leads to one state");
      fuzz::require(m.accepts(*next) || m.goes_on(*next), "what is not whole goes on");
      state = *next;
    }
  }
  return 0;
}
