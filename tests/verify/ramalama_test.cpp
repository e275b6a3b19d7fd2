// RamaLama's store, as its own code wrote it (data/make_store_fixtures.py), whole, damaged and hostile.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

class RamaLama : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path from = source_dir() / "data" / "fixtures" / "stores" / "ramalama";
    fs::copy(from, base(), fs::copy_options::recursive);
  }
  fs::path base() const { return dir_ / "ramalama"; }
  fs::path model() const { return base() / "store" / "huggingface" / "org" / "small"; }
  fs::path ref() const { return model() / "refs" / "latest.json"; }
  json read_ref() const { return json::parse(read_file(ref())); }
  fs::path blob(std::size_t file) const {
    std::string name = read_ref()["files"][file]["hash"];
    name[6] = '-';
    return model() / "blobs" / name;
  }
  fs::path snapshot(const std::string& name) const {
    return model() / "snapshots" / ("sha256-" + std::string(64, '1')) / name;
  }
  static ProcessResult verify(const fs::path& path) { return assay({"verify", path}); }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }
  TempDir dir_;
};

TEST_F(RamaLama, AllModelsOrOne) {
  for (const fs::path& path : {base(), base() / "store", base() / "store" / "huggingface"}) {
    const auto result = verify(path);
    EXPECT_EQ(result.exit_code, 0) << path << result.out << result.err;
    EXPECT_TRUE(says(result, "org/small:latest/small.gguf: OK")) << result.out;
  }
  EXPECT_TRUE(says(verify(base()), "ollama/library/tiny:1b/tiny: OK"));
  for (const fs::path& path : {model(), model() / "snapshots", blob(0)}) {
    const auto result = verify(path);
    EXPECT_EQ(result.exit_code, 0) << path << result.out << result.err;
    EXPECT_TRUE(says(result, "small:latest/small.gguf: OK") && !says(result, "tiny")) << result.out;
  }
}

// RamaLama calls it by the SHA-256 of "config.json".
TEST_F(RamaLama, FilesNamedByTheirNamesAreVouchedForByNobody) {
  const auto result = verify(base());
  EXPECT_TRUE(says(result, "small:latest/config.json: not checked") &&
              says(result, "under a hash of the name"))
      << result.out;
}

TEST_F(RamaLama, DamagedMissingAndTruncatedBlobs) {
  const std::string good = read_file(blob(0));
  for (const std::string& bytes : {std::string(good.size(), '\0'), good.substr(0, good.size() - 1)}) {
    write_file(blob(0), bytes);
    const auto result = verify(base());
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(says(result, "small.gguf: FAILED")) << result.out;
  }
  fs::remove(blob(0));
  const auto result = verify(model());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "small.gguf: MISSING")) << result.out;
}

TEST_F(RamaLama, SnapshotsThatAreNotTheirBlobs) {
  fs::remove(snapshot("small.gguf"));
  EXPECT_TRUE(says(verify(model()), "is not in its snapshot"));
  fs::create_symlink("../../../elsewhere", snapshot("small.gguf"));
  EXPECT_TRUE(says(verify(model()), "is a link in its snapshot to something else"));
  EXPECT_EQ(verify(model()).exit_code, 1);
  fs::remove(snapshot("small.gguf"));
  fs::create_symlink(blob(0), snapshot("small.gguf"));
  EXPECT_EQ(verify(model()).exit_code, 0);
  fs::remove(snapshot("small.gguf"));
  std::string copy = read_file(blob(0));
  write_file(snapshot("small.gguf"), copy);
  EXPECT_EQ(verify(model()).exit_code, 0) << "a copy";
  copy.back() = 'x';
  write_file(snapshot("small.gguf"), copy);
  EXPECT_EQ(verify(model()).exit_code, 1) << "a damaged copy";
}

TEST_F(RamaLama, OrphansAndPartialDownloads) {
  write_file(model() / "blobs" / ("sha256-" + std::string(64, '3')), "nobody's");
  write_file(model() / "blobs" / ("sha256-" + std::string(64, '4') + ".partial"), "some");
  const auto result = verify(base());
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(says(result, "1 blob is of no reference") &&
              says(result, "what an interrupted download has left"))
      << result.out;
}

TEST_F(RamaLama, HostileAndMalformedReferences) {
  json changed = read_ref();
  for (const char* hash : {"sha256:../../../etc/passwd", "sha256:12", ""}) {
    changed["files"][0]["hash"] = hash;
    write_file(ref(), changed.dump());
    EXPECT_EQ(verify(base()).exit_code, 1) << hash;
    EXPECT_TRUE(says(verify(base()), "which is no SHA-256")) << hash;
  }
  changed = read_ref();
  changed["files"][0] = {{"name", "../../up"}, {"hash", "sha256:" + std::string(64, '0')}, {"type", "gguf"}};
  write_file(ref(), changed.dump());
  EXPECT_TRUE(says(verify(base()), "not a name of a file below the folder"));
  for (const char* text : {"[]", "{\"hash\": 7, \"files\": []}", "not JSON"}) {
    write_file(ref(), text);
    EXPECT_EQ(verify(base()).exit_code, 1) << text;
  }
}

}  // namespace
}  // namespace assay::test
