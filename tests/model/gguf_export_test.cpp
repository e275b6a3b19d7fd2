// Names, keys and tokenizers as llama.cpp's converter has them.
#include "core/model/gguf_export.h"

#include <gtest/gtest.h>

#include "core/formats/gguf_write.h"
#include "core/formats/sentencepiece_vocab.h"
#include "core/model/gguf_general.h"
#include "core/model/gguf_tokenizer.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

const fs::path kExport = test::source_dir() / "data/fixtures/gguf_export";

// The converter's own vocabulary-only file of the same folder.
TEST(GgufTokenizer, SentencePieceIsTheConverters) {
  const fs::path folder = kExport / "sentencepiece";
  const ModelConfig config = ModelConfig::read(folder / "config.json");
  const auto keys = gguf_tokenizer(folder, config, *gguf_family("llama"), "");
  const gguf::Header expected = gguf::read_header(File::open(kExport / "sentencepiece.gguf"));
  std::vector<gguf::KeyValue> tokenizer;
  for (const gguf::KeyValue& key : expected.metadata) {
    if (key.key.starts_with("tokenizer.")) tokenizer.push_back(key);
  }
  ASSERT_EQ(tokenizer.size(), 11u);
  EXPECT_EQ(gguf::serialize_header(keys, {}, 32), gguf::serialize_header(tokenizer, {}, 32));
}

TEST(GgufTokenizer, AVocabularyIsReadBackAsItWasWritten) {
  const fs::path file = kExport / "sentencepiece/tokenizer.model";
  const auto pieces = parse_sentencepiece_vocab(test::read_file(file), file);
  ASSERT_EQ(pieces.size(), 300u);
  EXPECT_EQ(pieces[0].text, "<unk>");
  EXPECT_EQ(pieces[0].type, SentencePiece::Type::unknown);
  EXPECT_EQ(pieces[3].text, "<0x00>");
  EXPECT_EQ(pieces[3].type, SentencePiece::Type::byte);
  const std::string written = serialize_sentencepiece_bpe(pieces, {}, true);
  const auto again = parse_sentencepiece_vocab(written, "written");
  ASSERT_EQ(again.size(), pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(again[i].text, pieces[i].text);
    EXPECT_EQ(again[i].score, pieces[i].score);
    EXPECT_EQ(again[i].type, pieces[i].type);
  }
}

TEST(GgufTokenizer, BrokenVocabulariesAreRefused) {
  const std::string bytes = test::read_file(kExport / "sentencepiece/tokenizer.model");
  EXPECT_THROW(parse_sentencepiece_vocab("", "x"), Error);
  EXPECT_THROW(parse_sentencepiece_vocab(std::string_view(bytes).substr(0, 7), "x"), Error);
  EXPECT_THROW(parse_sentencepiece_vocab(std::string(11, '\xFF'), "x"), Error);     // an endless number
  EXPECT_THROW(parse_sentencepiece_vocab("\x0A\xFF\xFF\xFF\xFF\x0F", "x"), Error);  // 4 GiB of nothing
  EXPECT_THROW(parse_sentencepiece_vocab(std::string("\x0A\x02\x18\x09", 4), "x"), Error);  // type 9
}

// Of the models' published tokenizer.json; names by convert_hf_to_gguf_update.py.
TEST(GgufTokenizer, PreTokenizersAreToldByTheirExpressions) {
  const auto split = [](const char* pattern) {
    return ParsedJson{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
  };
  const auto bytes = [](bool own) { return ParsedJson{{"type", "ByteLevel"}, {"use_regex", own}}; };
  const auto named = [](const std::vector<ParsedJson>& parts, std::string_view family = {},
                        bool whole = true) {
    return pre_tokenizer_name({{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", parts}}},
                               {"model", {{"ignore_merges", whole}}}},
                              family);
  };
  EXPECT_EQ(
      named(
          {split(
               R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
           bytes(false)}),
      "llama-bpe");
  EXPECT_EQ(
      named(
          {split(
               R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
           bytes(false)}),
      "qwen2");
  EXPECT_EQ(named({bytes(true)}), "gpt-2");
  EXPECT_EQ(named({{{"type", "Digits"}, {"individual_digits", true}}, bytes(true)}), "smollm");
  EXPECT_EQ(named({split(R"([\r\n])"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"), bytes(false)}),
            "deepseek-coder");
  EXPECT_EQ(named({split("[a-z]+"), bytes(false)}), "");
  EXPECT_EQ(pre_tokenizer_name(ParsedJson::object()), "");
  const fs::path tinylm = test::source_dir() / "data/tinylm/tokenizer.json";
  EXPECT_EQ(pre_tokenizer_name(read_json(tinylm)), "deepseek-v3");
  for (const char* name : {"qwen2", "qwen35", "tekken", "gpt-4o", "gpt-2", "smollm", "deepseek-v3",
                           "bailingmoe", "seed-coder", "exaone-moe", "jais-2"})
    EXPECT_EQ(pre_tokenizer_name({{"pre_tokenizer", pre_tokenizer_json(name)}}), name);
  for (const char* name : {"llama-bpe", "dbrx", "glm4", "smaug-bpe", "lfm2", "falcon-h1"})
    EXPECT_EQ(pre_tokenizer_json(name), pre_tokenizer_json("llama-bpe")) << name;
}

// One rule, several names: by whether a word that is a token is merged, by GLM's tokens, and by the family that the
// converter has the name of. Expressions as src/llama-vocab.cpp quotes them from the models' files.
TEST(GgufTokenizer, PreTokenizersOfOneRuleAreToldByTheRest) {
  const auto split = [](std::string_view pattern) {
    return ParsedJson{{"type", "Split"}, {"pattern", {{"Regex", std::string(pattern)}}}};
  };
  const ParsedJson bytes = {{"type", "ByteLevel"}, {"use_regex", false}};
  const auto named = [&](const ParsedJson& cutters, std::string_view family = {}, bool whole = false,
                         const char* added = "") {
    return pre_tokenizer_name({{"pre_tokenizer", cutters},
                               {"model", {{"ignore_merges", whole}}},
                               {"added_tokens", {{{"content", added}}}}},
                              family);
  };
  const ParsedJson llama = pre_tokenizer_json("llama-bpe"), qwen = pre_tokenizer_json("qwen2");
  EXPECT_EQ(named(llama, "llama", true), "llama-bpe");
  EXPECT_EQ(named(llama, "olmo2"), "dbrx");
  EXPECT_EQ(named(llama, "smollm3"), "smaug-bpe");
  EXPECT_EQ(named(llama, "lfm2", true), "lfm2");
  EXPECT_EQ(named(llama, "glm4_moe", false, "[gMASK]"), "glm4");
  EXPECT_EQ(named(qwen, "solar_open"), "solar-open");
  EXPECT_EQ(named(qwen, "qwen3"), "qwen2");
  EXPECT_EQ(named(pre_tokenizer_json("gpt-4o"), "minimax_m2"), "minimax-m2");
  EXPECT_EQ(named(pre_tokenizer_json("smollm"), "starcoder2"), "starcoder");
  const auto several = [&](std::vector<ParsedJson> parts) {
    parts.push_back(bytes);
    return named({{"type", "Sequence"}, {"pretokenizers", parts}});
  };
  const std::string words = qwen["pretokenizers"][0]["pattern"]["Regex"];
  EXPECT_EQ(several({split(R"([^\n]+|[\n]+)"), split(words)}), "laguna");
  EXPECT_EQ(several({split("[^\n]+|[\n]+"), split(words)}), "laguna");  // ends of lines as they are
  EXPECT_EQ(several({split(R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?x)")}), "kimi-k2");
  EXPECT_EQ(several({split(" ?[^(\\s|[.,!?…。，、।۔،])]+")}), "bloom");
  EXPECT_EQ(several({split(R"([x]+)"), split(words)}), "");
  const ParsedJson digits = {{"type", "Digits"}, {"individual_digits", false}},
                   punctuation = {{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                   gpt2 = {{"type", "ByteLevel"}, {"use_regex", true}};
  EXPECT_EQ(
      named({{"type", "Sequence"}, {"pretokenizers", {punctuation, gpt2, digits, split("[0-9][0-9][0-9]")}}}),
      "falcon");
}

// gguf-py's tests/test_metadata.py.
TEST(GgufGeneral, ModelNamesFallIntoParts) {
  const auto parts = [](std::string_view id, std::uint64_t parameters = 0) {
    const ModelNameParts p = model_name_parts(id, parameters);
    return std::vector<std::string>{p.name, p.organization, p.basename, p.finetune, p.version, p.size_label};
  };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(parts("Mistral/Mixtral-8x7B-Instruct-v0.1"),
            (Parts{"Mixtral-8x7B-Instruct-v0.1", "Mistral", "Mixtral", "Instruct", "v0.1", "8x7B"}));
  EXPECT_EQ(parts("Mixtral"), (Parts{"Mixtral", "", "", "", "", ""}));
  EXPECT_EQ(parts("Mixtral-8x7B"), (Parts{"Mixtral-8x7B", "", "Mixtral", "", "", "8x7B"}));
  EXPECT_EQ(parts("Llama-2-7b-chat-hf"), (Parts{"Llama-2-7b-chat-hf", "", "Llama-2", "chat-hf", "", "7B"}));
  EXPECT_EQ(parts("bigscience/bloom-7b1-petals"),
            (Parts{"bloom-7b1-petals", "bigscience", "bloom", "petals", "", "7.1B"}));
  EXPECT_EQ(parts("Qwen2-0.5B-Instruct"),
            (Parts{"Qwen2-0.5B-Instruct", "", "Qwen2", "Instruct", "", "0.5B"}));
  EXPECT_EQ(parts("NousResearch/Yarn-Llama-2-7b-64k", 7'000'000'000),
            (Parts{"Yarn-Llama-2-7b-64k", "NousResearch", "Yarn-Llama-2", "64k", "", "7B"}));
  EXPECT_EQ(parts("A model in words"), (Parts{"A model in words", "", "", "", "", ""}));
}

TEST(GgufGeneral, Titles) {
  EXPECT_EQ(title_of_id("Mixtral-8x7B-Instruct-v0.1"), "Mixtral 8x7B Instruct v0.1");
  EXPECT_EQ(title_of_id("llama-2-chat"), "Llama 2 Chat");
  EXPECT_EQ(title_of_id("qwen3moe"), "Qwen3Moe");  // Python's str.title
}

TEST(GgufGeneral, SizesAreNamedAsModelsAre) {
  const auto label = [](std::vector<GgufTensor> tensors) { return size_label(tensors); };
  const auto tensor = [](const char* name, std::vector<std::uint64_t> shape) {
    GgufTensor made;
    made.made.name = name;
    made.made.shape = std::move(shape);
    return made;
  };
  EXPECT_EQ(label({tensor("a.weight", {1000, 1000}), tensor("b.weight", {7000, 1000})}), "8.0M");
  EXPECT_EQ(label({tensor("a.weight", {134400})}), "134K");
  EXPECT_EQ(label({tensor("a.weight", {1000, 1000}), tensor("blk.0.ffn_up_exps.weight", {8, 7000, 1000})}),
            "8x8.0M");
}

}  // namespace
}  // namespace assay
