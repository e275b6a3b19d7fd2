#include "verify/expected/partial_download.h"

#include <nlohmann/json.hpp>

#include "tests/verify/expected/hub_fixture.h"

namespace assay {
namespace {

using namespace test;
using Names = std::set<std::string>;

Names missed_of(const Names& present, const std::vector<std::string>& absent) {
  return missed({present, absent});
}

TEST(PartialDownload, TextsAndOtherFormatsNeedNotBeHere) {
  EXPECT_EQ(
      missed_of({"config.json", "model.safetensors"},
                {"README.md", ".gitattributes", "tokenizer.json", "pytorch_model.bin", "onnx/model.onnx",
                 "original/consolidated.00.pth", "pytorch_model.bin.index.json", "unet/config.json"}),
      Names{});
  EXPECT_EQ(missed_of({"model-Q4_K_M.gguf"}, {"model-Q8_0.gguf", "config.json", "README.md"}), Names{});
}

TEST(PartialDownload, ASetOfShardsHasToBeWhole) {
  EXPECT_EQ(missed_of({"config.json", "model-00001-of-00003.safetensors"},
                      {"model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                       "model.safetensors.index.json", "pytorch_model-00001-of-00002.bin",
                       "consolidated.safetensors"}),
            (Names{"model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                   "model.safetensors.index.json"}));
  EXPECT_EQ(missed_of({"q4/m-00001-of-00002.gguf"}, {"q4/m-00002-of-00002.gguf", "q8/m-00002-of-00002.gguf"}),
            Names{"q4/m-00002-of-00002.gguf"});
  EXPECT_EQ(missed_of({"original/consolidated.00.pth"}, {"original/consolidated.01.pth", "x.safetensors"}),
            Names{"original/consolidated.01.pth"});
}

TEST(PartialDownload, SafetensorsNeedTheirConfig) {
  EXPECT_EQ(missed_of({"model.safetensors"}, {"config.json", "vae/config.json"}), Names{"config.json"});
}

TEST(PartialDownload, AModelWithoutAnyWeightsIsUnfinished) {
  EXPECT_EQ(missed_of({"config.json", "training_args.bin"}, {"model.safetensors", "README.md"}),
            Names{"model.safetensors"});
  EXPECT_EQ(missed_of({"vae/config.json", "vae/x.safetensors", "unet/config.json"},
                      {"unet/x.safetensors", "safety/x.safetensors", "x.ckpt"}),
            Names{"unet/x.safetensors"});
}

// What huggingface_hub writes for the patterns that people and libraries ask for (hub_download.py).
TEST(PartialDownload, OfHuggingfaceHubIsRecognised) {
  const TempDir dir;
  if (!download_with_huggingface_hub(dir.path()))
    GTEST_SKIP() << "SKIPPED: no huggingface_hub (set ASSAY_PYTHON)";
  for (const auto& [part, code] : std::vector<std::pair<std::string, int>>{
           {"transformers", 0}, {"no_pickles", 0}, {"loader", 0}, {"one_shard", 1}, {"texts", 1}}) {
    for (const char* place : {"cache/models--org--sharded", "local"}) {
      const std::string path = (dir / "parts" / part / place).string();
      const ProcessResult result = assay({"verify", path, "--require-digests", "--json", "-"});
      EXPECT_EQ(result.exit_code, code) << part << " " << place << result.out << result.err;
      EXPECT_NE(result.out.find("download.partial"), std::string::npos) << part << " " << place;
    }
  }
}

}  // namespace
}  // namespace assay
