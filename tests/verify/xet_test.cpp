// Xet hashes of a listing and of a download's tree: what they prove, and what they do not.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "core/formats/stream_digest.h"
#include "core/formats/xet/xet_hash.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
XetDigests xet_of(const std::string& text) {
  XetHasher hasher;
  hasher.update(bytes_of(text));
  return hasher.finish();
}
std::string sha256_of(const std::string& text) {
  return digest_of(DigestKind::sha256, bytes_of(text)).hex();
}

// A file that the chunkers cut differently: where they begin to look, at byte 8127, a cut follows within 64 bytes.
std::string cut_early() {
  std::mt19937_64 random(1);
  std::string start;
  std::optional<std::size_t> cut;
  while (!cut || *cut < 20 || *cut > 60) {
    start.clear();
    for (int i = 0; i < 64; ++i) start += static_cast<char>(random());
    cut = xet::first_cut(0, bytes_of(start));
  }
  return std::string(8127, 'x') + start + std::string(30000, 'y');
}

class XetListing : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    write_file(dir_ / "model" / name, content);
  }
  void list(const json& listing) { write_file(dir_ / "listing.json", listing.dump()); }
  static json bucket_file(const std::string& name, const std::string& content, const Digest& xet) {
    return {{"type", "file"},
            {"path", name},
            {"size", content.size()},
            {"xetHash", xet.hex()},
            {"mtime", "2026-01-01T00:00:00.000Z"}};
  }
  static json repo_file(const std::string& name, const std::string& content, const std::string& xet) {
    return {{"type", "file"},
            {"path", name},
            {"oid", std::string(40, 'a')},
            {"size", content.size()},
            {"lfs", {{"oid", sha256_of(content)}, {"size", content.size()}, {"pointerSize", 130}}},
            {"xetHash", xet}};
  }
  ProcessResult verify(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"verify", dir_ / "model", "--manifest", dir_ / "listing.json"};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  json report(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--json", "-"});
    return json::parse(verify(more).out);
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return result.out.find(words) != std::string::npos;
  }

  TempDir dir_;
  const std::string content_ = std::string(300000, 'w') + "end", other_ = cut_early();
};

TEST_F(XetListing, OfABucketIsTheDigestOfEachFile) {
  ASSERT_NE(xet_of(other_).current, xet_of(other_).older);
  put("weights.dat", content_);
  put("sub/old.dat", other_);
  put("empty.dat", "");
  list({{{"type", "directory"}, {"path", "sub"}},
        bucket_file("weights.dat", content_, xet_of(content_).current),
        bucket_file("empty.dat", "", xet_of("").current),
        bucket_file("sub/old.dat", other_, xet_of(other_).older)});
  const ProcessResult plain = verify();
  EXPECT_EQ(plain.exit_code, 0) << plain.out << plain.err;
  EXPECT_TRUE(says(plain, "sub/old.dat: OK")) << plain.out;
  EXPECT_FALSE(says(plain, "PROVEN"));
  const ProcessResult told = verify({"--xet"});
  EXPECT_TRUE(says(told, "weights.dat: PROVEN by both chunkers: " + xet_of(content_).current.hex()))
      << told.out;
  EXPECT_TRUE(says(told, "sub/old.dat: PROVEN by the chunker until September 2025: ")) << told.out;
  const json made = report();
  EXPECT_EQ(made["summary"]["xet"]["proven"], 3);
  for (const json& file : made["files"]) {
    EXPECT_EQ(file["digest"], "xet");
    EXPECT_EQ(file["expected"], file["actual"]);
  }
}

TEST_F(XetListing, OfABucketFailsADamagedFile) {
  std::string damaged = content_;
  damaged[200000] ^= 1;
  put("weights.dat", damaged);
  list(json::array({bucket_file("weights.dat", content_, xet_of(content_).current)}));
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "weights.dat: FAILED")) << result.out;
  EXPECT_TRUE(says(result, "cut into other chunks")) << result.out;
}

TEST_F(XetListing, ProvesBesideASha256ButDoesNotFail) {
  put("weights.dat", content_);
  put("old.dat", other_);
  put("today.dat", other_);
  put("chunked_otherwise.dat", content_);
  list({repo_file("weights.dat", content_, xet_of(content_).current.hex()),
        repo_file("old.dat", other_, xet_of(other_).older.hex()),
        repo_file("today.dat", other_, xet_of(other_).current.hex()),
        repo_file("chunked_otherwise.dat", content_, std::string(64, '1'))});
  const ProcessResult result = verify({"--xet"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(says(result, "today.dat: PROVEN by the chunker of today")) << result.out;
  EXPECT_TRUE(says(result, "chunked_otherwise.dat: UNPROVEN: listed as " + std::string(64, '1')))
      << result.out;
  EXPECT_TRUE(says(result, "chunked_otherwise.dat: OK")) << result.out;
  const json made = report({"--xet"});
  EXPECT_EQ(made["summary"]["xet"], (json{{"proven", 3}, {"unproven", 1}, {"unlisted", 0}}));
  for (const json& file : made["files"]) {
    EXPECT_EQ(file["digest"], "sha256");
    if (file["name"] != "old.dat") continue;
    EXPECT_EQ(file["xet"]["dialect"], "older");
    EXPECT_EQ(file["xet"]["older"], xet_of(other_).older.hex());
    EXPECT_EQ(file["xet"]["current"], xet_of(other_).current.hex());
  }
  // And not asked for, not computed.
  EXPECT_FALSE(report()["files"][0].contains("xet"));
}

// Damaged bytes fail by their sha256, whatever a Xet hash says.
TEST_F(XetListing, DoesNotExcuseAWrongSha256) {
  put("weights.dat", content_);
  json entry = repo_file("weights.dat", content_, xet_of(content_).current.hex());
  entry["lfs"]["oid"] = std::string(64, '2');
  list(json::array({entry}));
  EXPECT_EQ(verify({"--xet"}).exit_code, 1);
}

TEST_F(XetListing, TellsOfHashesThatAreNone) {
  put("weights.dat", content_);
  list(json::array({repo_file("weights.dat", content_, "none")}));
  const ProcessResult beside = verify({"--xet"});
  EXPECT_EQ(beside.exit_code, 0) << beside.out;
  EXPECT_TRUE(says(beside, "'none'")) << beside.out;
  json alone = bucket_file("weights.dat", content_, xet_of(content_).current);
  alone["xetHash"] = "none";
  list(json::array({alone}));
  EXPECT_EQ(verify().exit_code, 1);
}

TEST_F(XetListing, IsReadFromADownloadsTree) {
  const std::string commit(40, 'c');
  put("model.dat", content_);
  write_file(dir_ / "model/.cache/huggingface/download/model.dat.metadata",
             commit + "\n" + sha256_of(content_) + "\n1700000000.5\n");
  write_file(dir_ / "model/.cache/huggingface/trees" / (commit + ".json"),
             json{{"format_version", 1},
                  {"files",
                   {{"model.dat",
                     {{"size", content_.size()},
                      {"blob_id", std::string(40, 'a')},
                      {"lfs_sha256", sha256_of(content_)},
                      {"lfs_size", content_.size()},
                      {"xet_hash", xet_of(content_).current.hex()}}}}}}
                 .dump());
  const ProcessResult result = assay({"verify", dir_ / "model", "--xet", "--no-git"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(says(result, "model.dat: PROVEN")) << result.out;
}

// Nobody says anything of the file: its hashes are told.
TEST_F(XetListing, IsNotNeededToHaveTheHashes) {
  put("model.dat", other_);
  const ProcessResult result = assay({"verify", dir_ / "model/model.dat", "--xet", "--no-git"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(says(result, "model.dat: computed " + xet_of(other_).current.hex())) << result.out;
  EXPECT_TRUE(says(result, xet_of(other_).older.hex())) << result.out;
  EXPECT_EQ(assay({"verify", dir_ / "model", "--xet", "--quick"}).exit_code, 2);
}

}  // namespace
}  // namespace assay::test
