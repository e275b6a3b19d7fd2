// Bills of materials that other programs wrote (data/make_store_fixtures.py), and others by hand, as sources of digests.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/formats/stream_digest.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

const char* const kAllForms[] = {"model.cdx.json", "model.spdx.json", "model.spdx", "model.spdx3.json"};

class BillOfMaterials : public ::testing::Test {
 protected:
  void SetUp() override { fs::copy(fixtures() / "model", model(), fs::copy_options::recursive); }
  static fs::path fixtures() { return source_dir() / "data" / "fixtures" / "stores"; }
  fs::path model() const { return dir_ / "model"; }
  ProcessResult verify(const fs::path& manifest, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"verify", model(), "--manifest", manifest, "--no-git"};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  ProcessResult verify_written(const json& document) const {
    write_file(dir_ / "bom.json", document.dump());
    return verify(dir_ / "bom.json");
  }
  void flip(const std::string& name) const {
    std::string bytes = read_file(model() / name);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_file(model() / name, bytes);
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }
  static json component(const std::string& name, const std::string& algorithm, const std::string& digest,
                        const std::string& type = "file") {
    return {
        {"type", type}, {"name", name}, {"hashes", json::array({{{"alg", algorithm}, {"content", digest}}})}};
  }
  static json cyclonedx(const json& components) {
    return {{"bomFormat", "CycloneDX"}, {"specVersion", "1.6"}, {"components", components}};
  }

  TempDir dir_;
};

TEST_F(BillOfMaterials, OfEveryProgramVouchesForEveryFile) {
  for (const char* form : kAllForms) {
    const auto result = verify(fixtures() / form, {"--require-digests"});
    EXPECT_EQ(result.exit_code, 0) << form << result.out << result.err;
    for (const char* name : {"model.safetensors: OK", "config.json: OK", "docs/README.md: OK"})
      EXPECT_TRUE(says(result, name)) << form << result.out;
  }
}

TEST_F(BillOfMaterials, NamesTheFileThatDiffers) {
  flip("model.safetensors");
  fs::remove(model() / "docs" / "README.md");
  for (const char* form : kAllForms) {
    const auto result = verify(fixtures() / form);
    EXPECT_EQ(result.exit_code, 1) << form;
    EXPECT_TRUE(says(result, "model.safetensors: FAILED") && says(result, "README.md: MISSING") &&
                says(result, "config.json: OK"))
        << form << result.out;
  }
}

TEST_F(BillOfMaterials, TakesTwoEntriesOfOneFileTogether) {
  const std::string name = "config.json", bytes = read_file(model() / name);
  const std::string sha256 = digest_of(DigestKind::sha256, std::as_bytes(std::span(bytes))).hex();
  const json strong = component(name, "SHA-256", sha256);
  for (const json& entries : {json::array({strong, component(name, "MD5", std::string(32, '0'))}),
                              json::array({component(name, "MD5", std::string(32, '0')), strong})}) {
    const auto result = verify_written(cyclonedx(entries));
    EXPECT_TRUE(says(result, "config.json: OK")) << result.out << result.err;
    EXPECT_FALSE(says(result, "MD5")) << result.out << result.err;
  }
  const auto two =
      verify_written(cyclonedx(json::array({strong, component(name, "SHA-256", std::string(64, '1'))})));
  EXPECT_EQ(two.exit_code, 1);
  EXPECT_TRUE(says(two, "two different hashes by sha256")) << two.out << two.err;
  const auto weak = verify_written(cyclonedx(json::array(
      {component(name, "MD5", std::string(32, '0')), component(name, "MD5", std::string(32, '1'))})));
  EXPECT_EQ(weak.exit_code, 1) << weak.out << weak.err;
}

TEST_F(BillOfMaterials, WeakHashesFindFaultsAndProveNothing) {
  const fs::path weak = fixtures() / "model.weak.spdx.json";
  const auto good = verify(weak);
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_TRUE(says(good, "WELL FORMED") && says(good, "3 files are consistent with the MD5")) << good.out;
  EXPECT_FALSE(says(good, ": OK")) << good.out;
  EXPECT_EQ(verify(weak, {"--require-digests"}).exit_code, 1);
  flip("model.safetensors");
  const auto bad = verify(weak);
  EXPECT_EQ(bad.exit_code, 1) << bad.out;
  EXPECT_TRUE(says(bad, "model.safetensors: FAILED") && says(bad, "does not have the")) << bad.out;
}

TEST_F(BillOfMaterials, StrongerHashesThanSha256) {
  const std::string digits = "0a" + std::string(94, '1');
  EXPECT_EQ(verify_written(cyclonedx(json::array({component("config.json", "SHA-384", digits)}))).exit_code,
            1);
  EXPECT_EQ(verify_written(cyclonedx(json::array({component("config.json", "SHA-512", digits)}))).exit_code,
            1)
      << "too short";
  const auto unknown =
      verify_written(cyclonedx(json::array({component("config.json", "Streebog-256", digits)})));
  EXPECT_TRUE(says(unknown, "by streebog256 alone, which is not computed here"))
      << unknown.out << unknown.err;
}

TEST_F(BillOfMaterials, NestedComponentsAndThoseThatAreNoFiles) {
  const std::string config = read_file(model() / "config.json");
  const std::string digits = digest_of(DigestKind::sha256, std::as_bytes(std::span(config))).hex();
  json outer = component("org/model", "SHA-256", digits, "machine-learning-model");
  outer["components"] = json::array({component("./config.json", "SHA-256", digits, "data"),
                                     component("lost.safetensors", "SHA-256", digits, "data")});
  const auto result = verify_written(cyclonedx(json::array({outer})));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "config.json: OK") && says(result, "lost.safetensors: MISSING") &&
              says(result, "1 components with hashes are no files here"))
      << result.out;
}

TEST_F(BillOfMaterials, OfOneFile) {
  const auto result =
      assay({"verify", model() / "model.safetensors", "--manifest", fixtures() / "model.weak.spdx.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(says(result, "model.safetensors: is consistent with the SHA-1")) << result.out;
  flip("model.safetensors");
  EXPECT_EQ(
      assay({"verify", model() / "model.safetensors", "--manifest", fixtures() / "model.weak.spdx.json"})
          .exit_code,
      1);
  EXPECT_EQ(
      assay({"verify", model() / "model.safetensors", "--manifest", fixtures() / "model.cdx.json"}).exit_code,
      1);
}

TEST_F(BillOfMaterials, HostileAndForeignDocuments) {
  const std::string digits(64, '0');
  EXPECT_TRUE(says(verify_written(cyclonedx(json::array({component("../up", "SHA-256", digits)}))),
                   "not a name of a file below the folder"));
  EXPECT_EQ(verify_written(cyclonedx(json::array({component("config.json", "SHA-256", "xyz")}))).exit_code,
            1);
  EXPECT_EQ(verify_written(cyclonedx(json::array())).exit_code, 2) << "lists nothing";
  EXPECT_TRUE(says(verify(fixtures() / "model.cdx.xml"), "CycloneDX as XML, which is not read here"));
  write_file(dir_ / "bom.yaml", "SPDXID: SPDXRef-DOCUMENT\nspdxVersion: SPDX-2.3\n");
  EXPECT_TRUE(says(verify(dir_ / "bom.yaml"), "SPDX as YAML, which is not read here"));
  write_file(dir_ / "bom.json", R"({"bomFormat": "CycloneDX", "components": [)");
  EXPECT_EQ(verify(dir_ / "bom.json").exit_code, 2);
}

// What stands in a comment is no entry.
TEST_F(BillOfMaterials, TextOfTagValueDocumentsIsSkipped) {
  write_file(dir_ / "a.spdx",
             "SPDXVersion: SPDX-2.3\nFileName: ./config.json\nFileComment: <text>\nFileName: "
             "./evil\nFileChecksum: SHA256: 00\n"
             "</text>\nFileChecksum: SHA1: " +
                 std::string(40, '0') + "\n");
  const auto result = verify(dir_ / "a.spdx");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "config.json: FAILED") && !says(result, "evil")) << result.out;
}

}  // namespace
}  // namespace assay::test
