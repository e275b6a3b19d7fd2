// A grammar as it is written: rules over Unicode code points.
//
//   const Grammar grammar = parse_gbnf("root ::= \"yes\" | \"no\" .{1,5}", "answer.gbnf");
//
// GBNF as llama.cpp's grammars use it: rules `name ::= …`, alternatives, groups, literals, classes with ranges and
// negation, `.`, the escapes \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH, `?`, `*`, `+`, `{m}`, `{m,}`, `{m,n}`, comments
// from # to the end of the line; a rule ends with its line but inside parentheses and after `|` and `::=`.
// Refused by name: left recursion, rules that are undefined or defined twice, empty classes, tokens (`<…>`), too much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay::grammar {

// Code points from `first` to `last`.
struct CodeRange {
  std::uint32_t first = 0, last = 0;
  bool operator==(const CodeRange&) const = default;
};

inline constexpr std::uint32_t kUnbounded = 0xFFFFFFFF;

struct Expression {
  enum class Kind : std::uint8_t { characters, rule, sequence, choice, repeat };
  Kind kind = Kind::sequence;         // an empty sequence is the empty text
  std::vector<CodeRange> characters;  // sorted, apart
  std::size_t rule = 0;               // its number
  std::vector<Expression> parts;      // of a sequence or a choice; of a repetition, the one
  std::uint32_t least = 0, most = kUnbounded;
};

struct Rule {
  std::string name;
  Expression body;
};

struct Grammar {
  std::vector<Rule> rules;
  std::size_t root = 0;
};

struct GrammarLimits {
  std::size_t bytes = 4u << 20;
  std::size_t depth = 200;            // of parentheses
  std::size_t expressions = 500'000;  // written ones
  std::uint32_t repetitions = 100'000;
};

// Throws Error::input with `source` as the file, and the byte.
Grammar parse_gbnf(std::string_view text, const std::filesystem::path& source,
                   const GrammarLimits& limits = {});

// Sorted, joined, within what UTF-8 can say (no surrogates, at most U+10FFFF).
std::vector<CodeRange> tidy(const std::vector<CodeRange>& ranges);
std::vector<CodeRange> complement(const std::vector<CodeRange>& tidied);

}  // namespace assay::grammar
