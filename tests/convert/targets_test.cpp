// The quantized targets, held to the bytes of the packages that own the formats
// (data/make_target_fixtures.py), and the way there and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/formats/checkpoint.h"
#include "core/formats/stream_digest.h"
#include "core/system/file.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

using test::kData;

// Those of tinylm's matrices that TARGETS.tsv speaks of; others have rows that are no whole blocks.
constexpr const char* kChosen = "layers.0.self_attn.o_proj|layers.3.mlp.experts.8.gate_proj|corners";

TEST(Targets, BytesAreThoseOfTheFormatsOwners) {
  test::expect_digests(kData / "fixtures/convert/TARGETS.tsv", 42, {"--include", kChosen});
}

struct Target {
  const char* spec;
  const char* method;
  double error;  // relative: half a step between codes where they are furthest apart
};
constexpr Target kTargets[] = {
    {"fp8:block=32x32", "fp8", 1.0 / 16},
    {"fp8:block=32x32,e5m2", "fp8", 1.0 / 8},
    {"fp8:block=32x32,fnuz", "fp8", 1.0 / 16},
    {"fp8:channel", "compressed-tensors", 1.0 / 16},
    {"fp8:tensor", "compressed-tensors", 1.0 / 16},
    {"int8:block=32x32", "blockwise_int8", 1.0 / 32},
    {"int8:channel", "compressed-tensors", 1.0 / 32},
    {"mxfp8", "compressed-tensors", 1.0 / 16},
    {"mxfp4", "compressed-tensors", 1.0 / 4},
    {"nvfp4", "compressed-tensors", 1.0 / 4},
    {"nvfp4,layout=modelopt", "modelopt", 1.0 / 4},
    {"int4:group=32", "compressed-tensors", 1.0 / 4},
    {"int4:group=32,asym", "compressed-tensors", 1.0 / 4},
    {"int4:channel", "compressed-tensors", 1.0 / 4},
};

TEST(Targets, WhatIsWrittenIsReadBack) {
  const TempDir dir;
  int number = 0;
  for (const Target& target : kTargets) {
    SCOPED_TRACE(target.spec);
    const fs::path out = dir / std::to_string(number++), bf16 = dir / std::to_string(number++);
    const auto result = assay(
        {"convert", kData / "tinylm-bf16", out, "--to", target.spec, "--include", kChosen, "--json", "-"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto report = nlohmann::json::parse(result.out);
    int quantized = 0;
    for (const auto& tensor : report.at("tensors")) {
      if (!tensor.contains("error")) continue;
      ++quantized;
      EXPECT_GT(tensor["error"].at("relative_frobenius").get<double>(), 0);
      EXPECT_LT(tensor["error"].at("relative_frobenius").get<double>(), target.error);
    }
    EXPECT_EQ(quantized, 2);
    const auto config = nlohmann::json::parse(test::read_file(out / "config.json"));
    EXPECT_EQ(config.at("quantization_config").at("quant_method"), target.method);
    EXPECT_EQ(fs::exists(out / "hf_quant_config.json"), std::string(target.method) == "modelopt");

    expect_ok(assay({"convert", out, bf16, "--to", "bf16"}));
    EXPECT_FALSE(
        nlohmann::json::parse(test::read_file(bf16 / "config.json")).contains("quantization_config"));
    EXPECT_FALSE(fs::exists(bf16 / "hf_quant_config.json"));
    expect_ok(assay({"convert", "--equal", out, bf16, "--rtol", "0.00391"}));  // BF16 rounds by 2^-8 at most
  }
}

// float32 holds the values of every form exactly: from a form into another is as from those into the other.
TEST(Targets, FromFormToFormIsAsThroughFloat32) {
  const TempDir dir;
  int number = 0;
  for (const Target& from : kTargets) {
    const fs::path first = dir / std::to_string(number++), f32 = dir / std::to_string(number++);
    expect_ok(assay({"convert", kData / "fixtures/convert/corners", first, "--to", from.spec}));
    expect_ok(assay({"convert", first, f32, "--to", "f32", "--allow-large"}));
    expect_ok(assay({"convert", "--equal", first, f32}));
    for (const char* to : {"nvfp4", "int8:channel"}) {
      SCOPED_TRACE(std::string(from.spec) + " to " + to);
      const fs::path direct = dir / std::to_string(number++), around = dir / std::to_string(number++);
      expect_ok(assay({"convert", first, direct, "--to", to, "--allow-large"}));
      expect_ok(assay({"convert", f32, around, "--to", to}));
      EXPECT_TRUE(test::read_file(direct / "model.safetensors") ==
                  test::read_file(around / "model.safetensors"));
    }
  }
}

// For engines that are told by an option of their own.
TEST(Targets, Int8ByChannelCanGoUndeclared) {
  const TempDir dir;
  const auto result = assay({"convert", kData / "tinylm-bf16", dir / "out", "--to",
                             "int8:channel,config=none", "--include", kChosen});
  expect_ok(result);
  EXPECT_NE(result.out.find("w8a8_int8"), std::string::npos) << result.out;
  const auto config = nlohmann::json::parse(test::read_file(dir / "out" / "config.json"));
  EXPECT_FALSE(config.contains("quantization_config"));
  EXPECT_EQ(
      assay({"convert", kData / "tinylm-bf16", dir / "no", "--to", "int8:block=32x32,config=none"}).exit_code,
      2);
}

TEST(Targets, FnuzKeepsTheCodesOfTheSameBlocks) {
  const TempDir dir;
  const fs::path source = kData / "tinylm", out = dir / "fnuz";
  const auto result = assay({"convert", source, out, "--to", "fp8:block=128x128,fnuz"});
  expect_ok(result);
  EXPECT_NE(result.out.find("proved: "), std::string::npos) << result.out;
  expect_ok(assay({"convert", "--equal", source, out}));
  const Checkpoint before = open_checkpoint(source, 1), after = open_checkpoint(out, 1);
  const auto bytes_of = [](const Checkpoint& checkpoint, const std::string& name) {
    const CheckpointTensor* tensor = checkpoint.find(name);
    std::string bytes(tensor == nullptr ? 0 : tensor->bytes, '\0');
    if (tensor != nullptr)
      File::open(checkpoint.files[tensor->file].path)
          .read_exactly(tensor->offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  };
  const std::string name = "model.layers.1.self_attn.kv_a_proj_with_mqa.weight";
  ASSERT_NE(after.find(name), nullptr);
  EXPECT_EQ(after.find(name)->type, ElementType::F8_E4M3FNUZ);
  std::string expected = bytes_of(before, name);
  std::replace(expected.begin(), expected.end(), '\x80', '\0');
  EXPECT_EQ(bytes_of(after, name), expected);
}

// One matrix of FP8 in blocks of 1 x 2, with a NaN among its codes.
void write_nan(const fs::path& folder) {
  const float ones[] = {1, 1, 1, 1};
  std::string bytes(reinterpret_cast<const char*>(ones), sizeof ones);
  bytes += "\x38\x38\x38\x7F\x38\x38\x38\x38";
  test::write_file(folder / "config.json",
                   R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[1,2]}})");
  test::write_file(
      folder / "model.safetensors",
      test::safetensors_bytes(R"({"a.weight_scale_inv":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                              R"("a.weight":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[16,24]}})",
                              bytes));
}

TEST(Targets, ANanIsNotCarriedOver) {
  const TempDir dir;
  write_nan(dir / "in");
  for (const char* spec : {"fp8:block=1x2,fnuz", "int8:channel", "reblock=1x1"}) {
    const auto result = assay({"convert", dir / "in", dir / "out", "--to", spec});
    EXPECT_EQ(result.exit_code, 1) << spec;
    EXPECT_NE((result.out + result.err).find("a.weight"), std::string::npos)
        << spec << result.out << result.err;
    EXPECT_FALSE(fs::exists(dir / "out")) << spec;
    fs::remove_all(dir / ".out.assay-partial");
  }
}

TEST(Targets, RowsThatAreNoWholeBlocksAreRefused) {
  const TempDir dir;
  for (const char* spec : {"mxfp4", "mxfp8", "nvfp4", "int4:group=128"}) {
    const auto result = assay({"convert", kData / "tinylm-bf16", dir / "out", "--to", spec, "--dry-run"});
    EXPECT_EQ(result.exit_code, 1) << spec;
    EXPECT_NE(result.out.find("down_proj"), std::string::npos) << spec << result.out;
  }
  for (const char* spec : {"mxfp5", "mxfp4,scale=round", "mxfp8,ties=down", "nvfp4,scale=floor", "int4",
                           "int4:group=48", "int4:group=32,channel", "int8:channel,fnuz", "mxfp4,"}) {
    EXPECT_EQ(assay({"convert", kData / "tinylm-bf16", dir / "out", "--to", spec}).exit_code, 2) << spec;
  }
}

// What transformers loads without a GPU, it loads to the weights that assay decodes; compressed-tensors would
// write the same config. (It does not load its own asymmetric INT4: it makes room for unpacked zero points.)
TEST(Targets, TransformersLoadsThem) {
  const char* python = std::getenv("ASSAY_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "SKIPPED: set ASSAY_PYTHON to one with transformers and torch";
  const TempDir dir;
  std::vector<std::string> command = {python,
                                      test::source_dir().string() + "/tests/convert/load_in_transformers.py"};
  for (const auto& [spec, include] : std::vector<std::pair<const char*, const char*>>{
           {"fp8:channel", "."},
           {"fp8:tensor", "."},
           {"fp8:block=16x16", "self_attn"},
           {"int8:channel", "."},
           {"mxfp4", "o_proj"},
           {"mxfp8", "o_proj"},
           {"nvfp4", "self_attn"},
           {"int4:group=32", "o_proj"},
           {"int4:channel", "."},
       }) {
    const fs::path out = dir / std::to_string(command.size()), f32 = out.string() + "-f32";
    expect_ok(assay({"convert", kData / "models/llama", out, "--to", spec, "--include", include}));
    expect_ok(assay({"convert", out, f32, "--to", "f32"}));
    command.insert(command.end(), {out.string(), f32.string()});
  }
  const auto loaded = test::run(command);
  if (loaded.exit_code == 77) GTEST_SKIP() << "SKIPPED: " << loaded.out;
  EXPECT_EQ(loaded.exit_code, 0) << loaded.out << loaded.err;
}

// Of experts that it stacks, `CompressedTensorsDequantize.convert` of transformers 5.23
// (integrations/compressed_tensors.py) knows two forms: FP8 in `weight` with `weight_scale`, and what lies in
// `weight_packed` with `weight_scale` and `weight_shape`. INT8 lies in `weight`, which it passes over, and
// NVFP4's `weight_global_scale` is not given to the module that it decompresses: that loads, to other
// weights.
bool is_known_not_to_load(const std::string& model, const std::string& spec) {
  return model == "phimoe" && (spec == "int8:channel" || spec == "nvfp4");
}

// Models whose modules transformers names otherwise than their checkpoints (a router that moves, stacked
// experts, a vision tower): what stays plain is listed so that it finds it. gpt-oss's experts, which
// transformers loads in stacks alone, are left out.
TEST(Targets, TransformersLoadsModelsWhoseModulesItRenames) {
  const char* python = std::getenv("ASSAY_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "SKIPPED: set ASSAY_PYTHON to one with transformers and torch";
  const TempDir dir;
  const std::string scripts = test::source_dir().string() + "/tests/convert/";
  const auto made = test::run({python, scripts + "make_odd_models.py", dir.path()});
  if (made.exit_code == 77) GTEST_SKIP() << "SKIPPED: " << made.out;
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::vector<std::string> command = {python, scripts + "load_in_transformers.py"};
  for (const char* model : {"phimoe", "gpt-oss", "llava"}) {
    for (const char* spec :
         {"fp8:channel", "fp8:block=32x32", "int8:channel", "mxfp4", "nvfp4", "int4:group=32"}) {
      const fs::path out = dir / fmt::format("{}-{}", model, std::string(spec).substr(0, 8)),
                     f32 = out.string() + "-f32";
      std::vector<std::string> convert = {"convert", dir / model, out, "--to", spec};
      if (std::string(model) == "gpt-oss") convert.insert(convert.end(), {"--exclude", "experts"});
      expect_ok(assay(convert));
      expect_ok(assay({"convert", out, f32, "--to", "f32"}));
      if (!is_known_not_to_load(model, spec)) {
        command.insert(command.end(), {out.string(), f32.string()});
        continue;
      }
      const test::ProcessResult refused = test::run({python, scripts + "load_in_transformers.py", out, f32});
      EXPECT_NE(refused.exit_code, 0) << model << ' ' << spec << ": transformers loads it now: say so here";
    }
  }
  const auto loaded = test::run(command);
  if (loaded.exit_code == 77) GTEST_SKIP() << "SKIPPED: " << loaded.out;
  EXPECT_EQ(loaded.exit_code, 0) << loaded.out << loaded.err;
}

// ModelOpt writes its own file; config.json may say nothing.
TEST(Targets, QuantizationIsReadFromModelOptsFile) {
  const TempDir dir;
  const fs::path out = dir / "out";
  expect_ok(assay({"convert", kData / "fixtures/convert/corners", out, "--to", "nvfp4,layout=modelopt"}));
  test::write_file(out / "hf_quant_config.json", R"({"quantization":{"quant_algo":"FUTURE8"}})");
  expect_ok(assay({"convert", out, dir / "f32", "--to", "f32", "--allow-large"}));
  test::write_file(out / "hf_quant_config.json", R"({"quantization":)");
  EXPECT_EQ(assay({"convert", out, dir / "no", "--to", "f32", "--allow-large"}).exit_code, 2);
}

}  // namespace
}  // namespace assay
