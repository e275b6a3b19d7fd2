// The same tensors in other files: --max-shard-size, --drop-mtp, --only-mtp, --tp, --merge.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/formats/checkpoint.h"
#include "tests/convert/convert_support.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::expect_same_tensors;
using test::TempDir;

const fs::path kData = fs::path(ASSAY_SOURCE_DIR) / "data";

TEST(Reshard, FilesKeepTheLimitAndWeightsStayWithTheirScales) {
  const TempDir dir;
  expect_ok(assay({"convert", kData / "tinylm", dir / "out", "--max-shard-size", "200KB"}));
  expect_same_tensors(kData / "tinylm", dir / "out");
  const Checkpoint made = open_checkpoint(dir / "out", 1);
  EXPECT_TRUE(made.findings.empty());
  EXPECT_EQ(made.index->shards().size(), made.files.size());
  std::vector<std::uint64_t> held(made.files.size());
  std::uint64_t total = 0;
  for (const CheckpointTensor& tensor : made.tensors) {
    held[tensor.file] += tensor.bytes;
    total += tensor.bytes;
    const auto* scale = made.find(tensor.name + "_scale_inv");
    EXPECT_TRUE(scale == nullptr || scale->file == tensor.file) << tensor.name;
  }
  EXPECT_EQ(made.index->total_size, total);
  for (const std::uint64_t bytes : held) EXPECT_LE(bytes, 200'000u);
  // No two neighbours would have fitted into one: the files are filled.
  EXPECT_LE(made.files.size(), 2 * total / 200'000 + 1);
  for (std::size_t i = 0; i < made.files.size(); ++i) {
    const auto name = parse_shard_name(made.files[i].name);
    ASSERT_TRUE(name);
    EXPECT_EQ(name->number, i + 1);
    EXPECT_EQ(name->count, made.files.size());
    const std::vector<std::pair<std::string, std::string>> torch = {{"format", "pt"}};
    EXPECT_EQ(made.files[i].metadata, torch);
  }
}

TEST(Reshard, OneFileForAll) {
  const TempDir dir;
  expect_ok(assay({"convert", kData / "tinylm", dir / "out", "--max-shard-size", "5GB"}));
  EXPECT_TRUE(fs::exists(dir / "out/model.safetensors"));
  expect_same_tensors(kData / "tinylm", dir / "out");
}

TEST(Reshard, AWeightLargerThanTheLimitHasAFileOfItsOwn) {
  const TempDir dir;
  expect_ok(assay({"convert", kData / "tinylm", dir / "out", "--max-shard-size", "1"}));
  expect_same_tensors(kData / "tinylm", dir / "out");
}

// tinylm has layers 0, 1, 2 and, as layer 3, the prediction layer.
bool is_prediction(const std::string& name) {
  return name.starts_with("model.layers.3.");
}

TEST(Reshard, WithAndWithoutPredictionLayers) {
  const TempDir dir;
  const Checkpoint whole = open_checkpoint(kData / "tinylm", 1);
  const auto layers =
      nlohmann::json::parse(test::read_file(kData / "tinylm/config.json")).at("num_hidden_layers");
  ASSERT_EQ(layers, 3);
  for (const bool drop : {true, false}) {
    const fs::path out = dir / (drop ? "without" : "only");
    expect_ok(assay({"convert", kData / "tinylm", out, drop ? "--drop-mtp" : "--only-mtp"}));
    const Checkpoint made = open_checkpoint(out, 1);
    EXPECT_TRUE(made.findings.empty());
    std::size_t expected = 0;
    for (const CheckpointTensor& tensor : whole.tensors) {
      if (is_prediction(tensor.name) == drop) {
        EXPECT_EQ(made.find(tensor.name), nullptr) << tensor.name;
        continue;
      }
      ++expected;
      const CheckpointTensor* kept = made.find(tensor.name);
      ASSERT_NE(kept, nullptr) << tensor.name;
      EXPECT_EQ(test::stored_bytes(made, *kept), test::stored_bytes(whole, tensor)) << tensor.name;
    }
    EXPECT_EQ(made.tensors.size(), expected);
    const auto config = nlohmann::json::parse(test::read_file(out / "config.json"));
    EXPECT_EQ(config.at("num_nextn_predict_layers"), drop ? 0 : 1);
  }
  // There is nothing left to drop.
  EXPECT_EQ(assay({"convert", dir / "without", dir / "again", "--drop-mtp"}).exit_code, 1);
}

}  // namespace
}  // namespace assay
