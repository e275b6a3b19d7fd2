// `assay check` of models whose bytes are all well formed and whose values are not: warnings of the stage
// `numbers`, which --strict makes a no, and copies of one weight that hold two.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

// data/tinylm-bf16: all weights in BF16, four layers.
class CheckValues : public testing::Test {
 protected:
  CheckValues() { fs::copy(source_dir() / "data/tinylm-bf16", model_); }

  void edit(const std::string& tensor, const std::function<void(std::string&)>& change) const {
    const json index = json::parse(read_file(model_ / "model.safetensors.index.json"));
    const fs::path file = model_ / index.at("weight_map").at(tensor).get<std::string>();
    std::string bytes = read_file(file);
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    const json offsets = json::parse(bytes.substr(8, size)).at(tensor).at("data_offsets");
    const std::size_t begin = 8 + size + offsets[0].get<std::size_t>(),
                      length = offsets[1].get<std::size_t>() - offsets[0].get<std::size_t>();
    std::string part = bytes.substr(begin, length);
    change(part);
    bytes.replace(begin, length, part);
    write_file(file, bytes);
  }
  // Everything proven but what the edit did: a manifest of the bytes as they are.
  ProcessResult check(std::vector<std::string> more = {}) const {
    write_file(dir_ / "SHA256SUMS", assay({"manifest", model_.string(), "--hash"}).out);
    more.insert(more.begin(), {"check", model_.string(), "--manifest", (dir_ / "SHA256SUMS").string()});
    return assay(std::move(more));
  }
  void expect_warned(const std::string& said) const {
    const ProcessResult result = check(), strict = check({"--strict"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_NE(result.out.find(said), std::string::npos) << result.out;
    EXPECT_EQ(strict.exit_code, 1) << strict.out;
    EXPECT_NE(strict.out.find("FAILED (--strict)"), std::string::npos) << strict.out;
  }

  TempDir dir_;
  fs::path model_ = dir_ / "model";
};

constexpr const char* kMatrix = "model.layers.1.self_attn.o_proj.weight";

void fill(std::string& bytes, std::uint16_t bf16) {
  for (std::size_t i = 0; i < bytes.size(); i += 2) std::memcpy(&bytes[i], &bf16, 2);
}

TEST_F(CheckValues, AGoodModelPassesStrictly) {
  const ProcessResult result = check({"--strict"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(CheckValues, AMatrixOfZerosIsAWarning) {
  edit(kMatrix, [](std::string& bytes) { fill(bytes, 0); });
  expect_warned("values are zero");
}

TEST_F(CheckValues, AConstantMatrixIsAWarning) {
  edit(kMatrix, [](std::string& bytes) { fill(bytes, 0x3C00); });
  expect_warned("values are 0.0078125");
}

// The exponent up by 20: about a million times; or down.
TEST_F(CheckValues, AMatrixOfAnotherSizeThanInOtherLayersIsAWarning) {
  for (const int powers : {20, -20}) {
    edit(kMatrix, [&](std::string& bytes) {
      for (std::size_t i = 0; i < bytes.size(); i += 2) {
        std::uint16_t value = 0;
        std::memcpy(&value, &bytes[i], 2);
        if ((value & 0x7F80) != 0) value = static_cast<std::uint16_t>(value + powers * 128);
        std::memcpy(&bytes[i], &value, 2);
      }
    });
    const ProcessResult result = check();
    EXPECT_NE(result.out.find("× the median of the same tensor of"), std::string::npos)
        << powers << result.out;
    EXPECT_EQ(check({"--strict"}).exit_code, 1);
    fs::remove_all(model_);
    fs::copy(source_dir() / "data/tinylm-bf16", model_);
  }
}

TEST_F(CheckValues, AHeadThatIsTiedByTheConfigMustHoldTheEmbeddingsValues) {
  json config = json::parse(read_file(model_ / "config.json"));
  config["tie_word_embeddings"] = true;
  write_file(model_ / "config.json", config.dump());
  const ProcessResult result = check();
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_NE(result.out.find("FAILED    identity"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("lm_head.weight: is tied to model.embed_tokens.weight"), std::string::npos)
      << result.out;

  std::string embedding;
  edit("model.embed_tokens.weight", [&](std::string& bytes) { embedding = bytes; });
  edit("lm_head.weight", [&](std::string& bytes) { bytes = embedding; });
  const ProcessResult same = check();
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
}

// Of FP8, one scale of zero over codes; the damage is an error by itself, without another checkpoint.
TEST_F(CheckValues, AScaleOfZeroOverCodesIsAnError) {
  fs::remove_all(model_);
  fs::copy(source_dir() / "data/tinylm", model_);
  fs::remove(model_ / "assay-golden.json");
  edit("model.layers.0.mlp.down_proj.weight_scale_inv",
       [](std::string& bytes) { bytes.replace(4, 4, 4, '\0'); });
  const ProcessResult result = check();
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(
      result.out.find("1 of its scales is zero over codes that are not, the first over row 0, column 128"),
      std::string::npos)
      << result.out;
}

}  // namespace
}  // namespace assay::test
