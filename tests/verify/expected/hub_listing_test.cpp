#include "verify/expected/hub_listing.h"
#include "core/system/json.h"

#include "core/system/error.h"
#include "tests/verify/expected/hub_fixture.h"
#include "tests/verify/expected/lookup.h"

namespace assay {
namespace {

using namespace test;

std::string tree_entry(const std::string& path, const std::string& rest) {
  return R"({"type": "file", "path": ")" + path + "\", " + rest + "}";
}
const std::string kSmall = R"("oid": ")" + kConfigId + R"(", "size": 24)";
const std::string kLarge =
    R"("oid": "e3b660f2a77e2e189ed9519abdf2e3b94467d30e", "size": 5000, "xetHash": ")" +
    std::string(64, '1') + R"(",
                              "lfs": {"oid": ")" +
    kWeightsSha256 + R"(", "size": 5000, "pointerSize": 129})";

void expect_model(const HubListing& listing) {
  ASSERT_EQ(listing.files.size(), 2u);
  EXPECT_EQ(listing.files.at("config.json").digest, Digest::parse(DigestKind::git_sha1, kConfigId));
  EXPECT_EQ(listing.files.at("config.json").size, 24u);
  EXPECT_EQ(listing.files.at("sub/model.safetensors").digest,
            Digest::parse(DigestKind::sha256, kWeightsSha256));
  EXPECT_EQ(listing.files.at("sub/model.safetensors").size, 5000u);
  EXPECT_TRUE(listing.complete);
  EXPECT_TRUE(listing.findings.empty());
}

TEST(HubListing, ReadsTheTreeApi) {
  const std::string config = tree_entry("config.json", kSmall);
  const std::string model = tree_entry("sub/model.safetensors", kLarge);
  const std::string folder = R"({"type": "directory", "path": "sub", "oid": "x", "size": 0})";
  expect_model(parse_hub_listing("[" + config + "," + folder + "," + model + "]", "l.json"));
  expect_model(parse_hub_listing("[" + config + "]\n[" + folder + "," + model + "]\n", "l.json"));
  expect_model(parse_hub_listing("[[" + config + "],[" + folder + "," + model + "]]", "l.json"));
}

TEST(HubListing, ReadsTheModelApi) {
  expect_model(parse_hub_listing(R"({"id": "org/name", "sha": ")" + kCommit + R"(", "siblings": [
          {"rfilename": "config.json", "size": 24, "blobId": ")" +
                                     kConfigId + R"("},
          {"rfilename": "sub/model.safetensors", "size": 5000, "blobId": "e3b660f2a77e2e189ed9519abdf2e3b94467d30e",
           "lfs": {"sha256": ")" + kWeightsSha256 +
                                     R"(", "size": 5000, "pointerSize": 129}}]})",
                                 "l.json"));
  // Without ?blobs=true there are names only: completeness, no digests.
  const HubListing bare = parse_hub_listing(R"({"siblings": [{"rfilename": "config.json"}]})", "l.json");
  EXPECT_FALSE(bare.files.at("config.json").digest);
}

TEST(HubListing, ReadsModelScope) {
  const HubListing listing = parse_hub_listing(
      R"({"Code": 200, "Data": {"Files": [
          {"Path": "sub", "Type": "tree", "Size": 0, "Sha256": ""},
          {"Path": "sub/model.safetensors", "Type": "blob", "Size": 5000, "Sha256": ")" +
          kWeightsSha256 + R"("},
          {"Path": "README.md", "Type": "blob", "Size": 3, "Sha256": ""}]}})",
      "l.json");
  EXPECT_EQ(listing.files.size(), 2u);
  EXPECT_EQ(listing.files.at("sub/model.safetensors").digest,
            Digest::parse(DigestKind::sha256, kWeightsSha256));
  EXPECT_FALSE(listing.files.at("README.md").digest);
}

TEST(HubListing, ReadsTreeCaches) {
  const HubListing listing = parse_hub_listing(tree_json(), "l.json");
  EXPECT_EQ(listing.files.at("model.safetensors").digest, Digest::parse(DigestKind::sha256, kWeightsSha256));
  EXPECT_EQ(listing.files.at("config.json").digest, Digest::parse(DigestKind::git_sha1, kConfigId));
}

TEST(HubListing, KnowsWhenItMayBePartial) {
  const HubListing shallow =
      parse_hub_listing(R"([{"type": "directory", "path": "sub", "oid": "x", "size": 0}])", "l.json");
  EXPECT_FALSE(shallow.complete);
  std::string page = "[";
  for (int i = 0; i < 1000; ++i) page += (i > 0 ? "," : "") + tree_entry("f" + std::to_string(i), kSmall);
  EXPECT_FALSE(parse_hub_listing(page + "]", "l.json").complete);
  EXPECT_TRUE(parse_hub_listing(page + "] [" + tree_entry("last", kSmall) + "]", "l.json").complete);
}

TEST(HubListing, SurvivesHostileOnes) {
  for (const std::string name : {"../x", "/etc/passwd", "a/../../b", "c:\\\\x", ""}) {
    const HubListing listing = parse_hub_listing("[" + tree_entry(name, kSmall) + "]", "l.json");
    EXPECT_TRUE(listing.files.empty()) << name;
    EXPECT_NE(finding(listing.findings, "expected.unsafe_name"), nullptr) << name;
  }
  for (const std::string oid : {"", "zz", "../../etc", "ABC"}) {
    const HubListing listing =
        parse_hub_listing("[" + tree_entry("f", R"("oid": ")" + oid + "\"") + "]", "l.json");
    EXPECT_NE(finding(listing.findings, "listing.bad_digest", "f"), nullptr) << oid;
  }
  const HubListing twice =
      parse_hub_listing("[" + tree_entry("f", kSmall) + "," + tree_entry("f", kLarge) + "]", "l.json");
  EXPECT_NE(finding(twice.findings, "expected.contradiction", "f"), nullptr);
  for (const std::string text :
       {"", "   ", "[", "{}", "[1]", "[{}]", "[{\"type\": \"file\"}]", "null", "{\"siblings\": 3}",
        "{\"files\": []}", "[{\"type\": \"file\", \"path\": 7}]",
        "[{\"type\": \"file\", \"path\": \"f\", \"size\": -1}]", "]", "{\"Data\": {\"Files\": 1}}",
        "[\"\\"}) {
    EXPECT_THROW(parse_hub_listing(text, "l.json"), Error) << text;
  }
  EXPECT_THROW(parse_hub_listing(std::string(100000, '['), "l.json"), Error);
}

TEST(HubListing, BecomesAnExpectation) {
  const TempDir dir;
  write_file(dir / "list.json", "[" + tree_entry("config.json", kSmall) + "]");
  fs::create_directory(dir / "model");
  const Expectation away =
      expect_from_hub_listing(test::read_file(dir / "list.json"), dir / "list.json", dir / "model");
  EXPECT_EQ(away.path_of(away.files[0]), dir / "model" / "config.json");
  EXPECT_TRUE(away.complete);
  EXPECT_FALSE(away.files[0].trust->stored_beside);
  EXPECT_TRUE(expect_from_hub_listing(test::read_file(dir / "list.json"), dir / "list.json", dir.path())
                  .files[0]
                  .trust->stored_beside);
}

}  // namespace
}  // namespace assay
