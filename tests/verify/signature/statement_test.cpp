// What a signed payload has to say, and what contradicts itself; base64 and times, which have one spelling each.
#include "verify/signature/statement.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/system/error.h"
#include "verify/signature/checkpoint.h"
#include "verify/signature/encoding.h"
#include "verify/signature/policy.h"

namespace assay::signature {
namespace {

using nlohmann::json;

struct Resource {
  std::string name;
  char digit = 'a';  // of the digest, all of them
  std::string algorithm = "sha256";
};
using Resources = std::vector<Resource>;
const json kFiles = {{"method", "files"}, {"hash_type", "sha256"}};

// A statement of these resources whose root digest is right.
json statement(const Resources& resources, const json& serialization = kFiles) {
  std::string digests;
  json listed = json::array();
  for (const Resource& one : resources) {
    const std::string digest(64, one.digit);
    digests += from_hex(digest).value();
    listed.push_back({{"name", one.name}, {"digest", digest}, {"algorithm", one.algorithm}});
  }
  json document = {{"_type", "https://in-toto.io/Statement/v1"},
                   {"predicateType", "https://model_signing/signature/v1.0"}};
  document["subject"] = json::array();
  document["subject"].push_back({{"name", "m"}, {"digest", {{"sha256", hex(sha256(digests))}}}});
  document["predicate"]["resources"] = listed;
  document["predicate"]["serialization"] = serialization;
  return document;
}

std::string refusal(const json& document) {
  try {
    parse_statement(document.dump());
    return "accepted";
  } catch (const Error& error) {
    return error.message();
  }
}

const json kShards = {{"method", "shards"}, {"hash_type", "sha256"}, {"shard_size", 1000.0}};

TEST(Statement, IsWhatItsPartsAre) {
  const json good = statement({{"a"}, {"b", 'b'}});
  EXPECT_EQ(refusal(good), "accepted");
  json other = good;
  other["predicate"]["resources"][0]["digest"] = std::string(64, 'c');
  EXPECT_EQ(refusal(other), "the subject's digest is not that of the files listed");
  other = good;
  other["subject"].push_back(good["subject"][0]);
  EXPECT_EQ(refusal(other), "it has to have one subject, the model");
  EXPECT_EQ(refusal(statement({{"a"}, {"a"}})), "'a' is listed twice");
  EXPECT_EQ(refusal(statement(Resources())), "it lists no file");
  EXPECT_EQ(refusal(statement(Resources{{"a", 'a', "blake3"}})),
            "a file is hashed by 'blake3' where hash_type is sha256");
  json serialization = kFiles;
  serialization["hash_type"] = "md5";
  EXPECT_EQ(refusal(statement(Resources{{"a"}}, serialization)),
            "its files are hashed by 'md5', which is not known here");
  serialization = kFiles;
  serialization["method"] = "lines";
  EXPECT_EQ(refusal(statement(Resources{{"a"}}, serialization)),
            "its files are serialized by 'lines', which is not known here");
}

TEST(Statement, ShardsFollowOneAnother) {
  EXPECT_EQ(refusal(statement({{"a:b:0:1000"}, {"a:b:1000:1500"}, {"c:0:7"}}, kShards)), "accepted");
  const Resources wrong[] = {{{"a:0:1000"}, {"a:1001:1500"}},
                             {{"a:0:500"}, {"a:500:900"}},
                             {{"a:0:1001"}},
                             {{"a:1000:2000"}},
                             {{"a:0:1000"}, {"a:1000:1000"}},
                             {{"a:0:0"}, {"a:0:1000"}},
                             {{"a:0:1000"}, {"a:0:1000"}}};
  for (const Resources& resources : wrong)
    EXPECT_NE(refusal(statement(resources, kShards)).find("does not follow"), std::string::npos)
        << resources.back().name;
  EXPECT_EQ(refusal(statement(Resources{{"a"}}, kShards)), "'a' is no shard of a file");
}

// By their names, as the specification sorts them, "a:10000:…" stands before "a:2000:…".
TEST(Statement, ShardsMayBeListedByTheirNames) {
  Resources resources;
  for (int i = 0; i < 12; ++i)
    resources.push_back({fmt::format("a:{}:{}", i * 1000, (i + 1) * 1000), "0123456789ab"[i]});
  resources.push_back({"a-b:0:7"});
  std::sort(resources.begin(), resources.end(),
            [](const Resource& one, const Resource& other) { return one.name < other.name; });
  ASSERT_EQ(resources[2].name, "a:10000:11000");
  const SignedModel model = parse_statement(statement(resources, kShards).dump());
  ASSERT_EQ(model.files.size(), 2u);
  EXPECT_EQ(model.files[0].name, "a");
  EXPECT_EQ(model.files[0].size, 12000u);
  EXPECT_EQ(hex(model.files[0].digests.at(2)), std::string(64, '2')) << "in the order of the bytes";
}

TEST(Statement, IsReadAsItIsWritten) {
  SignedModel model;
  model.name = "m";
  model.files = {{"b", 0, {sha256("b")}}, {"a", 0, {sha256("a")}}};
  const SignedModel read = parse_statement(write_statement(model));
  EXPECT_EQ(read.files.at(0).name, "a");
  EXPECT_EQ(read.root, hex(sha256(sha256("a") + sha256("b"))));
}

TEST(Base64, HasOneSpelling) {
  for (const std::string text : {"", "f", "fo", "foo", "\xff\xfe\xfd\xfc"})
    EXPECT_EQ(decode_base64(encode_base64(text)), text);
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  for (const char* bad : {"Zm8", "Zm9=", "Zh==", "Zg=", "Zg==\n", "Z===", "====", "Zm-v", "Zg==Zg=="})
    EXPECT_FALSE(decode_base64(bad)) << bad;
}

TEST(Times, AreInUtc) {
  EXPECT_EQ(parse_time_ms("1970-01-02T00:00:01Z"), 86'401'000);
  EXPECT_EQ(parse_time_ms("2022-10-31T23:59:59.999Z"), 1'667'260'799'999);
  EXPECT_EQ(show_time(1'667'260'799), "2022-10-31 23:59:59 UTC");
  for (const char* bad : {"2022-10-31", "2022-13-01T00:00:00Z", "2022-10-31T24:00:00Z",
                          "2022-10-31T23:59:59+01:00", "2022-10-31T23:59:59.Z", "2022-02-30T00:00:00Z"})
    EXPECT_THROW(parse_time_ms(bad), Error) << bad;
}

TEST(Encoding, OfTheFirstReleaseIsPythonsRepr) {
  EXPECT_EQ(pae("t", "p"), "DSSEv1 1 t 1 p");
  EXPECT_EQ(pae_of_first_release("t", "a\n\"\\\xff"), R"(DSSEV1 1 t 5 b'a\n"\\\xff')");
  EXPECT_EQ(pae_of_first_release("t", "it's"), R"(DSSEV1 1 t 4 b"it's")");
  EXPECT_EQ(pae_of_first_release("t", "'\""), R"(DSSEV1 1 t 2 b'\'"')");
}

// RFC 6962, every leaf of trees of up to 20.
TEST(InclusionProof, LeadsToTheRoot) {
  struct Tree {
    static std::string root(const std::vector<std::string>& leaves) {
      if (leaves.size() == 1) return leaf_hash(leaves[0]);
      const std::size_t half = half_of(leaves.size());
      return sha256("\x01" + root({leaves.begin(), leaves.begin() + static_cast<long>(half)}) +
                    root({leaves.begin() + static_cast<long>(half), leaves.end()}));
    }
    static std::vector<std::string> proof(const std::vector<std::string>& leaves, std::size_t index) {
      if (leaves.size() == 1) return {};
      const std::size_t half = half_of(leaves.size());
      const std::vector<std::string> left(leaves.begin(), leaves.begin() + static_cast<long>(half));
      const std::vector<std::string> right(leaves.begin() + static_cast<long>(half), leaves.end());
      auto path = index < half ? proof(left, index) : proof(right, index - half);
      path.push_back(root(index < half ? right : left));
      return path;
    }
    static std::size_t half_of(std::size_t count) {
      std::size_t half = 1;
      while (half * 2 < count) half *= 2;
      return half;
    }
  };
  std::vector<std::string> leaves;
  for (std::int64_t size = 1; size <= 20; ++size) {
    leaves.push_back("entry " + std::to_string(size));
    for (std::int64_t index = 0; index < size; ++index) {
      auto proof = Tree::proof(leaves, static_cast<std::size_t>(index));
      const std::string leaf = leaf_hash(leaves[static_cast<std::size_t>(index)]);
      EXPECT_EQ(root_from_proof(index, size, leaf, proof), Tree::root(leaves)) << index << " of " << size;
      proof.push_back(leaf);
      EXPECT_NE(root_from_proof(index, size, leaf, proof), Tree::root(leaves))
          << "longer than the tree is deep";
    }
  }
}

TEST(Policy, StarsStandForAnyPart) {
  EXPECT_TRUE(fits("*", "") && fits("*", "abc") && fits("a*c", "abbc") && fits("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(fits("a", "ab") || fits("a*c", "acd") || fits("", "a") || fits("a**b", "a"));
}

}  // namespace
}  // namespace assay::signature
