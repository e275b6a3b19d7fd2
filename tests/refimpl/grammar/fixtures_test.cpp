// Held against outside readers: llama.cpp's grammars (data/make_gbnf_fixtures.py), the package jsonschema
// (data/make_schema_fixtures.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "refimpl/grammar/json_schema.h"
#include "refimpl/grammar/matcher.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::grammar {
namespace {

nlohmann::ordered_json fixture_of(const char* name) {
  return nlohmann::ordered_json::parse(test::read_file(test::source_dir() / "data/fixtures/grammar" / name));
}
bool reads(Matcher& matcher, std::string_view text) {
  const StateId state = matcher.read(matcher.start(), text);
  return state != kDead && matcher.accepts(state);
}

// A repetition of what may be empty is left recursive to llama.cpp and none here: nothing is read in between.
TEST(GrammarFixtures, WhatLlamaCppReadsIsRead) {
  std::size_t refused_here = 0, refused_there = 0, texts = 0, read = 0;
  const nlohmann::ordered_json document = fixture_of("llama_cpp.json");
  for (const auto& c : document["cases"]) {
    const std::string grammar = c["grammar"];
    std::unique_ptr<Matcher> matcher;
    try {
      matcher = std::make_unique<Matcher>(Automaton(parse_gbnf(grammar, "fixture.gbnf")));
    } catch (const Error& error) {
      ++refused_here;
      EXPECT_FALSE(c["parsed"].get<bool>() && error.message().find("never comes") == std::string::npos)
          << grammar << "\n"
          << error.message();
      continue;
    }
    if (!c["parsed"].get<bool>()) {
      ++refused_there;
      EXPECT_TRUE(grammar.find('*') != std::string::npos || grammar.find('+') != std::string::npos ||
                  grammar.find(",}") != std::string::npos)
          << grammar;
    }
    for (const auto& [text, verdict] : c["texts"].get<std::vector<std::pair<std::string, bool>>>()) {
      EXPECT_EQ(reads(*matcher, text), verdict) << grammar << "\n" << text;
      ++texts;
      read += verdict ? 1 : 0;
    }
  }
  EXPECT_GT(texts, 800U);
  EXPECT_GT(read, 100U);
  EXPECT_GT(refused_here, 10U);
  EXPECT_LT(refused_there, 60U);
}

TEST(GrammarFixtures, OnlyWhatHoldsTheSchemaIsRead) {
  std::size_t texts = 0, read = 0, written = 0;
  const nlohmann::ordered_json document = fixture_of("schemas.json");
  for (const auto& c : document["cases"]) {
    const std::string schema = c["schema"].dump();
    Matcher matcher(Automaton(parse_gbnf(gbnf_of_schema(schema, "schema.json"), "schema.gbnf")));
    for (const auto& [text, holds] : c["texts"].get<std::vector<std::pair<std::string, bool>>>()) {
      const bool is_read = reads(matcher, text);
      EXPECT_TRUE(holds || !is_read) << schema << "\n" << text;
      ++texts;
      read += is_read ? 1 : 0;
    }
    for (const std::string text : c["written"]) {
      EXPECT_TRUE(reads(matcher, text)) << schema << "\n" << text;
      ++written;
    }
  }
  EXPECT_GT(written, 300U);
  EXPECT_GT(texts, read + 200);
}

}  // namespace
}  // namespace assay::grammar
