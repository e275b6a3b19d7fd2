// Log-probabilities as engines save them, and the figures of two sides: data/make_logprob_fixtures.py.
#include "core/formats/logprobs/saved.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "kernels/logprobs/align.h"
#include "kernels/logprobs/token_ids.h"
#include "kernels/logprobs/token_names.h"
#include "refimpl/tokenizers/load.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::logprobs {
namespace {

std::filesystem::path fixture(const char* name) {
  return test::source_dir() / "data/fixtures/logprobs" / name;
}

TEST(SavedLogprobs, FiguresAreNumpys) {
  const auto expected = nlohmann::json::parse(test::read_file(fixture("expected.json")));
  const SavedResponses a = read_responses(fixture("a_vllm.json")),
                       b = read_responses(fixture("b_sglang.jsonl"));
  EXPECT_EQ(a.format, ResponseFormat::vllm);
  EXPECT_EQ(b.format, ResponseFormat::sglang);
  const MatchedPairs matched = match_responses(a, b);
  EXPECT_TRUE(matched.faults.empty());
  const PairFigures f = pair_figures(matched.pairs, std::nullopt);
  const RatioFigures r = ratio_figures(matched.pairs);
  const auto same = [&](const char* key, double value) {
    const double right = expected[key];
    EXPECT_NEAR(value, right, 1e-12 * std::max(1.0, std::abs(right))) << key;
  };
  same("tokens", static_cast<double>(f.tokens));
  same("mean", f.mean);
  same("mean_abs", f.mean_abs);
  same("rms", f.rms);
  same("max_abs", f.max_abs);
  same("kl_tokens", static_cast<double>(f.kl_tokens));
  same("kl_mean", f.kl_mean);
  same("kl_max", f.kl_max);
  same("ranked", static_cast<double>(f.ranked));
  same("rank_flips", static_cast<double>(f.rank_flips));
  same("same_first", static_cast<double>(f.same_first));
  same("ratio_mean", r.mean);
  same("ratio_min", r.min);
  same("ratio_max", r.max);
  same("effective", r.effective);
  same("kl_k1", r.kl_k1);
  same("kl_k3", r.kl_k3);
  same("probability_mean", r.probability_mean);
  same("probability_max", r.probability_max);
  same("text_min", r.text_min);
  same("text_max", r.text_max);
  same("text_mean_min", r.text_mean_min);
  same("text_mean_max", r.text_mean_max);
  for (std::size_t i = 0; i < kRatioQuantiles.size(); ++i)
    EXPECT_NEAR(r.quantiles[i], expected["quantiles"][i].get<double>(), 1e-12) << i;
  for (std::size_t i = 0; i < kClipRanges.size(); ++i)
    EXPECT_NEAR(r.outside[i], expected["outside"][i].get<double>(), 1e-12) << i;
}

struct SavedAs {
  const char* file;
  ResponseFormat format;
  std::size_t pairs;
  double apart;  // 16 bits for 16 nats at most
};

class SavedFormats : public testing::TestWithParam<SavedAs> {};

TEST_P(SavedFormats, SayTheSame) {
  const SavedResponses one = read_responses(fixture(GetParam().file)),
                       vllm = read_responses(fixture("a_vllm.json"));
  EXPECT_EQ(one.format, GetParam().format);
  const MatchedPairs matched = match_responses(one, vllm);
  EXPECT_TRUE(matched.faults.empty());
  EXPECT_EQ(matched.pairs.size(), GetParam().pairs);
  const PairFigures f = pair_figures(matched.pairs, std::nullopt);
  EXPECT_LE(f.max_abs, GetParam().apart);
  EXPECT_EQ(f.rank_flips, 0U);
}

INSTANTIATE_TEST_SUITE_P(OfSideA, SavedFormats,
                         testing::Values(SavedAs{"a_openai.jsonl", ResponseFormat::openai, 39, 0},
                                         SavedAs{"a_chat.jsonl", ResponseFormat::openai, 27, 0},
                                         SavedAs{"a_llama_server.jsonl", ResponseFormat::llama_server, 27, 0},
                                         SavedAs{"a_base.kld", ResponseFormat::perplexity_base, 18,
                                                 16.0 / 65535},
                                         SavedAs{"a_table.jsonl", ResponseFormat::table, 39, 0},
                                         SavedAs{"a_table.csv", ResponseFormat::table, 39, 0}),
                         [](const auto& info) {
                           std::string name = info.param.file;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(SavedLogprobs, OtherTokensAreTold) {
  const SavedResponses a = read_responses(fixture("a_table.jsonl"));
  SavedResponses b = a;
  b.texts[1].tokens[6].id = 999;
  const MatchedPairs matched = match_responses(a, b);
  ASSERT_EQ(matched.faults.size(), 1U);
  EXPECT_NE(matched.faults[0].find("token 6"), std::string::npos) << matched.faults[0];
  b = a;
  b.texts.pop_back();
  EXPECT_EQ(match_responses(a, b).faults.size(), 1U);
  b = a;
  b.texts[0].tokens.erase(b.texts[0].tokens.begin(), b.texts[0].tokens.begin() + 4);  // without its prompt
  EXPECT_TRUE(match_responses(a, b).faults.empty());
  EXPECT_EQ(match_responses(a, b).texts[0].begin_a, 4U);
}

TEST(SavedLogprobs, WhatIsNoProbabilityIsRefused) {
  const char* bad[] = {"",
                       "{",
                       "[]",
                       "{}",
                       "{\"error\":{\"message\":\"full\"}}",
                       "id,logprob\n5,nan\n",
                       "id,logprob\n5,0.5\n",
                       "id,logprob\nx,-1\n",
                       "id,logprob\n5\n",
                       "a,b\n1,2\n",
                       R"({"ids":[1,2],"logprobs":[null,NaN]})",
                       R"({"ids":[1],"logprobs":[null,-1]})",
                       R"({"ids":[1,-2],"logprobs":[null,-1]})",
                       R"({"ids":[1,4294967296],"logprobs":[null,-1]})",
                       R"({"choices":[{"logprobs":{"tokens":["a"],"token_logprobs":[]}}]})",
                       R"({"choices":[{"logprobs":{"tokens":["a"],"token_logprobs":["-1"]}}]})",
                       R"({"meta_info":{"input_token_logprobs":[[-1]]}})",
                       R"({"prompt_logprobs":[{"x":{"logprob":-1}}]})",
                       R"({"prompt_token_ids":[1,2],"prompt_logprobs":[null]})",
                       R"({"completion_probabilities":[{"id":1,"prob":-0.5}]})",
                       "_logits_"};
  for (const char* text : bad) EXPECT_THROW(parse_responses(text, "x"), Error) << text;
  EXPECT_THROW(parse_responses("{\"ids\":" + std::string(100'000, '['), "x"), Error);
  const std::string base = test::read_file(fixture("a_base.kld"));
  for (const std::size_t length : {8U, 19U, 20U, 100U, 400U})
    EXPECT_THROW(parse_responses(base.substr(0, length), "x"), Error);
  std::string wrong = base;
  wrong[20] = 100;  // an id beyond the vocabulary
  EXPECT_THROW(parse_responses(wrong, "x"), Error);
  wrong = base;
  wrong[16 + 3] = 0x7F;  // two thousand million chunks
  EXPECT_THROW(parse_responses(wrong, "x"), Error);
}

// SGLang names every token that is no whole character U+FFFD, vLLM "": an object of names holds one of them.
TEST(SavedLogprobs, NamesThatSeveralTokensBearGiveNoRank) {
  const auto rank_beside = [](const char* name) {
    SavedToken token;
    token.logprob = -2.0;
    token.top = {{std::nullopt, "a", -1.0}, {std::nullopt, name, -3.0}};
    return rank_of(token);
  };
  EXPECT_EQ(rank_beside("c"), 2U);
  EXPECT_EQ(rank_beside("\xEF\xBF\xBD"), std::nullopt);
  EXPECT_EQ(rank_beside(""), std::nullopt);
}

// vLLM's echo has the prompt's values twice, and with max_tokens 0 an id of a token that it does not show.
TEST(SavedLogprobs, AnEchoThatIsScoredTwice) {
  const SavedText text =
      parse_responses(
          R"({"choices": [{"logprobs": {"tokens": ["token_id:5", "token_id:6"], "token_logprobs": [null, -1.5],
                "top_logprobs": [null, {"token_id:6": -1.5}]}, "token_ids": [7], "prompt_token_ids": [5, 6],
                "prompt_logprobs": [null, {"6": {"logprob": -1.5, "rank": 3}}]}]})",
          "a")
          .texts.at(0);
  ASSERT_EQ(text.tokens.size(), 2U);
  EXPECT_EQ(text.tokens[1].rank, 3U);
}

// llama-server has no value of tokens that end within a character. Of which of two equal ones a value is, is not guessed.
TEST(SavedLogprobs, TokensWithinCharacters) {
  const auto values = [](const char* ids, const char* told) {
    return parse_responses(fmt::format(R"({{"tokens": {}, "tokens_evaluated": 1, "tokens_predicted": 4,
                                           "completion_probabilities": [{}]}})",
                                       ids, told),
                           "a")
        .texts.at(0)
        .tokens;
  };
  const char* split = R"({"id": 9, "bytes": [226, 130, 172], "logprob": -1.5})";
  const std::vector<SavedToken> halves = values("[7, 8, 9, 7]", split);
  ASSERT_EQ(halves.size(), 4U);
  EXPECT_EQ(halves[2].logprob, -1.5);
  for (const std::size_t i : {0U, 1U, 3U}) {
    EXPECT_FALSE(halves[i].logprob) << i;
    EXPECT_TRUE(halves[i].within_character) << i;
  }
  const std::vector<SavedToken> either = values("[7, 9, 9, 7]", split);
  EXPECT_FALSE(either[1].logprob || either[2].logprob);
  // Left out before one that is ASCII: not for this reason.
  const std::vector<SavedToken> lost = values("[7, 8, 9, 7]", R"({"id": 9, "bytes": [97], "logprob": -1.5})");
  EXPECT_FALSE(lost[0].within_character || lost[1].within_character);
  // More in a row than a character has bytes, before one and at the end.
  for (const char* many : {"[7, 8, 7, 8, 9, 7]", "[9, 7, 8, 7, 8]"})
    for (const SavedToken& token : values(many, split))
      EXPECT_FALSE(token.id == 8U && token.within_character) << many;
  EXPECT_THROW(values("[]", split), Error);
}

// What a server leaves out as halves of characters, and is none by the model's tokenizer.
TEST(SavedLogprobs, TokensThatEndWithWholeCharacters) {
  const auto tokenizer = load_tokenizer(test::source_dir() / "data/tinylm");
  SavedResponses saved;
  SavedText& text = saved.texts.emplace_back();
  for (const TokenId id : tokenizer->encode("a €€ b", {.add_special = false})) {
    text.tokens.emplace_back().id = id;
    text.tokens.back().within_character = true;
  }
  const std::size_t all = text.tokens.size();
  ASSERT_GT(all, 8U);                                            // bytes of the sign are tokens of their own
  EXPECT_EQ(not_within_characters(saved, *tokenizer), all - 4);  // two of each three bytes
  for (SavedToken& token : text.tokens) token.within_character = false;
  EXPECT_EQ(not_within_characters(saved, *tokenizer), 0U);
}

// A text that names no token for sure names none: a character that stands for what is no text, and one that two tokens have.
TEST(SavedLogprobs, NamesOfTokens) {
  const auto tokenizer = load_tokenizer(test::source_dir() / "data/tinylm");
  const TokenNames names(*tokenizer);
  const std::vector<TokenId> the = tokenizer->encode(" d", {.add_special = false});
  ASSERT_EQ(the.size(), 1U);
  EXPECT_EQ(names.id_of(" d"), the.front());
  EXPECT_FALSE(names.id_of("no token has this text"));
  SavedResponses saved;
  SavedText& text = saved.texts.emplace_back();
  SavedToken& token = text.tokens.emplace_back();
  token.text = " d";
  token.top = {{{}, " d", -1}, {{}, "\xEF\xBF\xBD", -2}, {{}, "", -3}};
  EntireText entire;
  entire.ids = the;
  const SavedToken named = with_ids(saved, {entire}, names).texts[0].tokens[0];
  EXPECT_EQ(named.id, the.front());
  EXPECT_EQ(named.top[0].id, the.front());
  EXPECT_FALSE(named.top[1].id || named.top[2].id);
}

TEST(SavedLogprobs, NeverIsMinusInfinity) {
  const SavedResponses saved =
      parse_responses(R"({"ids":[1,2,3,4],"logprobs":[null,-Infinity,-9999,-3.4028235e38]})", "x");
  for (std::size_t i = 1; i < 4; ++i) EXPECT_TRUE(std::isinf(*saved.texts[0].tokens[i].logprob)) << i;
}

TEST(SavedLogprobs, FewerValuesThanIdsAreOfTheLast) {
  const SavedText text = parse_responses(R"({"ids": [5, 6, 7], "logprobs": [-1.5, -2.5]})", "a").texts.at(0);
  EXPECT_FALSE(text.tokens[0].logprob);
  EXPECT_EQ(text.tokens[2].logprob, -2.5);
  EXPECT_THROW(parse_responses(R"({"prompt_ids": [4], "ids": [5, 6, 7], "logprobs": [-1.5, -2.5]})", "a"),
               Error);
  EXPECT_THROW(parse_responses(R"({"ids": [5], "logprobs": [-1.5, -2.5]})", "a"), Error);
}

// What is thought has no probabilities, what is said may come in parts.
TEST(SavedLogprobs, OfTheResponsesApi) {
  const SavedResponses saved = parse_responses(
      R"({"object": "response", "output": [
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "?"}]},
            {"type": "function_call", "arguments": "{}"},
            {"type": "message", "content": [
              {"type": "output_text", "text": "ab", "logprobs": [
                {"token": "a", "bytes": [97], "logprob": -0.5, "top_logprobs": [{"token": "x", "bytes": [120], "logprob": -0.25}]},
                {"token": "b", "bytes": [98], "logprob": -1.5, "top_logprobs": []}]},
              {"type": "output_text", "text": "c", "logprobs": [{"token": "c", "bytes": [99], "logprob": -2.5}]}]}]})",
      "r.json");
  ASSERT_EQ(saved.texts.size(), 1U);
  EXPECT_EQ(saved.format, ResponseFormat::openai);
  EXPECT_EQ(saved.texts[0].unknown_before, 1U);
  ASSERT_EQ(saved.texts[0].tokens.size(), 3U);
  EXPECT_EQ(saved.texts[0].tokens[0].top.size(), 1U);
  EXPECT_EQ(saved.texts[0].tokens[2].text, "c");
  EXPECT_EQ(saved.texts[0].tokens[2].logprob, -2.5);
  EXPECT_THROW(
      parse_responses(R"({"output": [{"content": [{"type": "output_text", "text": "ab"}]}]})", "r.json"),
      Error);
}

// llama-perplexity computes each chunk with BOS in place of its first token, and saves the text's.
TEST(SavedLogprobs, ChunksAreReadWithBos) {
  const SavedResponses saved = read_responses(fixture("a_base.kld"));
  const auto tokenizer = load_tokenizer(test::source_dir() / "data/tinylm");
  ASSERT_TRUE(tokenizer->bos());
  const SavedText& chunk = saved.texts.back();
  const auto ids = [&](const SavedText& text, const Tokenizer* cutter) {
    return entire_text(text, cutter, {}, 1000).ids;
  };
  std::vector<TokenId> as_saved;
  for (const SavedToken& token : chunk.tokens) as_saved.push_back(*token.id);
  ASSERT_NE(as_saved.front(), *tokenizer->bos());
  std::vector<TokenId> with_bos = as_saved;
  with_bos.front() = *tokenizer->bos();
  EXPECT_TRUE(needs_tokenizer(saved));
  EXPECT_EQ(ids(chunk, tokenizer.get()), with_bos);
  EXPECT_EQ(ids(chunk, nullptr), as_saved);
  SavedText other = chunk;
  other.bos_over_first = false;
  EXPECT_EQ(ids(other, tokenizer.get()), as_saved);
}

TEST(LumpedKl, OfAllAndOfSome) {
  const double half = std::log(0.5), quarter = std::log(0.25);
  const std::pair<double, double> all[] = {{half, quarter}, {half, std::log(0.75)}};
  EXPECT_NEAR(lumped_kl(all), 0.5 * std::log(2.0) + 0.5 * std::log(0.5 / 0.75), 1e-15);
  EXPECT_NEAR(lumped_kl(std::span(all, 1)), lumped_kl(all), 1e-15);  // what is left is the other one
  const std::pair<double, double> same[] = {{half, half}};
  EXPECT_EQ(lumped_kl(same), 0);
}

}  // namespace
}  // namespace assay::logprobs
