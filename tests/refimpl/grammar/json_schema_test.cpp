// Texts by a schema's grammar: those of random models always parse and hold it; what cannot be held is refused by name.
#include "refimpl/grammar/json_schema.h"

#include <gtest/gtest.h>

#include <random>

#include "core/system/error.h"
#include "refimpl/grammar/schema_parts.h"
#include "refimpl/grammar/token_grammar.h"
#include "refimpl/sampling/sequence_sampler.h"
#include "tests/refimpl/grammar/schema_check.h"

namespace assay::grammar {
namespace {

Matcher matcher_of(const std::string& schema) {
  return Matcher(Automaton(parse_gbnf(gbnf_of_schema(schema, "schema.json"), "schema.gbnf")));
}
bool reads(Matcher& matcher, std::string_view text) {
  const StateId state = matcher.read(matcher.start(), text);
  return state != kDead && matcher.accepts(state);
}

struct Case {
  const char* schema;
  std::vector<std::string> read, refused;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"},"c":{"type":"null"}},"required":["a"]})",
       {R"({"a":""})", R"({"b":1,"a":"x"})", R"({ "b": -2, "a": "x", "c": null })", "{\n  \"a\": \"y\"\n}"},
       {"{}", R"({"b":1})", R"({"a":1})", R"({"a":"x","b":1})", R"({"a":"x",})", R"({"a":"x","d":1})"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({,"a":1})", R"({"b":1,"a":2})", "[]"}},
      {R"({"type":"object","properties":{"ab":{"type":"integer"},"ac":{"const":7}},"required":["ac"],"additionalProperties":{"type":"boolean"}})",
       {R"({"ac":7})", R"({"ab":1,"ac":7,"a":true,"abc":false,"":true,"é":true})"},
       {R"({"ac":7,"ab":true})", R"({"ac":7,"a":1})", R"({"a":true,"ac":7})", R"({"ac":7,"a\u0062":true})"}},
      {R"({"type":"object","required":["x"]})", {R"({"x":1})", R"({"x":[],"y":{}})"}, {"{}", R"({"y":1})"}},
      {R"({"type":"object"})", {"{}", R"({"a":{"b":[1,2.5e3,"\u00e9\n",null]}})"}, {"[]", "1"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
       {"[1,2]", "[1, 2 ,3]"},
       {"[]", "[1]", "[1,2,3,4]", "[1,]", R"(["a",1])"}},
      {R"({"type":"array","items":{"enum":[1,"a",null,{"x":[1]}]}})",
       {"[]", R"([1,"a",null,{"x":[1]}])"},
       {"[2]", R"(["b"])"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1,"maxItems":4})",
       {"[1]", R"([1,"a"])", R"([1,"a",null,null])"},
       {"[]", R"(["a"])", "[1,null]", R"([1,"a",null,null,null])"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
       {"[]", "[1]", R"([1,"a"])"},
       {R"([1,"a",1])"}},
      {R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"type":"array","maxItems":1})", {"[]", "[{}]"}, {"[1,1]"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("éé")", R"("😀\ud83d\ude00")", R"("\n\"x")"},
       {R"("a")", R"("abcd")", R"("\ud83d")", "ab"}},
      {R"({"type":"string"})",
       {R"("\ud83d\ude00")", R"("\uD7ff\ue000")"},
       {R"("\ud83d")", R"("\ud83da")", R"("\ude00")", R"("\ud83d\u0041")", "\"\n\"", R"("\x")"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":3})",
       {"[1,null,null]", "[1,null,null,null]"},
       {"[1,null]", "[1]"}},
      {R"({"type":"number","minimum":0,"exclusiveMaximum":1000})",
       {"999", "999.999", "0.5"},
       {"999.99999999999999999", "1000", "1000.0"}},
      {R"({"type":"string","pattern":"^[a-c]+-\\d{2}$"})",
       {R"("a-12")", R"("abc-00")"},
       {R"("-12")", R"("a-123")", R"("xa-12")"}},
      {R"({"type":"string","pattern":"b|^x\"y\\\\$"})",
       {R"("abc")", R"("x\"y\\")"},
       {R"("x\"y")", R"("ac")"}},
      {R"({"type":"string","pattern":"^(?:a|(b.))*?$"})",
       {R"("")", R"("aab\"a")", R"("bé")"},
       {R"("b")", R"("b\n")"}},
      {R"({"type":"string","format":"date"})",
       {R"("2026-11-23")", R"("2024-02-28")"},
       {R"("2026-13-01")", R"("2026-02-30")", R"("26-01-01")"}},
      {R"({"type":"string","format":"date-time"})",
       {R"("2026-11-23T17:38:34Z")", R"("2026-01-31T00:00:00.5+01:30")"},
       {R"("2026-11-23")", R"("2026-11-23T24:00:00Z")"}},
      {R"({"type":"integer"})", {"0", "-0", "12", "-5"}, {"01", "1.0", "1e3", "+1", "-"}},
      {R"({"type":"number"})", {"0", "-1.5", "1e3", "2.5E-7"}, {"1.", ".5", "1e999", "00"}},
      {R"({"type":"integer","minimum":-3,"maximum":12})",
       {"-3", "-1", "0", "9", "12"},
       {"-4", "13", "-0", "007", "120"}},
      {R"({"type":"integer","exclusiveMinimum":9,"exclusiveMaximum":1000})",
       {"10", "999", "100"},
       {"9", "1000", "-10"}},
      {R"({"type":"integer","minimum":0})", {"0", "5", "123456789012345"}, {"-1"}},
      {R"({"type":"integer","maximum":-7})", {"-7", "-10", "-99999"}, {"-6", "0", "7"}},
      {R"({"type":"integer","minimum":1.5,"maximum":3.5})", {"2", "3"}, {"1", "4"}},
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "1", "0.5", "0.0001", "1.0"},
       {"1.5", "-0.5", "2"}},
      {R"({"type":"number","exclusiveMinimum":0})", {"0.5", "1", "37.25"}, {"0", "0.0", "-1"}},
      {R"({"type":"number","exclusiveMaximum":0,"minimum":-2})", {"-2", "-0.5", "-1.75"}, {"0", "-2.5", "1"}},
      {R"({"type":["string","null"],"maxLength":1})", {"null", R"("a")"}, {R"("ab")", "1"}},
      {R"({"enum":["a",2,true]})", {R"("a")", "2", "true"}, {R"("b")", "1"}},
      {R"({"type":"integer","enum":["a",2,3.5]})", {"2"}, {R"("a")", "3.5"}},
      {R"({"const":{"a":[1,"\""]}})", {R"({"a":[1,"\""]})"}, {R"({"a":[1]})"}},
      {R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
       {"12", R"("x")"},
       {R"("xy")", "1.5"}},
      {R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"1", R"("a")"}, {"null"}},
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]})",
       {R"({"k":"a"})", R"({"k":"a","n":1})", R"({"k":"b"})"},
       {R"({"k":"c"})", "{}"}},
      {R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"c":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"],"additionalProperties":false}}})",
       {R"({"v":1})", R"({"v":1,"c":[{"v":2,"c":[]},{"v":3}]})"},
       {R"({"c":[]})", R"({"v":1,"c":[1]})"}},
      {R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[[]]]]"}, {"[1]"}},
      {"true", {"1", "{}", R"("x")", "[null]"}, {"", "nul"}},
      {R"({"title":"anything","default":1})", {"1", "{}"}, {"x"}},
  };
  return all;
}

TEST(JsonSchema, ReadsWhatHoldsAndRefusesWhatDoesNot) {
  for (const Case& c : cases()) {
    Matcher matcher = matcher_of(c.schema);
    const nlohmann::json schema = nlohmann::json::parse(c.schema);
    for (const std::string& text : c.read) {
      EXPECT_TRUE(reads(matcher, text)) << c.schema << "\n" << text;
      EXPECT_TRUE(test::SchemaCheck(schema).holds(nlohmann::json::parse(text))) << c.schema << "\n" << text;
    }
    for (const std::string& text : c.refused) EXPECT_FALSE(reads(matcher, text)) << c.schema << "\n" << text;
  }
}

TEST(JsonSchema, WhatIsNotHeldIsRefusedByName) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"type":"object","patternProperties":{}})", "'patternProperties'"},
      {R"({"type":"array","uniqueItems":true})", "'uniqueItems'"},
      {R"({"type":"array","items":[{}]})", "prefixItems"},
      {R"({"type":"number","multipleOf":2})", "'multipleOf'"},
      {R"({"type":"object","minProperties":1})", "'minProperties'"},
      {R"({"type":"object","properties":{"a":{"not":{}}}})", "#/properties/a: the keyword 'not'"},
      {R"({"if":{}})", "'if'"},
      {R"({"type":"string","format":"email"})", "'email'"},
      {R"({"type":"integer","format":"int32"})", "'format'"},
      {R"j({"type":"string","pattern":"^a(?=b)"})j", "group (?"},
      {R"({"type":"string","pattern":"\\bx"})", "escape \\b"},
      {R"({"type":"string","pattern":"a$b"})", "$ within"},
      {R"({"type":"string","pattern":"(a)\\1"})", "escape \\1"},
      {R"({"type":"string","pattern":"a","maxLength":3})", "together"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "below"},
      {R"({"type":"string","maxLength":1000000})", "not supported"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "'oneOf'"},
      {R"({"oneOf":[{"type":"object"},{"type":"object"}]})", "'oneOf'"},
      {R"({"allOf":[{"type":"object"},{"required":["a"]}]})", "'allOf'"},
      {R"({"type":"object","anyOf":[{}]})", "'type' beside 'anyOf'"},
      {R"({"$ref":"#/$defs/a","type":"string"})", "'type' beside '$ref'"},
      {R"({"$ref":"#/$defs/a"})", "leads nowhere"},
      {R"({"$ref":"other.json"})", "leads nowhere"},
      {R"({"$ref":"#"})", "left recursive"},
      {R"({"enum":["a"],"minLength":3})", "'minLength' beside 'enum'"},
      {R"({"type":"integer","enum":["a"]})", "of the type"},
      {R"({"type":"object","required":["a"],"properties":{},"additionalProperties":false})",
       "'a' is required"},
      {R"({"type":"object","required":["a"],"properties":{"a":false}})", "nothing can hold it"},
      {R"({"type":"integer","minimum":3,"maximum":2})", "between the bounds"},
      {R"({"type":"number","minimum":0.2,"maximum":0.8})", "between the bounds"},
      {R"({"type":"integer","minimum":1e300})", "between the bounds"},
      {R"({"type":"float"})", "unknown type"},
      {R"({"minLength":1,"minItems":1})", "several types"},
      {R"({"type":"array","minItems":3,"maxItems":2})", "long enough"},
      {R"({"type":"array","prefixItems":[{}],"items":false,"minItems":2})", "long enough"},
      {"false", "nothing can hold it"},
      {"3", "a schema is"},
      {"{", "byte"},
  };
  for (const auto& [schema, said] : refused) {
    try {
      matcher_of(schema);
      ADD_FAILURE() << schema;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input) << schema;
      EXPECT_NE(error.line().find(said), std::string::npos) << schema << ": " << error.line();
    }
  }
}

TEST(JsonSchema, WholeNumbersBetweenAnyTwo) {
  const auto check = [](std::int64_t low, std::int64_t high) {
    NumberBounds bounds = {.least = static_cast<double>(low), .most = static_cast<double>(high)};
    const auto body = gbnf_integers(bounds);
    ASSERT_TRUE(body) << low << " to " << high;
    Matcher matcher(Automaton(parse_gbnf("root ::= " + *body, "range")));
    for (std::int64_t x = -1300; x <= 1300; ++x)
      ASSERT_EQ(reads(matcher, std::to_string(x)), low <= x && x <= high)
          << x << " in " << low << " to " << high;
    for (const std::int64_t x : {low, high}) {
      ASSERT_TRUE(reads(matcher, std::to_string(x)));
      ASSERT_FALSE(reads(matcher, "0" + std::to_string(x)));
    }
    ASSERT_FALSE(reads(matcher, std::to_string(low - 1))) << low;
    ASSERT_FALSE(reads(matcher, std::to_string(high + 1))) << high;
  };
  for (const std::int64_t low :
       {-1234, -1000, -999, -100, -99, -11, -10, -9, -1, 0, 1, 7, 9, 10, 99, 100, 101, 250, 1000})
    for (const std::int64_t high :
         {-1001, -1000, -100, -12, -2, -1, 0, 1, 8, 10, 11, 99, 100, 199, 256, 999, 1000, 1234})
      if (low <= high) check(low, high);
  check(-9007199254740992, 9007199254740991);
  check(123456789, 987654321012);
}

// Bytes, and pieces that a tokenizer would have.
TokenTexts vocabulary() {
  TokenTexts texts;
  for (int b = 0; b < 256; ++b) texts.later.emplace_back(1, static_cast<char>(b));
  for (const char* piece :
       {"{\"", "\":", "\": ", ", \"", "\"}", "}",  "}",        "]",  "]",  "true", "false", "null",
        "12",  "-1",  "0.5",  "ab",   "é",   "語", "\xE8\xAA", "\"", "\"", "a",    "\\\"",  "],["})
    texts.later.emplace_back(piece);
  texts.later.emplace_back("");
  return texts;
}

// Random logits, of several temperaments, under each schema: what comes to an end parses, and holds the schema.
TEST(JsonSchema, TextsOfRandomModelsHoldTheirSchema) {
  const TokenTexts texts = vocabulary();
  const auto end = static_cast<TokenId>(texts.later.size() - 1);
  std::size_t whole = 0, written = 0;
  for (const Case& c : cases()) {
    const nlohmann::json schema = nlohmann::json::parse(c.schema);
    const auto grammar = std::make_shared<TokenGrammar>(parse_gbnf(gbnf_of_schema(c.schema, "s"), "s"), texts,
                                                        std::vector<TokenId>{end});
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      SequenceSampler sampler(
          {.temperature = 0.5 + static_cast<double>(seed % 4), .stop_tokens = {end}, .seed = seed}, {},
          std::make_unique<GrammarConstraint>(grammar));
      std::mt19937_64 random(seed);
      std::string text;
      ++written;
      for (int i = 0; i < 400; ++i) {
        std::vector<double> logits(texts.later.size());
        for (double& x : logits) x = static_cast<double>(random() % 1000) / 100;
        for (const char closing : {'"', '}', ']'}) logits[static_cast<unsigned char>(closing)] += 4;
        logits[end] += 2;
        const TokenId id = sampler.sample(logits);
        sampler.push(id);
        if (sampler.ends(id)) {
          ++whole;
          nlohmann::json value;
          ASSERT_NO_THROW(value = nlohmann::json::parse(text)) << c.schema << "\n" << text;
          ASSERT_TRUE(test::SchemaCheck(schema).holds(value)) << c.schema << "\n" << text;
          break;
        }
        text += texts.later[id];
      }
    }
  }
  EXPECT_GT(10 * whole, 9 * written) << whole << " of " << written;
}

}  // namespace
}  // namespace assay::grammar
