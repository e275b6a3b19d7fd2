// Pieces of GBNF that schemas are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/grammar/syntax.h"

namespace assay::grammar {

// "text" as a GBNF literal that reads exactly it.
std::string gbnf_literal(std::string_view text);
// A class of the code points, all escaped but letters and digits; `ranges` is not empty.
std::string gbnf_class(const std::vector<CodeRange>& ranges);

// The whole numbers from `least` to `most` without leading zeros; `least` ≤ `most`.
std::string gbnf_digits_between(std::uint64_t least, std::uint64_t most);

struct NumberBounds {
  std::optional<double> least, most, above, below;  // minimum, maximum, exclusiveMinimum, exclusiveMaximum
  bool any() const { return least || most || above || below; }
};
// nullopt where no number that the grammar could write lies between. Of numbers: whole ones, and those with decimals.
std::optional<std::string> gbnf_integers(const NumberBounds& bounds);
std::optional<std::string> gbnf_numbers(const NumberBounds& bounds);

// The inside of a JSON string that holds the pattern, a subset of ECMA 262: literals, classes, . \d \w \s \D \W \S (of
// ASCII), groups, |, ?, *, +, {m,n}; ^ and $ at the ends of the pattern or of one of its outermost alternatives. Where
// they are not, anything may come before or after. Throws Error::input for what else there is.
std::string gbnf_of_pattern(std::string_view pattern);

// nullopt for a format that is not known.
std::optional<std::string> gbnf_of_format(std::string_view format);

// Rules that the others build on: ws, char, string, number, value … by name.
std::string_view gbnf_common_rules();

}  // namespace assay::grammar
