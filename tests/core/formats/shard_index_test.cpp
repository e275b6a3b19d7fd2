#include "core/formats/shard_index.h"

#include "core/formats/shard_numbering.h"

#include <algorithm>

#include "core/system/error.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using safetensors::Header;

ShardIndex parse(std::string_view text) {
  return parse_shard_index(text, "model.safetensors.index.json");
}

// "code file tensor", for comparing with what was planted.
std::vector<std::string> summary(const Findings& findings) {
  std::vector<std::string> lines;
  for (const Finding& f : findings)
    lines.push_back(f.code + " " + f.file + (f.tensor.empty() ? "" : " " + f.tensor));
  std::sort(lines.begin(), lines.end());
  return lines;
}

using Lines = std::vector<std::string>;

Header header_of(std::vector<std::string> names) {
  Header header;
  std::uint64_t end = 0;
  for (std::string& name : names) {
    header.tensors.push_back({std::move(name), ElementType::F8_E4M3, {4}, end, end + 4});
    end += 4;
  }
  return header;
}

TEST(ShardIndex, ReadsNamesAndTotal) {
  const ShardIndex index = parse(
      R"({"metadata":{"total_size":12,"total_parameters":[6,{"x":1.5}]},)"
      R"("weight_map":{"b":"m-2.safetensors","a":"m-1.safetensors","c\u0064":"m-2.safetensors"},"more":{"a":null}})");
  EXPECT_EQ(index.total_size, 12u);
  EXPECT_EQ(index.weight_map.size(), 3u);
  EXPECT_EQ(index.weight_map.at("cd"), "m-2.safetensors");
  EXPECT_EQ(index.shards(), (Lines{"m-1.safetensors", "m-2.safetensors"}));
}

TEST(ShardIndex, TotalSizeIsOptional) {
  EXPECT_EQ(parse(R"({"weight_map":{}})").total_size, std::nullopt);
  EXPECT_EQ(parse(R"({"metadata":{"total_size":1.2e9},"weight_map":{}})").total_size, std::nullopt);
  EXPECT_EQ(parse(R"({"metadata":{"deep":{"total_size":3}},"weight_map":{}})").total_size, std::nullopt);
}

TEST(ShardIndex, RefusesWhatIsNoIndex) {
  for (const std::string_view text :
       {"", "[]", "null", "{}", "{\"weight_map\":[]}", "{\"weight_map\":null}", "{\"weight_map\":\"x\"}",
        "{\"weight_map\":{\"a\":1}}", "{\"weight_map\":{\"a\":null}}", "{\"weight_map\":{\"a\":[\"x\"]}}",
        "{\"weight_map\":{\"a\":{\"b\":\"x\"}}}", "{\"weight_map\":{},\"weight_map\":{}}",
        "{\"metadata\":{\"weight_map\":{}}}", "\xEF\xBB\xBF{\"weight_map\":{}}", "{\"weight_map\":{}}x",
        "{\"weight_map\":{\"a\":\"x\"}", "version https://git-lfs.github.com/spec/v1\n"}) {
    EXPECT_THROW(parse(text), Error) << text;
  }
  EXPECT_THROW(parse(std::string(1'000'000, '[')), Error);
  EXPECT_THROW(parse("{\"weight_map\":{}}" + std::string(1, '\0')), Error);
}

TEST(ShardIndex, RefusesTheSameTensorTwiceAlsoWhenEscaped) {
  EXPECT_THROW(parse(R"({"weight_map":{"a":"x","a":"x"}})"), Error);
  EXPECT_THROW(parse(R"({"weight_map":{"a":"x","\u0061":"y"}})"), Error);
}

TEST(ShardIndex, RefusesShardNamesThatLeaveTheFolder) {
  for (const std::string_view name :
       {"../x", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\\\\b", "C:x", "a\\u0000b"}) {
    const std::string text = "{\"weight_map\":{\"a\":\"" + std::string(name) + "\"}}";
    EXPECT_THROW(parse(text), Error) << name;
  }
}

TEST(ShardName, IsParsed) {
  const auto deepseek = parse_shard_name("model-00001-of-000163.safetensors");
  ASSERT_TRUE(deepseek);
  EXPECT_EQ(deepseek->stem, "model");
  EXPECT_EQ(deepseek->number, 1u);
  EXPECT_EQ(deepseek->count, 163u);
  EXPECT_EQ(deepseek->extension, ".safetensors");
  const auto gguf = parse_shard_name("DeepSeek-R1-Q4_K_M-00003-of-00009.gguf");
  ASSERT_TRUE(gguf);
  EXPECT_EQ(gguf->stem, "DeepSeek-R1-Q4_K_M");
  EXPECT_EQ(gguf->count, 9u);
  EXPECT_EQ(parse_shard_name("model-00001-of-00002.fp16.safetensors")->extension, ".fp16.safetensors");
  for (const std::string_view name :
       {"model.safetensors", "model-1-of-.safetensors", "model--of-2.safetensors", "model-x-of-2.gguf",
        "-of-2.gguf", "model-1-of-2x.gguf", "model-1-of-99999999999999999999.gguf",
        "model-1-of-18446744073709551615.gguf", ""}) {
    EXPECT_FALSE(parse_shard_name(name)) << name;
  }
}

TEST(ShardNumbering, NamesWhatIsWrong) {
  const auto check = [](Lines names) { return summary(check_shard_numbering(names)); };
  EXPECT_EQ(check({"m-1-of-2.gguf", "m-2-of-2.gguf", "other.gguf"}), Lines{});
  EXPECT_EQ(check({"m-00001-of-000004.safetensors"}),
            Lines{"index.number_missing m-00002-of-000004.safetensors"});
  EXPECT_EQ(check({"m-2-of-3.s", "m-3-of-3.s"}), Lines{"index.number_missing m-1-of-3.s"});
  EXPECT_EQ(check({"m-1-of-3.s", "m-3-of-3.s"}), Lines{"index.number_missing m-2-of-3.s"});
  EXPECT_EQ(check({"m-0-of-1.s", "m-1-of-1.s", "m-2-of-1.s"}),
            (Lines{"index.number_out_of_range m-0-of-1.s", "index.number_out_of_range m-2-of-1.s"}));
  EXPECT_EQ(check({"m-01-of-1.s", "m-1-of-1.s"}), Lines{"index.number_twice m-1-of-1.s"});
  EXPECT_EQ(check({"m-1-of-1.s", "m-1-of-2.s", "m-2-of-2.s"}), Lines{"index.counts_differ m-1-of-1.s"});
}

TEST(ShardNumbering, CountsFromZeroToo) {
  const auto check = [](Lines names) { return summary(check_shard_numbering(names)); };
  EXPECT_EQ(check({"m-0-of-2.bin", "m-1-of-2.bin"}), Lines{"index.number_from_zero m-0-of-2.bin"});
  EXPECT_EQ(check({"m-0-of-3.bin", "m-2-of-3.bin"}),
            (Lines{"index.number_from_zero m-0-of-3.bin", "index.number_missing m-1-of-3.bin"}));
  EXPECT_EQ(check({"m-0-of-2.gguf", "m-1-of-2.gguf"}),
            (Lines{"index.number_missing m-2-of-2.gguf", "index.number_out_of_range m-0-of-2.gguf"}))
      << "llama.cpp makes the names itself, from 1";
}

TEST(ShardNumbering, BloomsNumberFollowsAnUnderscore) {
  const Lines names = {"model_00001-of-00003.safetensors", "model_00003-of-00003.safetensors"};
  EXPECT_EQ(summary(check_shard_numbering(names)),
            Lines{"index.number_missing model_00002-of-00003.safetensors"});
}

// gpt-oss-20b: 00000, 00001 and 00002 "of-00002".
TEST(ShardNumbering, IsANoteWhereAnIndexNamesTheShards) {
  const auto errors = [](const Lines& names, const Lines& indexed) {
    return has_errors(check_shard_numbering(names, indexed));
  };
  const Lines gpt_oss = {"m-0-of-2.s", "m-1-of-2.s", "m-2-of-2.s"};
  EXPECT_TRUE(errors(gpt_oss, {}));
  EXPECT_FALSE(errors(gpt_oss, gpt_oss));
  EXPECT_EQ(summary(check_shard_numbering(gpt_oss, gpt_oss)), Lines{"index.number_out_of_range m-0-of-2.s"});
  EXPECT_FALSE(errors({"m-1-of-3.s"}, {"m-1-of-3.s"})) << "a gap that the index has as well";
  EXPECT_FALSE(errors({"m-1-of-1.s", "m-01-of-1.s"}, {"m-1-of-1.s"}));
  EXPECT_FALSE(errors({"m-1-of-1.s", "m-1-of-2.s"}, {"m-1-of-1.s"}));
  EXPECT_TRUE(errors({"m-1-of-1.s", "other-1-of-2.s"}, {"m-1-of-1.s"})) << "a set that no index names";
  EXPECT_EQ(check_shard_numbering(Lines{"m-1-of-2.s"}, Lines{"m-1-of-2.s", "m-2-of-2.s"}).size(), 0u)
      << "an indexed shard that is not here is the index check's to tell";
}

TEST(ShardNumbering, AnAbsurdCountIsOneFinding) {
  const std::vector<std::string> names = {"m-1-of-4000000000.s"};
  EXPECT_EQ(check_shard_numbering(names).size(), 1u);
}

class ShardIndexCheck : public testing::Test {
 protected:
  Header one_ = header_of({"a", "b"}), two_ = header_of({"c"});
  ShardIndex index_ = parse(R"({"metadata":{"total_size":12},"weight_map":{"a":"1.s","b":"1.s","c":"2.s"}})");
  std::vector<ShardHeader> shards_ = {{"1.s", &one_}, {"2.s", &two_}};
  Lines check() const { return summary(check_shard_index(index_, "idx", shards_)); }
};

TEST_F(ShardIndexCheck, IsSilentWhenAllAgrees) {
  EXPECT_EQ(check(), Lines{});
}

TEST_F(ShardIndexCheck, MissingShardIsToldOnce) {
  shards_.erase(shards_.begin());
  EXPECT_EQ(check(), Lines{"index.shard_missing 1.s"});
}

TEST_F(ShardIndexCheck, UnreadableShardBlamesNoTensor) {
  shards_[0].header = nullptr;
  EXPECT_EQ(check(), Lines{});
}

TEST_F(ShardIndexCheck, TensorMissing) {
  one_ = header_of({"a"});
  EXPECT_EQ(check(), (Lines{"index.tensor_missing 1.s b", "index.total_size idx"}));
}

TEST_F(ShardIndexCheck, TensorInAnotherShard) {
  one_ = header_of({"a"});
  two_ = header_of({"b", "c"});
  EXPECT_EQ(check(), Lines{"index.tensor_misplaced 1.s b"});
}

TEST_F(ShardIndexCheck, TensorInTwoShards) {
  two_ = header_of({"b", "c"});
  EXPECT_EQ(check(), (Lines{"index.tensor_twice 2.s b", "index.total_size idx"}));
}

TEST_F(ShardIndexCheck, TensorInNoIndex) {
  index_.weight_map.erase("b");
  EXPECT_EQ(check(), Lines{"index.tensor_unlisted 1.s b"});
}

TEST_F(ShardIndexCheck, ShardInNoIndex) {
  const Header three = header_of({"x"});
  shards_.push_back({"3.s", &three});
  EXPECT_EQ(check(), (Lines{"index.shard_unlisted 3.s", "index.tensor_unlisted 3.s x"}));
}

TEST_F(ShardIndexCheck, TotalSizeOfTwoBytesAnElementIsExplained) {
  index_.total_size = 24;  // 12 elements of one byte
  const Findings findings = check_shard_index(index_, "idx", shards_);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_NE(findings[0].message.find("2 x 12 elements"), std::string::npos) << findings[0].message;
  index_.total_size = 25;
  EXPECT_EQ(check_shard_index(index_, "idx", shards_)[0].message.find(" x "), std::string::npos);
}

TEST_F(ShardIndexCheck, ManyFaultsOfAKindAreCounted) {
  std::vector<std::string> names = {"a", "b"};
  for (int i = 0; i < 1000; ++i) names.push_back("extra" + std::to_string(i));
  one_ = header_of(names);
  const Findings findings = check_shard_index(index_, "idx", shards_);
  EXPECT_LT(findings.size(), 20u);
  const bool counted = std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
    return f.message.find("990 more") != std::string::npos;
  });
  EXPECT_TRUE(counted);
}

}  // namespace
}  // namespace assay
