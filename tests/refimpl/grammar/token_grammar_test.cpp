// Masks of a vocabulary against reading every token by itself.
#include "refimpl/grammar/token_grammar.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "core/system/error.h"
#include "refimpl/grammar/json_schema.h"
#include "refimpl/sampling/sequence_sampler.h"

namespace assay::grammar {
namespace {

// All bytes, then pieces of JSON and text, some of which end within a character, and control tokens.
TokenTexts small_vocabulary() {
  TokenTexts texts;
  for (int b = 0; b < 256; ++b) texts.later.emplace_back(1, static_cast<char>(b));
  for (const char* piece :
       {"{\"",  "\":",    "\",", "\"}",  "true", "false", "null",     "1",        "12",     "-1",
        "0.5",  "[",      "]]",  "[[",   "ab",   "abc",   "\xE8\xAA", "\x9E\xE8", "語\xE8", "é",
        "\xC3", "\xA9\"", "  ",  "\n  ", "\\u",  "d83d",  "{}",       "},{"})
    texts.later.emplace_back(piece);
  texts.later.insert(texts.later.end(), 3, "");
  return texts;
}

std::vector<TokenId> allowed_ids(const TokenConstraint& constraint, std::size_t vocabulary) {
  TokenMask mask(vocabulary, true);
  constraint.restrict(mask);
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocabulary; ++id)
    if (mask.has(id)) ids.push_back(id);
  return ids;
}

TEST(TokenGrammar, MasksAreWhatEachTokenReads) {
  const TokenTexts texts = small_vocabulary();
  const TokenId end = static_cast<TokenId>(texts.later.size() - 1);
  std::mt19937 random(7);
  for (const std::string& grammar : {gbnf_of_json_object(), std::string("root ::= [^a]{2,4} \"ab\"?"),
                                     std::string("root ::= ([語é] | \"ab\"+)*")}) {
    const Grammar parsed = parse_gbnf(grammar, "g");
    const auto shared = std::make_shared<TokenGrammar>(parsed, texts, std::vector<TokenId>{end});
    Matcher plain{Automaton(parsed)};
    for (int walk = 0; walk < 30; ++walk) {
      GrammarConstraint constraint(shared);
      StateId state = plain.start();
      for (int step = 0; step < 12; ++step) {
        std::vector<TokenId> truth;
        for (TokenId id = 0; id < texts.later.size(); ++id) {
          const bool reads = !texts.later[id].empty() && plain.read(state, texts.later[id]) != kDead;
          if (reads || (id == end && plain.accepts(state))) truth.push_back(id);
        }
        const std::vector<TokenId> ours = allowed_ids(constraint, texts.later.size());
        ASSERT_EQ(ours, truth);
        const TokenId id = ours[random() % ours.size()];
        if (id == end) break;
        constraint.push(id);
        state = plain.read(state, texts.later[id]);
      }
    }
  }
}

TEST(TokenGrammar, EndsExactlyWhereTheTextIsWhole) {
  const TokenTexts texts = {{"a", "b", "ab", "", "</s>"}, {}};
  const auto shared = std::make_shared<TokenGrammar>(parse_gbnf("root ::= \"ab\" \"b\"?", "g"), texts,
                                                     std::vector<TokenId>{3, 4});
  GrammarConstraint c(shared);
  EXPECT_EQ(allowed_ids(c, 5), (std::vector<TokenId>{0, 2}));
  EXPECT_THROW(c.push(1), Error);
  EXPECT_THROW(c.push(3), Error);
  c.push(2);
  EXPECT_EQ(allowed_ids(c, 5), (std::vector<TokenId>{1, 3, 4}));
  const auto fork = c.fork();
  c.push(3);
  EXPECT_EQ(allowed_ids(c, 5), (std::vector<TokenId>{}));
  EXPECT_THROW(c.push(1), Error);
  c.pop(1);
  EXPECT_EQ(allowed_ids(c, 5), (std::vector<TokenId>{1, 3, 4}));
  c.push(1);
  EXPECT_EQ(allowed_ids(c, 5), (std::vector<TokenId>{3, 4}));
  c.pop(2);
  EXPECT_EQ(allowed_ids(c, 5), (std::vector<TokenId>{0, 2}));
  EXPECT_EQ(allowed_ids(*fork, 5), (std::vector<TokenId>{1, 3, 4}));
  EXPECT_THROW(c.pop(1), Error);
}

// An end token with a text ("</s>") is not that text.
TEST(TokenGrammar, AnEndTokenIsNeverText) {
  const auto shared = std::make_shared<TokenGrammar>(parse_gbnf("root ::= \"x\"{3}", "g"),
                                                     TokenTexts{{"x", "xx"}, {}}, std::vector<TokenId>{1});
  GrammarConstraint c(shared);
  EXPECT_EQ(allowed_ids(c, 2), (std::vector<TokenId>{0}));
}

TEST(TokenGrammar, TheFirstTokenMayReadOtherwise) {
  const TokenTexts texts = {{" a", "a", " b"}, {"a", "a", "b"}};
  const auto shared =
      std::make_shared<TokenGrammar>(parse_gbnf("root ::= \"a a\"", "g"), texts, std::vector<TokenId>{});
  GrammarConstraint c(shared);
  EXPECT_EQ(allowed_ids(c, 3), (std::vector<TokenId>{0, 1}));
  c.push(0);
  EXPECT_EQ(allowed_ids(c, 3), (std::vector<TokenId>{0}));
}

TEST(TokenGrammar, AVocabularyThatCannotGoOnIsAnError) {
  const auto shared = std::make_shared<TokenGrammar>(parse_gbnf("root ::= \"ab\"", "g"),
                                                     TokenTexts{{"a", "c"}, {}}, std::vector<TokenId>{});
  GrammarConstraint c(shared);
  c.push(0);
  TokenMask mask(2, true);
  EXPECT_THROW(c.restrict(mask), Error);
}

// A text that is whole and has nothing to follow, under a vocabulary without an end token.
TEST(TokenGrammar, TheSamplerSaysWhenATextIsWhole) {
  const auto shared = std::make_shared<TokenGrammar>(parse_gbnf("root ::= \"ab\"", "g"),
                                                     TokenTexts{{"a", "b"}, {}}, std::vector<TokenId>{});
  SequenceSampler sampler({.temperature = 1}, {}, std::make_unique<GrammarConstraint>(shared));
  const std::vector<double> logits = {0, 5};
  for (const TokenId expected : {0U, 1U}) {
    EXPECT_FALSE(sampler.complete(2));
    EXPECT_EQ(sampler.sample(logits), expected);
    sampler.push(expected);
  }
  EXPECT_TRUE(sampler.complete(2));
}

// 150,000 tokens, JSON: every mask well below what a step of a model takes.
TEST(TokenGrammar, MasksOfALargeVocabularyAreQuick) {
  std::mt19937 random(3);
  TokenTexts texts;
  for (int b = 0; b < 256; ++b) texts.later.emplace_back(1, static_cast<char>(b));
  static constexpr std::string_view kLetters = "etaoinshrdlu ETAOIN\",:{}[]0123456789-.\n";
  while (texts.later.size() < 150'000) {
    std::string text;
    for (unsigned n = 1 + random() % 10; n > 0; --n) text += kLetters[random() % kLetters.size()];
    texts.later.push_back(text);
  }
  TokenGrammar grammar(parse_gbnf(gbnf_of_json_object(), "json"), texts, {});
  StateId state = grammar.start();
  const auto begin = std::chrono::steady_clock::now();
  int masks = 0;
  for (const char c : std::string_view("{\"key\": [1, 2.5, {\"a\": \"some text\", \"b\": [[], null]}]}")) {
    grammar.allowed(state, false);
    ++masks;
    state = grammar.after(state, static_cast<TokenId>(static_cast<unsigned char>(c)), false);
    ASSERT_NE(state, kDead);
  }
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() / masks;
  RecordProperty("microseconds_a_mask", static_cast<int>(1000 * ms));
  EXPECT_LT(ms, 200) << "a mask";  // a few at most; sanitizers and busy machines take longer
}

}  // namespace
}  // namespace assay::grammar
