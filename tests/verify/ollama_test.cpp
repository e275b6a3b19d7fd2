// A store as Ollama lays it out, and what goes wrong in one: blobs that are zeroed, cut off, missing, nobody's; manifests
// that name no digest, or a path.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/formats/stream_digest.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

std::string sha256_hex(std::string_view bytes) {
  return digest_of(DigestKind::sha256, std::as_bytes(std::span(bytes))).hex();
}

class OllamaStore : public ::testing::Test {
 protected:
  void SetUp() override {
    weights_ = std::string(3000, 'w');
    put_model("llama3", "8b",
              {layer("model", weights_), layer("template", "{{ .Prompt }}"), layer("license", "one"),
               layer("license", "two")});
    put_model("copy", "latest", {layer("model", weights_)});
  }

  fs::path models() const { return dir_ / "models"; }
  fs::path blob(const std::string& bytes) const {
    return models() / "blobs" / ("sha256-" + sha256_hex(bytes));
  }
  fs::path manifest(const std::string& model, const std::string& tag) const {
    return models() / "manifests" / "registry.ollama.ai" / "library" / model / tag;
  }
  json layer(const std::string& kind, const std::string& bytes, const std::string& name = "") const {
    write_file(blob(bytes), bytes);
    json out = {{"mediaType", "application/vnd.ollama.image." + kind},
                {"digest", "sha256:" + sha256_hex(bytes)},
                {"size", bytes.size()}};
    if (!name.empty()) out["name"] = name;
    return out;
  }
  void put_model(const std::string& model, const std::string& tag, const std::vector<json>& layers) const {
    const json config = layer("config", "{\"model_format\":\"gguf\",\"for\":\"" + model + "\"}");
    const json document = {{"schemaVersion", 2},
                           {"mediaType", "application/vnd.docker.distribution.manifest.v2+json"},
                           {"config", config},
                           {"layers", layers}};
    write_file(manifest(model, tag), document.dump());
  }
  static ProcessResult verify(const fs::path& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"verify", path};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }
  // The weights are no GGUF: what is wrong with them as such is not what these tests are about.
  static std::string status(const fs::path& path, const std::string& name) {
    const json report = json::parse(verify(path, {"--json", "-"}).out);
    for (const json& file : report["files"]) {
      if (file["name"] == name)
        return file["expected"] == file["actual"] ? "same" : file["status"].get<std::string>();
    }
    return "not listed";
  }

  TempDir dir_;
  std::string weights_;
};

const std::string kLlama = "registry.ollama.ai/library/llama3/8b";

TEST_F(OllamaStore, EveryLayerOfEveryModel) {
  for (const fs::path& path : {models(), fs::path(dir_.path())}) {
    const auto result = verify(path);
    EXPECT_TRUE(says(result, "Ollama store: 2 models")) << result.out;
    for (const char* name : {"/template: OK", "/license: OK", "/license-2: OK", "/config: OK"})
      EXPECT_TRUE(says(result, kLlama + name)) << name << result.out;
    EXPECT_EQ(status(path, kLlama + "/model.gguf"), "same");
    EXPECT_EQ(status(path, "registry.ollama.ai/library/copy/latest/model.gguf"), "same");
    EXPECT_TRUE(says(result, "the store's 2 manifests: they lie beside the files")) << result.out;
    EXPECT_TRUE(says(result, "nothing has rotted, not that nobody replaced both")) << result.out;
  }
}

TEST_F(OllamaStore, OneModel) {
  EXPECT_EQ(status(manifest("llama3", "8b"), kLlama + "/template"), "same");
  EXPECT_EQ(status(manifest("copy", "latest"), kLlama + "/template"), "not listed");
  EXPECT_EQ(status(manifest("llama3", "8b").parent_path(), kLlama + "/license-2"), "same");
  EXPECT_EQ(verify(models() / "manifests" / "registry.ollama.ai" / "nobody").exit_code, 2);
}

TEST_F(OllamaStore, LayersOfTensorsAreWeights) {
  put_model("tensors", "v1",
            {layer("tensor", "0123456789", "model.embed"), layer("json", "{}", "config.json")});
  const auto whole = verify(manifest("tensors", "v1"), {"--require-digests"});
  EXPECT_EQ(whole.exit_code, 0) << whole.out;
  EXPECT_TRUE(says(whole, "vouched for: all 10 bytes of weights")) << whole.out;
  write_file(blob("0123456789"), "0123456780");
  EXPECT_EQ(verify(manifest("tensors", "v1")).exit_code, 1);
}

TEST_F(OllamaStore, ZeroedCutOffAndMissingBlobs) {
  write_file(blob(weights_), std::string(weights_.size(), '\0'));
  EXPECT_EQ(status(models(), kLlama + "/model.gguf"), "failed");
  write_file(blob(weights_), weights_.substr(0, 100));
  EXPECT_EQ(status(models(), kLlama + "/model.gguf"), "failed");
  fs::remove(blob("one"));
  const auto result = verify(models());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, kLlama + "/license: MISSING")) << result.out;
}

TEST_F(OllamaStore, WhatIsNobodysIsTold) {
  layer("model", "an orphan");
  write_file(models() / "blobs" / "sha256-0123-partial", "half");
  const auto good = verify(models());
  EXPECT_TRUE(says(good, "1 blob is of no model: 9 bytes")) << good.out;
  EXPECT_TRUE(says(good, "what an interrupted download has left")) << good.out;
  write_file(blob("an orphan"), "another orphan");
  EXPECT_EQ(status(models(), "blobs/" + blob("an orphan").filename().string()), "failed");
}

TEST_F(OllamaStore, HostileManifests) {
  for (const char* digest :
       {"sha256:../../../../etc/passwd", "sha256:abc", "md5:0123", "", "../../../etc/passwd"}) {
    json bad = layer("model", weights_);
    bad["digest"] = digest;
    put_model("bad", "latest", {bad});
    const auto result = verify(manifest("bad", "latest"));
    EXPECT_EQ(result.exit_code, 1) << digest;
    EXPECT_TRUE(says(result, "which is no SHA-256")) << digest << result.out;
  }
  put_model("bad", "latest", {layer("tensor", "t", "../../../../../etc/passwd")});
  EXPECT_TRUE(says(verify(manifest("bad", "latest")), "not a name of a file below the folder"));
  for (const char* text : {"{", "[]", "{\"layers\": 7}", "{\"layers\": [7]}"}) {
    write_file(manifest("bad", "latest"), text);
    EXPECT_EQ(verify(manifest("bad", "latest")).exit_code, 1) << text;
  }
}

TEST_F(OllamaStore, APinnedManifestProvesMore) {
  const fs::path file = manifest("llama3", "8b");
  const std::string pin = "sha256:" + sha256_hex(read_file(file));
  const auto good = verify(file, {"--digest", pin, "--exclude", "gguf$"});
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_TRUE(says(good, "the manifest that you pinned")) << good.out;
  write_file(file, read_file(file) + " ");
  const auto other = verify(file, {"--digest", pin, "--exclude", "gguf$"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_FALSE(says(other, "the manifest that you pinned"));
  EXPECT_EQ(verify(models(), {"--digest", pin}).exit_code, 2) << "of which of them?";
  EXPECT_EQ(verify(file, {"--digest", "sha256:abc"}).exit_code, 2);
  EXPECT_EQ(verify(models() / "blobs", {"--digest", pin}).exit_code, 2);
}

}  // namespace
}  // namespace assay::test
