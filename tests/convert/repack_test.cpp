// FP4 moved from safetensors into GGUF's blocks, held to the bytes of llama.cpp's converter
// (data/make_repack_fixtures.py); and the scales of whole tensors that stand beside them there.
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/formats/gguf.h"
#include "core/formats/gguf_write.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

const fs::path kFixtures = test::source_dir() / "data/fixtures/convert";

fs::path made_gguf(const TempDir& dir, const std::string& form) {
  fs::path out = dir / (form + ".gguf");
  if (!fs::exists(out))
    expect_ok(assay(
        {"convert", kFixtures / "repack" / form, out, "--to", "gguf:" + form, "--tokenizer-pre", "none"}));
  return out;
}

const CheckpointTensor& tensor_of(const Checkpoint& checkpoint, const std::string& name) {
  const CheckpointTensor* found = checkpoint.find(name);
  if (found == nullptr) throw std::runtime_error("no tensor " + name);
  return *found;
}

TEST(Repack, BlocksAreThoseOfLlamaCppsConverter) {
  const TempDir dir;
  std::istringstream lines(test::read_file(kFixtures / "REPACK.tsv"));
  int tensors = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string form, tensor, digest;
    fields >> form >> tensor >> digest;
    const Checkpoint made = open_checkpoint(made_gguf(dir, form), 1);
    EXPECT_EQ(test::sha256(test::stored_bytes(made, tensor_of(made, tensor))), digest)
        << form << " " << tensor;
    ++tensors;
  }
  EXPECT_EQ(tensors, 21);
}

TEST(Repack, NothingIsLost) {
  const TempDir dir;
  for (const std::string form : {"mxfp4", "nvfp4"}) {
    const fs::path in = kFixtures / "repack" / form, out = made_gguf(dir, form);
    const auto header = gguf::read_header(File::open(out));
    EXPECT_EQ(header.number("general.file_type"), form == "mxfp4" ? 38u : 39u);
    const auto equal = assay({"convert", "--equal", in, out});
    EXPECT_EQ(equal.exit_code, 0) << form << equal.out << equal.err;
    expect_ok(assay({"convert", out, dir / ("back-" + form), "--to", "f32"}));
    const auto back = assay({"convert", "--equal", in, dir / ("back-" + form)});
    EXPECT_EQ(back.exit_code, 0) << form << back.out << back.err;
  }
}

TEST(Repack, OtherCommandsReadTheBlocks) {
  const TempDir dir;
  for (const std::string form : {"mxfp4", "nvfp4"}) {
    const fs::path in = kFixtures / "repack" / form, out = made_gguf(dir, form);
    const auto verified = assay({"verify", out});
    EXPECT_EQ(verified.exit_code, 0) << form << verified.out << verified.err;
    const auto counted = assay({"paramcount", out, "--format", "json"});
    ASSERT_EQ(counted.exit_code, 0) << form << counted.out << counted.err;
    const auto json = nlohmann::json::parse(counted.out);
    const auto original = nlohmann::json::parse(assay({"paramcount", in, "--format", "json"}).out);
    EXPECT_EQ(json.at("total"), original.at("total")) << form;
    EXPECT_EQ(json.at("checkpoint").at("difference"), 0) << form << counted.out;
    const auto inspected = assay({"inspect", out});
    EXPECT_NE(inspected.out.find(form == "mxfp4" ? "MXFP4" : "NVFP4"), std::string::npos) << inspected.out;
    // The same tokens come out of the engine, whichever it reads.
    const auto run = [&](const fs::path& model) {
      const auto result =
          assay({"run", model, "--tokens", "1,5,9,2", "-n", "6", "--kernels", "reference", "--json", "-"});
      EXPECT_EQ(result.exit_code, 0) << form << result.out << result.err;
      return nlohmann::json::parse(result.out).at("ids");
    };
    EXPECT_EQ(run(in), run(out)) << form;
  }
}

TEST(Repack, WhatIsNoFp4IsRefused) {
  const TempDir dir;
  const fs::path llama = test::source_dir() / "data/models/llama/model.safetensors";
  for (const char* type : {"gguf:nvfp4", "gguf:mxfp4"}) {
    const auto result = assay({"convert", llama, dir / "out.gguf", "--to", type, "--tokenizer-pre", "none"});
    EXPECT_EQ(result.exit_code, 1) << type << result.out << result.err;
    EXPECT_NE((result.out + result.err).find("only moves"), std::string::npos) << result.out << result.err;
    EXPECT_FALSE(fs::exists(dir / "out.gguf"));
  }
  const auto other = assay({"convert", kFixtures / "repack/mxfp4", dir / "out.gguf", "--to", "gguf:nvfp4",
                            "--tokenizer-pre", "none"});
  EXPECT_EQ(other.exit_code, 1) << other.out << other.err;
}

// A GGUF of one matrix with a factor beside it.
fs::path with_factor(const TempDir& dir, ElementType type, const std::vector<std::uint64_t>& ne,
                     const std::vector<float>& factors) {
  std::vector<gguf::Tensor> tensors = {{"blk.0.attn_q.weight", type, ne},
                                       {"blk.0.attn_q.scale", ElementType::F32, {factors.size()}}};
  const std::uint64_t data = gguf::place_tensors(tensors, gguf::kDefaultAlignment);
  const std::vector<gguf::KeyValue> keys = {gguf::text_value("general.architecture", "other")};
  const std::string bytes = gguf::serialize_header(keys, tensors, gguf::kDefaultAlignment);
  std::string buffer(data, '\0');
  for (std::size_t i = 0; i < tensors[0].bytes; ++i) buffer[i] = static_cast<char>(i % 0x38);
  std::memcpy(&buffer[tensors[1].offset], factors.data(), factors.size() * sizeof(float));
  test::write_file(dir / "one.gguf", bytes + buffer);
  return dir / "one.gguf";
}

std::vector<float> values_of(const TempDir& dir, const fs::path& gguf) {
  fs::remove_all(dir / "out");
  expect_ok(assay({"convert", gguf, dir / "out", "--to", "f32", "--allow-large"}));
  const Checkpoint made = open_checkpoint(dir / "out", 1);
  const std::string bytes = test::stored_bytes(made, tensor_of(made, "blk.0.attn_q.weight"));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Repack, AFactorBesideAWeightIsMultipliedIn) {
  for (const ElementType type :
       {ElementType::NVFP4, ElementType::Q8_0, ElementType::TQ2_0, ElementType::F16}) {
    const TempDir dir;
    const auto plain = values_of(dir, with_factor(dir, type, {256, 2, 2}, {1.0F}));
    const auto each = values_of(dir, with_factor(dir, type, {256, 2, 2}, {0.5F, 4.0F}));
    ASSERT_EQ(plain.size(), each.size());
    for (std::size_t i = 0; i < plain.size(); ++i)
      ASSERT_EQ(each[i], plain[i] * (i < 512 ? 0.5F : 4.0F)) << name(type) << " " << i;
  }
  const TempDir dir;
  const fs::path three = with_factor(dir, ElementType::Q8_0, {256, 2, 2}, {1, 2, 3});
  const auto refused = assay({"convert", three, dir / "out", "--to", "f32"});
  EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
  EXPECT_NE((refused.out + refused.err).find("neither one factor"), std::string::npos)
      << refused.out << refused.err;
}

TEST(Repack, FewBitTypesAreOffered) {
  const TempDir dir;
  const fs::path model = test::source_dir() / "data/models/deepseek-v3-fp8/model.safetensors";
  expect_ok(assay({"convert", model, dir / "moe.gguf", "--to", "gguf:mxfp4_moe", "--tokenizer-pre", "none"}));
  const Checkpoint moe = open_checkpoint(dir / "moe.gguf", 1);
  EXPECT_EQ(moe.gguf->number("general.file_type"), 38u);
  EXPECT_EQ(tensor_of(moe, "output.weight").type, ElementType::Q8_0);
  EXPECT_EQ(tensor_of(moe, "blk.1.ffn_gate_exps.weight").type, ElementType::MXFP4);
  EXPECT_EQ(tensor_of(moe, "blk.1.ffn_up_exps.weight").type, ElementType::MXFP4);
  const fs::path f16 = with_factor(dir, ElementType::F16, {256, 2}, {1.0F});
  struct Case {
    const char *type, *name;
    std::uint64_t number;
  };
  for (const Case& c : {Case{"tq1_0", "TQ1_0", 36}, Case{"tq2_0", "TQ2_0", 37}, Case{"q1_0", "Q1_0", 40},
                        Case{"q2_0", "Q2_0", 41}}) {
    const fs::path out = dir / (std::string(c.type) + ".gguf");
    expect_ok(assay({"convert", f16, out, "--to", std::string("gguf:") + c.type}));
    const Checkpoint few = open_checkpoint(out, 1);
    EXPECT_EQ(few.gguf->number("general.file_type"), c.number);
    EXPECT_EQ(name(tensor_of(few, "blk.0.attn_q.weight").type), c.name);
  }
}

}  // namespace
}  // namespace assay
