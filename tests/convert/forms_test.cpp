// The stored forms of the wild: checkpoints that their owners' packages wrote, decoded to the values that
// those make of them (data/make_forms_fixtures.py).
#include <gtest/gtest.h>

#include <sstream>

#include "core/formats/checkpoint.h"
#include "core/formats/stream_digest.h"
#include "core/system/file.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::assay;
using test::TempDir;

const fs::path kFixtures = test::source_dir() / "data/fixtures/convert";

std::string digest_of(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  std::string bytes(tensor.bytes, '\0');
  File::open(checkpoint.files[tensor.file].path)
      .read_exactly(tensor.offset, std::as_writable_bytes(std::span(bytes)));
  StreamDigest digest(DigestKind::sha256, bytes.size());
  digest.update(std::as_bytes(std::span(bytes)));
  return digest.finish().hex();
}

struct Expected {
  std::string folder, tensor, sha256;
};
std::vector<Expected> expected_values(const char* table) {
  std::vector<Expected> all;
  std::istringstream lines(test::read_file(kFixtures / table));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    Expected& one = all.emplace_back();
    fields >> one.folder >> one.tensor >> one.sha256;
  }
  return all;
}

// Every folder of `forms` to float32, held to the digests of `table`.
void expect_values(const char* table, const char* forms, std::size_t count) {
  const std::vector<Expected> expected = expected_values(table);
  ASSERT_EQ(expected.size(), count);
  const TempDir dir;
  for (const Expected& one : expected) {
    const fs::path in = kFixtures / forms / one.folder, out = dir / one.folder;
    if (!fs::exists(out)) {
      // Packed integers with zero points far from the middle decode to values no trained matrix has.
      const auto made = assay({"convert", in, out, "--to", "f32", "--allow-large"});
      ASSERT_EQ(made.exit_code, 0) << one.folder << made.out << made.err;
      EXPECT_EQ(test::read_file(out / "config.json").find("quantization"), std::string::npos) << one.folder;
      // What was decoded is equal to what it was decoded from, rows taken otherwise.
      EXPECT_EQ(assay({"convert", "--equal", in, out}).exit_code, 0) << one.folder;
    }
    const Checkpoint made = open_checkpoint(out, 1);
    const CheckpointTensor* tensor = made.find(one.tensor);
    ASSERT_NE(tensor, nullptr) << one.folder << " " << one.tensor;
    EXPECT_EQ(digest_of(made, *tensor), one.sha256) << one.folder << " " << one.tensor;
    EXPECT_EQ(made.find("a.pre_quant_scale"), nullptr) << one.folder;  // folded in
  }
}

TEST(StoredForms, DecodeToWhatTheirOwnersMakeOfThem) {
  expect_values("FORMS.tsv", "forms", 29);
}

// ModelOpt, auto-round, torchao, Quark, FBGEMM, Mistral, MLX's small floats, scales of fused parts
// (data/make_tool_forms_fixtures.py).
TEST(StoredForms, DecodeToWhatTheToolsThatWriteThemMean) {
  expect_values("TOOL_FORMS.tsv", "tool_forms", 18);
}

// The int8-sq fixture with another tensor in its layer, or another config.
fs::path smooth_with(const TempDir& dir, const std::string& extra_tensor, const std::string& config) {
  const fs::path from = kFixtures / "tool_forms/modelopt-int8-sq", to = dir / "changed";
  fs::remove_all(to);
  fs::create_directories(to);
  fs::copy(from / "config.json", to / "config.json");
  std::string bytes = test::read_file(from / "model.safetensors");
  if (!extra_tensor.empty()) {
    const std::string was = "a.bias";
    bytes.replace(bytes.find(was), was.size(), extra_tensor);  // of the same length
  }
  test::write_file(to / "model.safetensors", bytes);
  if (!config.empty()) test::write_file(to / "config.json", config);
  return to;
}

TEST(StoredForms, WhatIsNotKnownInsideAQuantizedLayerIsRefused) {
  const TempDir dir;
  EXPECT_EQ(assay({"convert", smooth_with(dir, "", ""), dir / "fine", "--to", "bf16"}).exit_code, 0);
  for (const char* name : {"a.lora", "a.r4.w"}) {
    const auto result = assay({"convert", smooth_with(dir, name, ""), dir / "out", "--to", "bf16"});
    EXPECT_EQ(result.exit_code, 1) << name << result.out;
    EXPECT_NE(result.out.find("whose weight is quantized"), std::string::npos) << name << result.out;
    EXPECT_FALSE(fs::exists(dir / "out"));
  }
}

TEST(StoredForms, RotatedAndSparseOnesAreRefused) {
  const TempDir dir;
  const auto with = [&](const std::string& more) {
    return smooth_with(dir, "",
                       R"({"quantization_config":{"quant_method":"compressed-tensors",)"
                       R"("format":"int-quantized",)" +
                           more + "}}");
  };
  const auto run = [&](const std::string& more) {
    fs::remove_all(dir / "out");
    return assay({"convert", with(more), dir / "out", "--to", "bf16"});
  };
  EXPECT_EQ(run(R"("transform_config":{},"sparsity_config":{})").exit_code, 0);
  EXPECT_EQ(run(R"("transform_config":{"config_groups":{"u":{"type":"hadamard","apply":)"
                R"([{"targets":["Linear"],"location":"weight_output"}]}}})")
                .exit_code,
            0);
  const auto rotated = run(R"("transform_config":{"config_groups":{"R4":{"type":"hadamard","apply":)"
                           R"([{"targets":["Linear"],"location":"weight_input"},)"
                           R"({"targets":["Linear"],"location":"input","inverse":true}]}}})");
  EXPECT_EQ(rotated.exit_code, 1) << rotated.out;
  EXPECT_NE(rotated.out.find("rotates activations"), std::string::npos) << rotated.out;
  const auto sparse = run(R"("sparsity_config":{"format":"sparse-bitmask","global_sparsity":0.5})");
  EXPECT_EQ(sparse.exit_code, 1) << sparse.out;
  EXPECT_NE(sparse.out.find("sparse-bitmask"), std::string::npos) << sparse.out;

  // By the tensors alone, where the config is gone.
  const fs::path tensors = dir / "tensors";
  test::write_file(
      tensors / "model.safetensors",
      test::safetensors_bytes(R"({"a.bitmask":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]},)"
                              R"("a.compressed":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                              "xy"));
  const auto bare = assay({"convert", tensors, dir / "bare", "--to", "bf16"});
  EXPECT_EQ(bare.exit_code, 1) << bare.out;
  EXPECT_NE(bare.out.find("bitmask"), std::string::npos) << bare.out;
}

}  // namespace
}  // namespace assay
