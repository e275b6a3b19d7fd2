// Models in OCI layouts and in Docker Model Runner's store: layers under the names their publisher gave them, each by its
// digest; a pinned manifest; what is hostile or damaged.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/formats/stream_digest.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

class OciLayout : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(root() / "oci-layout", "{\"imageLayoutVersion\": \"1.0.0\"}");
    manifest_ = put(json{{"schemaVersion", 2},
                         {"config", describe("{}")},
                         {"layers", json::array({describe("weights", "model.bin"),
                                                 describe("text", "docs/README.md"), describe("no title")})}}
                        .dump());
    write_index(
        {{"digest", "sha256:" + manifest_}, {"annotations", {{"org.opencontainers.image.ref.name", "v1"}}}});
  }
  fs::path root() const { return dir_ / "layout"; }
  static std::string hex_of(std::string_view bytes) {
    return digest_of(DigestKind::sha256, std::as_bytes(std::span(bytes))).hex();
  }
  fs::path blob(const std::string& digits) const { return root() / "blobs" / "sha256" / digits; }
  std::string put(const std::string& bytes) const {
    write_file(blob(hex_of(bytes)), bytes);
    return hex_of(bytes);
  }
  json describe(const std::string& bytes, const std::string& title = "") const {
    json out = {{"digest", "sha256:" + put(bytes)}, {"size", bytes.size()}};
    if (!title.empty()) out["annotations"] = {{"org.cncf.model.filepath", title}};
    return out;
  }
  void write_index(const json& descriptor) const {
    write_file(root() / "index.json",
               json{{"schemaVersion", 2}, {"manifests", json::array({descriptor})}}.dump());
  }
  ProcessResult verify(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"verify", root()};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }

  TempDir dir_;
  std::string manifest_;
};

TEST_F(OciLayout, EveryLayerUnderItsName) {
  const auto result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* name : {"v1/model.bin: OK", "v1/docs/README.md: OK", "v1/layer: OK", "v1/config: OK"})
    EXPECT_TRUE(says(result, name)) << name << result.out;
  EXPECT_TRUE(says(result, "blobs/sha256/" + manifest_ + ": OK")) << result.out;
}

TEST_F(OciLayout, DamagedAndMissingLayers) {
  write_file(blob(hex_of("weights")), std::string(7, '\0'));
  fs::remove(blob(hex_of("text")));
  const auto result = verify();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "v1/model.bin: FAILED") && says(result, "v1/docs/README.md: MISSING"))
      << result.out;
}

TEST_F(OciLayout, OrphansAndIndexesOfIndexes) {
  const std::string inner =
      put(json{{"manifests", json::array({{{"digest", "sha256:" + manifest_}}})}}.dump());
  write_index({{"digest", "sha256:" + inner}});
  put("nobody's");
  const auto result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(says(result, "/model.bin: OK") && says(result, "1 blob is of no manifest: 8 bytes"))
      << result.out;
}

TEST_F(OciLayout, APinnedManifest) {
  const std::string pin = "sha256:" + manifest_;
  const auto good = verify({"--digest", pin});
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_TRUE(says(good, "the manifest that you pinned")) << good.out;
  std::string text = read_file(blob(manifest_));
  text.insert(1, " ");
  write_file(blob(manifest_), text);
  EXPECT_EQ(verify({"--digest", pin}).exit_code, 1);
  EXPECT_EQ(verify({"--digest", "sha256:" + std::string(64, '0')}).exit_code, 1) << "missing";
  EXPECT_EQ(verify({"--digest", "sha512:00"}).exit_code, 2);
}

TEST_F(OciLayout, HostileDocuments) {
  for (const char* digest : {"sha256:../../../etc/passwd", "sha256:ABC", "", "sha512:00"}) {
    write_index({{"digest", digest}});
    EXPECT_EQ(verify().exit_code, 1) << digest;
  }
  write_index(
      {{"digest", "sha256:" + put(json{{"layers", json::array({describe("x", "../../up")})}}.dump())}});
  EXPECT_TRUE(says(verify(), "not a name of a file below the folder"));
  const std::string itself = put("{\"layers\": 7}");
  write_index({{"digest", "sha256:" + itself}});
  EXPECT_EQ(verify().exit_code, 1);
  write_file(root() / "index.json", "[]");
  EXPECT_EQ(verify().exit_code, 2);
}

TEST_F(OciLayout, DockerModelRunnersStore) {
  fs::remove(root() / "oci-layout");
  fs::remove(root() / "index.json");
  fs::create_directories(root() / "manifests" / "sha256");
  fs::rename(blob(manifest_), root() / "manifests" / "sha256" / manifest_);
  write_file(root() / "layout.json", "{\"version\": \"1.0.0\"}");
  write_file(
      root() / "models.json",
      json{{"models", json::array({{{"id", "sha256:" + manifest_}, {"tags", {"ai/small:latest"}}}})}}.dump());
  const auto result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(says(result, "ai/small:latest/model.bin: OK")) << result.out;
  EXPECT_TRUE(says(result, "manifests/sha256/" + manifest_ + ": OK")) << result.out;
}

}  // namespace
}  // namespace assay::test
