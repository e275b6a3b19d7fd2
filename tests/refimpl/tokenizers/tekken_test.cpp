// Mistral's tekken.json: ids as mistral-common has them (data/make_tekken_fixtures.py), and files that are none.
#include "refimpl/tokenizers/tekken.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "refimpl/tokenizers/load.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using nlohmann::json;

const fs::path kFolder = test::source_dir() / "data/fixtures/tekken";

TEST(Tekken, SaysWhatMistralCommonSays) {
  const json texts = json::parse(test::read_file(kFolder / "texts.json"));
  ASSERT_GE(texts.size(), 60u);
  for (const char* name : {"tekken-early", "tekken-named", "tekken-words"}) {
    const auto tokenizer = load_tokenizer(kFolder / (std::string(name) + ".json"));
    for (const json& entry : texts) {
      const std::string text = entry["text"];
      const std::vector<TokenId> ids = tokenizer->encode(text, {.parse_special = false});
      EXPECT_EQ(ids, entry[name].get<std::vector<TokenId>>()) << name << ": " << text;
      EXPECT_EQ(tokenizer->decode(std::span(ids).subspan(1)), text) << name;
    }
  }
}

TEST(Tekken, SpecialTokensComeFirst) {
  const auto early = load_tokenizer(kFolder / "tekken-early.json"),
             named = load_tokenizer(kFolder / "tekken-named.json");
  EXPECT_EQ(early->vocab_size(), 440u);
  EXPECT_EQ(early->piece(3), "[INST]");
  EXPECT_EQ(early->piece(23), "<SPECIAL_23>");
  EXPECT_EQ(early->piece(24), std::string(1, 0));
  EXPECT_EQ(named->piece(5), "[THINK]");
  EXPECT_EQ(named->piece(8), "<SPECIAL_8>");
  EXPECT_EQ(named->special().bos, 1u);
  EXPECT_EQ(named->special().eos, 2u);
  EXPECT_EQ(named->special().end_of_generation, std::vector<TokenId>{2});
  EXPECT_EQ(named->encode("[INST]", {}), (std::vector<TokenId>{1, 3}));
}

// In a folder, beside what Mistral's own files have.
TEST(Tekken, IsFoundInAFolder) {
  const test::TempDir folder;
  fs::copy(kFolder / "tekken-named.json", folder / "tekken.json");
  EXPECT_EQ(load_tokenizer(folder.path())->vocab_size(), 445u);
}

TEST(Tekken, WhatIsNoneIsRefusedInALine) {
  const test::TempDir folder;
  const json whole = json::parse(test::read_file(kFolder / "tekken-named.json"));
  const auto refused = [&](const char* why, const json& file) {
    test::write_file(folder / "tekken.json", file.dump());
    try {
      load_tokenizer(folder.path());
      ADD_FAILURE() << "taken: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(error.line().find(why), std::string::npos) << error.line();
    }
  };
  const auto with = [&](const char* path, const json& value) {
    json file = whole;
    file[json::json_pointer(path)] = value;
    return file;
  };
  refused("config is no object", with("/config", 5));
  refused("default_vocab_size is not more", with("/config/default_vocab_size", 9));
  refused("default_vocab_size is no number", with("/config/default_vocab_size", -1));
  refused("default_num_special_tokens is no number", with("/config/default_num_special_tokens", 1ull << 40));
  refused("has no pattern", with("/config/pattern", ""));
  refused("rank 436 is missing", with("/config/default_vocab_size", 446));
  refused("vocab is no list", with("/vocab", "x"));
  refused("vocab holds", with("/vocab/7", nullptr));
  refused("rank 8 is there twice", with("/vocab/7/rank", 8));
  refused("token_bytes of rank 7", with("/vocab/7/token_bytes", "%"));
  refused("special_tokens are no list", with("/special_tokens", "x"));
  refused("special_tokens holds", with("/special_tokens/1/rank", 9));
  refused("special token 0 is there twice", with("/special_tokens/1/rank", 0));
  refused("special token 1 is there twice", with("/special_tokens/1/token_str", "<unk>"));
  json unnamed = whole;
  unnamed.erase("special_tokens");
  refused("special_tokens are not there", unnamed);
}

}  // namespace
}  // namespace assay
