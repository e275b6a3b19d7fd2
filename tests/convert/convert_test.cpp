// The program as a user runs it, held to bytes that others made: data/tinylm by torch, EXPECTED.tsv by
// data/make_convert_fixtures.py.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/formats/checkpoint.h"
#include "core/formats/stream_digest.h"
#include "core/system/file.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::contents;
using test::expect_ok;
using test::expect_same_tensors;
using test::sha256;
using test::stored_bytes;
using test::TempDir;

using test::kData;

nlohmann::json json_of(const test::ProcessResult& result) {
  return nlohmann::json::parse(result.out, nullptr, false);
}

TEST(Convert, ReblockAndBackGivesEveryByte) {
  const TempDir dir;
  const auto before = contents(kData / "tinylm");
  const auto there = assay({"convert", kData / "tinylm", dir / "small", "--to", "reblock=64x64"});
  expect_ok(there);
  EXPECT_NE(there.out.find("proved: "), std::string::npos) << there.out;
  const Checkpoint small = open_checkpoint(dir / "small", 1);
  // 72 x 160 in 64 x 64 blocks: ceil(72/64) x ceil(160/64)
  const auto* scale = small.find("model.layers.0.self_attn.kv_a_proj_with_mqa.weight_scale_inv");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_TRUE(small.findings.empty());
  const auto config = nlohmann::json::parse(test::read_file(dir / "small/config.json"));
  EXPECT_EQ(config.at("quantization_config").at("weight_block_size"), (std::vector<int>{64, 64}));
  expect_ok(assay({"convert", "--equal", kData / "tinylm", dir / "small"}));

  expect_ok(assay({"convert", dir / "small", dir / "back", "--to", "reblock=128x128"}));
  expect_same_tensors(kData / "tinylm", dir / "back");
  EXPECT_EQ(contents(kData / "tinylm"), before) << "the source was written";
}

TEST(Convert, Bf16TwinGivesThePublishedFp8) {
  const TempDir dir;
  expect_ok(assay({"convert", kData / "tinylm-bf16", dir / "out", "--to", "fp8:block=128x128"}));
  expect_same_tensors(kData / "tinylm", dir / "out");
}

TEST(Convert, Fp8ToBf16AndBackUnderTheOriginalScales) {
  const TempDir dir;
  expect_ok(assay({"convert", kData / "tinylm", dir / "bf16", "--to", "bf16"}));
  const auto config = nlohmann::json::parse(test::read_file(dir / "bf16/config.json"));
  EXPECT_FALSE(config.contains("quantization_config"));
  expect_ok(assay({"convert", dir / "bf16", dir / "fp8", "--to", "fp8:block=128x128", "--scales-from",
                   kData / "tinylm"}));
  expect_same_tensors(kData / "tinylm", dir / "fp8");
}

TEST(Convert, BytesAreTorchs) {
  test::expect_digests(kData / "fixtures/convert/EXPECTED.tsv", 15);
}

TEST(Convert, SameBytesWhateverTheJobs) {
  const TempDir dir;
  expect_ok(assay({"convert", kData / "tinylm", dir / "one", "--to", "fp8:tensor", "-j", "1"}));
  expect_ok(assay({"convert", kData / "tinylm", dir / "five", "--to", "fp8:tensor", "-j", "5"}));
  EXPECT_EQ(contents(dir / "one"), contents(dir / "five"));
}

TEST(Convert, AnUnfinishedFolderIsNotTakenOverUnasked) {
  const TempDir dir;
  fs::create_directory(dir / ".out.assay-partial");
  EXPECT_EQ(assay({"convert", kData / "tinylm", dir / "out", "--to", "bf16"}).exit_code, 1);
  // One of another conversion is not taken over at all.
  test::write_file(dir / ".out.assay-partial/.assay-convert.journal",
                   "{\"schema\": \"assay.convert-journal/1\", \"key\": \"00\"}\n");
  EXPECT_EQ(assay({"convert", kData / "tinylm", dir / "out", "--to", "bf16", "--resume"}).exit_code, 1);
  EXPECT_FALSE(fs::exists(dir / "out"));
}

// --- small files made here ---------------------------------------------------------------------------------

std::string f32(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

std::vector<float> floats(const fs::path& folder, const std::string& name) {
  const Checkpoint checkpoint = open_checkpoint(folder, 1);
  const CheckpointTensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) return {};
  const std::string bytes = stored_bytes(checkpoint, *tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Codes 0 … 15 in order, low nibble first; the numbers are those of the OCP table.
const std::string kAllFp4 = "\x10\x32\x54\x76\x98\xBA\xDC\xFE";
const std::vector<float> kFp4Values = {0, .5, 1, 1.5, 2, 3, 4, 6, -0.F, -.5, -1, -1.5, -2, -3, -4, -6};

std::vector<float> times(float factor) {
  std::vector<float> values = kFp4Values;
  for (float& value : values) value *= factor;
  return values;
}

TEST(Convert, BothConventionsOfNvfp4) {
  const TempDir dir;
  // Block scale 0x40 is 2 in E4M3. ModelOpt multiplies by the global scale, compressed-tensors divides.
  test::write_file(
      dir / "modelopt/model.safetensors",
      test::safetensors_bytes(R"({"a.weight_scale_2":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                              R"("a.weight_scale":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[4,5]},)"
                              R"("a.weight":{"dtype":"U8","shape":[1,8],"data_offsets":[5,13]}})",
                              f32({0.25F}) + "\x40" + kAllFp4));
  test::write_file(
      dir / "ct/model.safetensors",
      test::safetensors_bytes(R"({"a.weight_global_scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                              R"("a.weight_scale":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[4,5]},)"
                              R"("a.weight_packed":{"dtype":"U8","shape":[1,8],"data_offsets":[5,13]}})",
                              f32({4.0F}) + "\x40" + kAllFp4));
  for (const char* name : {"modelopt", "ct"}) {
    const fs::path out = dir / (std::string(name) + "-f32");
    expect_ok(assay({"convert", dir / name, out, "--to", "f32"}));
    EXPECT_EQ(floats(out, "a.weight"), times(0.5F)) << name;
  }
  expect_ok(assay({"convert", "--equal", dir / "modelopt", dir / "ct"}));
}

// One FP8 matrix of 2 x 2 blocks of 1 x 1 would do; this one has 2 x 4 codes of the value 1 (0x38) in blocks
// of 1 x 2.
void write_blocks(const fs::path& folder, const std::string& scales, const std::string& codes) {
  test::write_file(folder / "config.json",
                   R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[1,2]}})");
  test::write_file(
      folder / "model.safetensors",
      test::safetensors_bytes(R"({"a.weight_scale_inv":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                              R"("a.weight":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[16,24]}})",
                              scales + codes));
}
const std::string kOnes(8, '\x38');

TEST(Convert, MergesBlocksOnlyWhereScalesAgree) {
  const TempDir dir;
  write_blocks(dir / "agree", f32({.5, .25, .5, .25}), kOnes);
  expect_ok(assay({"convert", dir / "agree", dir / "merged", "--to", "reblock=2x2"}));
  EXPECT_EQ(floats(dir / "merged", "a.weight_scale_inv"), (std::vector<float>{.5, .25}));
  write_blocks(dir / "differ", f32({.5, .25, .5, .125}), kOnes);
  const auto refused = assay({"convert", dir / "differ", dir / "no", "--to", "reblock=2x2"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("1 of 2 larger blocks"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(dir / "no"));
}

TEST(Convert, LoudFailures) {
  const TempDir dir;
  const auto expect_refused = [&](const std::string& name, const std::string& to) {
    const auto result = assay({"convert", dir / name, dir / "out", "--to", to});
    EXPECT_EQ(result.exit_code, 1) << name << result.out << result.err;
    EXPECT_NE((result.out + result.err).find("a.weight"), std::string::npos) << name << result.err;
    EXPECT_FALSE(fs::exists(dir / "out")) << name;
    fs::remove_all(dir / ".out.assay-partial");
  };
  write_blocks(dir / "nan-code", f32({1, 1, 1, 1}), std::string(7, '\x38') + '\x7F');
  expect_refused("nan-code", "bf16");
  write_blocks(dir / "inf-scale", f32({1, 1, INFINITY, 1}), kOnes);
  expect_refused("inf-scale", "bf16");
  expect_refused("inf-scale", "reblock=1x1");
  write_blocks(dir / "raw", f32({1, 1, 1, 1}), std::string(7, '\x38') + '\x7E');  // 448: the code itself
  expect_refused("raw", "bf16");
  write_blocks(dir / "too-large", f32({1e6, 1, 1, 1}), kOnes);
  EXPECT_EQ(assay({"convert", dir / "too-large", dir / "x", "--to", "f16", "--allow-large"}).exit_code, 1);
  expect_ok(assay({"convert", dir / "too-large", dir / "y", "--to", "bf16", "--allow-large"}));
  test::write_file(dir / "no-scale/model.safetensors",
                   test::safetensors_bytes(
                       R"({"a.weight":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[0,8]}})", kOnes));
  expect_refused("no-scale", "bf16");
}

// What stays as it is beside the quantized weights is looked at too; `copy` looks at nothing.
TEST(Convert, ANanInANormIsNamed) {
  const TempDir dir;
  write_blocks(dir / "in", f32({1, 1, 1, 1}), kOnes);
  test::write_file(dir / "in/norm.safetensors",
                   test::safetensors_bytes(
                       R"({"norm.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", f32({1, NAN})));
  for (const char* to : {"bf16", "reblock=1x1", "int8:channel"}) {
    const auto result = assay({"convert", dir / "in", dir / to, "--to", to});
    EXPECT_EQ(result.exit_code, 1) << to;
    EXPECT_NE(result.err.find("norm.weight"), std::string::npos) << to << result.err;
    EXPECT_FALSE(fs::exists(dir / to));
  }
  expect_ok(assay({"convert", dir / "in", dir / "copy", "--to", "copy"}));
}

// Kimi K2.5 keeps it inside text_config. What other quantizers leave beside config.json goes with it.
TEST(Convert, AQuantizationConfigOfTheLanguageModelIsRewritten) {
  const TempDir dir;
  write_blocks(dir / "in", f32({1, 1, 1, 1}), kOnes);
  test::write_file(
      dir / "in/config.json",
      R"({"text_config":{"dtype":"float16","quantization_config":{"quant_method":"fp8","weight_block_size":[1,2]}}})");
  test::write_file(dir / "in/quantize_config.json", "{}");
  const auto config_of = [&](const std::string& folder) {
    return nlohmann::json::parse(test::read_file(dir / folder / "config.json"));
  };
  expect_ok(assay({"convert", dir / "in", dir / "bf16", "--to", "bf16"}));
  EXPECT_EQ(config_of("bf16"), nlohmann::json::parse(R"({"text_config":{"dtype":"bfloat16"}})"));
  EXPECT_FALSE(fs::exists(dir / "bf16/quantize_config.json"));
  expect_ok(assay({"convert", dir / "in", dir / "1x1", "--to", "reblock=1x1"}));
  EXPECT_EQ(config_of("1x1")["text_config"]["quantization_config"]["weight_block_size"],
            (std::vector<int>{1, 1}));
  EXPECT_TRUE(fs::exists(dir / "1x1/quantize_config.json"));
}

TEST(Convert, StackedExpertsThatStayAreTold) {
  const TempDir dir;
  test::write_file(dir / "in/model.safetensors",
                   test::safetensors_bytes(
                       R"({"a.experts.down_proj":{"dtype":"F32","shape":[1,1,2],"data_offsets":[0,8]},)"
                       R"("a.up_proj.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]}})",
                       f32({1, 2, 3, 4, 5, 6})));
  const auto result = assay({"convert", dir / "in", dir / "out", "--to", "int8:channel"});
  expect_ok(result);
  EXPECT_NE(result.out.find("1 tensors of stacked experts, 2 values, stay"), std::string::npos) << result.out;
}

TEST(Convert, AQuantMethodThatIsNoNameIsRefused) {
  const TempDir dir;
  write_blocks(dir / "in", f32({1, 1, 1, 1}), kOnes);
  for (const char* config :
       {R"({"quantization_config":{"quant_method":5}})", R"({"quantization_config":[1]})"}) {
    test::write_file(dir / "in/config.json", config);
    EXPECT_EQ(assay({"convert", dir / "in", dir / "out", "--to", "bf16"}).exit_code, 2) << config;
  }
}

TEST(Convert, AnOutputThatCannotBeNamedIsSaidAtOnce) {
  const TempDir dir;
  write_blocks(dir / "in", f32({1, 1, 1, 1}), kOnes);
  fs::create_directory(dir / "empty");
  fs::create_directory_symlink(dir / "empty", dir / "link");
  fs::create_symlink(dir / "nowhere", dir / "dangling");
  for (const char* link : {"link", "dangling"}) {
    EXPECT_EQ(assay({"convert", dir / "in", dir / link, "--to", "bf16"}).exit_code, 1) << link;
    EXPECT_FALSE(fs::exists(dir / ("." + std::string(link) + ".assay-partial"))) << link;
  }
  EXPECT_EQ(assay({"convert", dir / "in", "", "--to", "bf16"}).exit_code, 2);
  EXPECT_EQ(assay({"convert", dir / "in", dir / std::string(250, 'x'), "--to", "bf16"}).exit_code, 2);
  EXPECT_EQ(
      assay({"convert", dir / "in", dir / "out", "--to", "bf16", "--report", dir / "no/r.json"}).exit_code,
      2);
  EXPECT_FALSE(fs::exists(dir / "out"));
}

TEST(Convert, TheSourceIsNeverTheOutput) {
  const TempDir dir;
  write_blocks(dir / "in", f32({1, 1, 1, 1}), kOnes);
  const auto before = contents(dir / "in");
  EXPECT_EQ(assay({"convert", dir / "in", dir / "in", "--to", "bf16"}).exit_code, 1);
  EXPECT_EQ(assay({"convert", dir / "in", dir / "in/out", "--to", "bf16"}).exit_code, 1);
  EXPECT_EQ(contents(dir / "in"), before);
}

TEST(Convert, AZeroBlockStaysZero) {
  const TempDir dir;
  test::write_file(
      dir / "in/model.safetensors",
      test::safetensors_bytes(R"({"a.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})",
                              f32({0, 0, 1, -2})));
  expect_ok(assay({"convert", dir / "in", dir / "out", "--to", "int8:channel"}));
  EXPECT_EQ(floats(dir / "out", "a.weight_scale"), (std::vector<float>{1, 2.0F / 127}));
  expect_ok(assay({"convert", dir / "out", dir / "f32", "--to", "f32"}));
  EXPECT_EQ(floats(dir / "f32", "a.weight")[0], 0);
}

TEST(Convert, EqualNamesWhatDiffers) {
  const TempDir dir;
  write_blocks(dir / "a", f32({1, 1, 1, 1}), kOnes);
  write_blocks(dir / "b", f32({1, 1, 1, 1.5}), kOnes);
  const auto result = assay({"convert", "--equal", dir / "a", dir / "b", "--json", "-"});
  EXPECT_EQ(result.exit_code, 1);
  const auto report = json_of(result);
  ASSERT_EQ(report.at("differences").size(), 1u);
  EXPECT_EQ(report["differences"][0]["tensor"], "a.weight");
  EXPECT_EQ(report["differences"][0]["largest"], 0.5);
  expect_ok(assay({"convert", "--equal", dir / "a", dir / "b", "--rtol", "0.34"}));
}

TEST(Convert, RefusesWhatItDoesNotUnderstand) {
  const TempDir dir;
  for (const char* spec : {"", "fp8", "fp8:", "reblock=0x1", "reblock=64", "fp8:channel,tensor",
                           "int8:tensor", "int8:channel,e5m2", "q4_k"}) {
    EXPECT_EQ(assay({"convert", kData / "tinylm", dir / "out", "--to", spec}).exit_code, 2) << spec;
  }
  EXPECT_EQ(assay({"convert", kData / "tinylm", dir / "out", "--to", "reblock=48x64"}).exit_code, 1);
  EXPECT_FALSE(fs::exists(dir / "out"));
}

TEST(Convert, DeepSeekV3AtTrueScale) {
  ASSAY_CASE_OR_SKIP(list, "deepseek-v3-tensors.tsv.gz");
  ASSAY_PROGRAM_OR_SKIP("python3");
  const TempDir dir;
  const auto made = test::run({"python3", test::source_dir() / "tests/make_deepseek_v3_sparse", dir / "v3",
                               "--cases", test::cases()});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto result =
      assay({"convert", dir / "v3", dir / "out", "--to", "reblock=64x64", "--dry-run", "--json", "-"});
  const auto plan = json_of(result);
  EXPECT_EQ(plan.at("files").size(), 163u);
  // Every FP8 weight's ceil(rows/64) x ceil(columns/64) scales of 4 bytes, summed over the published list.
  EXPECT_EQ(plan.at("scale_bytes").at("before"), 166161984);
  EXPECT_EQ(plan.at("scale_bytes").at("after"), 664620160);
  EXPECT_FALSE(fs::exists(dir / "out"));
  EXPECT_FALSE(fs::exists(dir / ".out.assay-partial"));
}

}  // namespace
}  // namespace assay
