// `assay check` on data/tinylm and on copies of it, each with one thing wrong: is it caught, and named?
//
// data/tinylm/assay-golden.json was made without assay: digests by hashlib, logits by transformers in
// float64.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;
using Edit = std::function<void(std::string& bytes, const std::vector<std::size_t>& shape)>;

const fs::path kTinylm = source_dir() / "data/tinylm";

class Check : public testing::Test {
 protected:
  Check() { fs::copy(kTinylm, model_); }

  fs::path file_of(const std::string& tensor) const {
    const json index = json::parse(read_file(model_ / "model.safetensors.index.json"));
    return model_ / index.at("weight_map").at(tensor).get<std::string>();
  }
  void edit(const std::string& tensor, const Edit& change) const {
    const fs::path file = file_of(tensor);
    std::string bytes = read_file(file);
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    const json entry = json::parse(bytes.substr(8, size)).at(tensor);
    const std::size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
    std::string part = bytes.substr(8 + size + begin, end - begin);
    change(part, entry.at("shape").get<std::vector<std::size_t>>());
    bytes.replace(8 + size + begin, end - begin, part);
    write_file(file, bytes);
  }
  std::string bytes_of(const std::string& tensor) const {
    std::string found;
    edit(tensor, [&](std::string& bytes, const auto&) { found = bytes; });
    return found;
  }
  void exchange(const std::string& a, const std::string& b) const {
    const std::string of_a = bytes_of(a), of_b = bytes_of(b);
    edit(a, [&](std::string& bytes, const auto&) { bytes = of_b; });
    edit(b, [&](std::string& bytes, const auto&) { bytes = of_a; });
  }
  void transpose_scale() const {
    edit(kScale, [](std::string& bytes, const std::vector<std::size_t>& shape) {
      ASSERT_EQ(shape, (std::vector<std::size_t>{2, 2}));
      for (std::size_t i = 0; i < 4; ++i) std::swap(bytes[4 + i], bytes[8 + i]);
    });
  }
  void exchange_experts() const {
    for (const char* part : {"gate", "up", "down"}) {
      for (const char* stored : {"weight", "weight_scale_inv"}) {
        const std::string tail = std::string(".") + part + "_proj." + stored;
        exchange("model.layers.2.mlp.experts.3" + tail, "model.layers.2.mlp.experts.5" + tail);
      }
    }
  }
  void change_config(const std::function<void(json&)>& change) const {
    json config = json::parse(read_file(model_ / "config.json"));
    change(config);
    write_file(model_ / "config.json", config.dump(2));
  }
  ProcessResult check(std::vector<std::string> more = {}) const { return check_at(model_, std::move(more)); }
  static ProcessResult check_at(const fs::path& path, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"check", path.string()});
    return assay(std::move(more));
  }
  // Exit code 1, and every one of `texts` is said.
  static void expect_caught(const ProcessResult& result, const std::vector<std::string>& texts) {
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    for (const std::string& text : texts)
      EXPECT_NE(result.out.find(text), std::string::npos) << "nothing says " << text << "\n" << result.out;
  }

  static constexpr const char* kScale = "model.layers.0.mlp.down_proj.weight_scale_inv";
  TempDir dir_;
  fs::path model_ = dir_ / "model";
};

TEST_F(Check, AGoodModelPasses) {
  const ProcessResult result = check();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("1,154,682 parameters"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("PASSED    golden"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("PASSED    behaviour"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("unproven: bytes"), std::string::npos) << result.out;
}

TEST_F(Check, BytesAreProvenByAManifestAndStrictAsksForThat) {
  EXPECT_EQ(check({"--strict"}).exit_code, 1);
  const ProcessResult manifest = assay({"manifest", model_.string(), "--hash"});
  write_file(dir_ / "SHA256SUMS", manifest.out);
  const ProcessResult result = check({"--strict", "--manifest", (dir_ / "SHA256SUMS").string()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  transpose_scale();
  expect_caught(check({"--manifest", (dir_ / "SHA256SUMS").string()}), {"FAILED    bytes"});
}

TEST_F(Check, NamesATransposedScale) {
  transpose_scale();
  expect_caught(check(), {std::string(kScale) + ": is stored transposed", "off by", "FAILED    behaviour"});
}

TEST_F(Check, NamesExchangedExperts) {
  exchange_experts();
  expect_caught(
      check(), {"experts.3.up_proj.weight: holds what model.layers.2.mlp.experts.5.up_proj.weight held",
                "experts.5.down_proj.weight: holds what model.layers.2.mlp.experts.3.down_proj.weight held"});
}

TEST_F(Check, NamesTheKeyOfAStaleConfig) {
  change_config([](json& config) { config["rope_theta"] = 500000; });
  expect_caught(check(), {"rope_theta: 500000, not 10000", "FAILED    behaviour"});
}

TEST_F(Check, MissesTheConfigOfTheRecord) {
  fs::remove(model_ / "config.json");
  const ProcessResult result = assay({"check", model_.string()});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.out.find("error: config.json: is in the record and not here"), std::string::npos)
      << result.out;
}

TEST_F(Check, AStaleConfigOfOtherShapesNeedsNoRecord) {
  fs::remove(model_ / "assay-golden.json");
  change_config([](json& config) { config["n_routed_experts"] = 8; });
  expect_caught(check(), {"FAILED    identity", "mlp.gate.", "n_routed_experts = 9 would have them, not 8"});
}

// What no class loads is no matter of what is described here: not "unproven".
TEST_F(Check, AListOfFewerLayersThanThereAreIsAFault) {
  for (const auto& [key, name] :
       {std::pair("layer_types", "qwen3_next"), std::pair("mlp_layer_types", "axk1")}) {
    change_config([&, name = std::string(name), key = key](json& config) {
      config = json::parse(read_file(source_dir() / ("data/fixtures/configs/" + name + ".json")));
      config[key].erase(0);
    });
    expect_caught(check({"--quick"}), {"FAILED    identity", key, "no model is loaded by it"});
  }
}

TEST_F(Check, ALostQuantizationConfigNeedsNoRecord) {
  fs::remove(model_ / "assay-golden.json");
  change_config([](json& config) { config.erase("quantization_config"); });
  expect_caught(check(), {"FAILED    identity", "no quantization_config"});
}

TEST_F(Check, NaNIsFoundInNumbersAndSoIsANegativeScale) {
  edit("model.norm.weight", [](std::string& bytes, const auto&) { bytes[1] = '\x7f', bytes[0] = '\xc1'; });
  edit(kScale, [](std::string& bytes, const auto&) { bytes[3] = static_cast<char>(bytes[3] ^ 0x80); });
  expect_caught(check(), {"FAILED    numbers", "holds 1 NaN", "scales are positive"});
}

TEST_F(Check, NaNMayBeAllowed) {
  edit("model.norm.weight", [](std::string& bytes, const auto&) { bytes[1] = '\x7f', bytes[0] = '\xc1'; });
  EXPECT_NE(check().out.find("FAILED    numbers"), std::string::npos);
  const ProcessResult allowed = check_at(model_, {"--allow-nonfinite"});
  EXPECT_NE(allowed.out.find("PASSED    numbers"), std::string::npos) << allowed.out;
  EXPECT_NE(allowed.out.find("holds 1 NaN"), std::string::npos) << allowed.out;
}

TEST_F(Check, AgainstTheOriginalAConversionMayRound) {
  const fs::path out = dir_ / "bf16", back = dir_ / "int8";
  ASSERT_EQ(assay({"convert", model_.string(), out.string(), "--to", "bf16"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(out / "assay-golden.json"));
  const ProcessResult result = check_at(out, {"--against", kTinylm.string()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  ASSERT_EQ(assay({"convert", out.string(), back.string(), "--to", "int8:block=128x128"}).exit_code, 0);
  EXPECT_EQ(check_at(back, {"--against", kTinylm.string()}).exit_code, 0);
}

TEST_F(Check, AgainstTheOriginalAFaultShowsInAnyFormat) {
  transpose_scale();
  exchange_experts();
  const fs::path out = dir_ / "bf16";
  ASSERT_EQ(assay({"convert", model_.string(), out.string(), "--to", "bf16"}).exit_code, 0);
  expect_caught(check_at(out, {"--against", kTinylm.string()}),
                {"model.layers.0.mlp.down_proj.weight", "grid of scales is stored transposed",
                 "it holds the values of model.layers.2.mlp.experts.3.gate_proj.weight"});
}

TEST_F(Check, AgainstTheOriginalAFactorIsTold) {
  edit(kScale, [](std::string& bytes, const auto&) {
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      float scale;
      std::memcpy(&scale, &bytes[i], 4);
      scale *= 2;
      std::memcpy(&bytes[i], &scale, 4);
    }
  });
  expect_caught(check({"--against", kTinylm.string()}), {"all of it is 2 × what it should be"});
}

TEST_F(Check, ARecordIsMadeOfAGoodModelOnly) {
  fs::remove(model_ / "assay-golden.json");
  const std::string golden = (dir_ / "g.json").string();
  EXPECT_EQ(check({"--record", golden}).exit_code, 0);
  EXPECT_EQ(check({"--golden", golden}).exit_code, 0);
  exchange_experts();
  expect_caught(check({"--golden", golden}), {"FAILED    golden"});
  fs::remove(golden);
  change_config([](json& config) { config.erase("quantization_config"); });
  EXPECT_EQ(check({"--record", golden}).exit_code, 1);
  EXPECT_FALSE(fs::exists(golden));
}

TEST_F(Check, OfAnotherFormOnlyTheBehaviourIsHeldToTheRecord) {
  const fs::path out = dir_ / "reblocked";
  ASSERT_EQ(assay({"convert", model_.string(), out.string(), "--to", "reblock=64x64"}).exit_code, 0);
  const ProcessResult result = check_at(out, {"--golden", (kTinylm / "assay-golden.json").string()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("UNPROVEN  golden"), std::string::npos) << result.out;
}

TEST_F(Check, HostileRecordsAreRefusedInOneLine) {
  const std::vector<std::string> records = {
      "",
      "[]",
      "{}",
      R"({"schema": "assay.golden/2"})",
      R"({"schema": "assay.golden/1", "tensors": []})",
      R"({"schema": "assay.golden/1", "tensors": {"a": {"type": "F32", "shape": [-1], "sha256": "00"}}})",
      R"({"schema": "assay.golden/1", "behaviour": {"tokens": [99999999999], "logits": []}})",
      R"({"schema": "assay.golden/1", "behaviour": {"tokens": [1], "logits": [1]}})"};
  for (const std::string& record : records) {
    write_file(dir_ / "g.json", record);
    const ProcessResult result = check({"--golden", (dir_ / "g.json").string()});
    EXPECT_EQ(result.exit_code, 2) << record << result.out;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << record << result.err;
    EXPECT_NE(result.err.find("g.json"), std::string::npos) << result.err;
  }
  // A token beyond the vocabulary is only known when the model is.
  write_file(dir_ / "g.json",
             R"({"schema": "assay.golden/1", "behaviour": {"tokens": [100000], "logits": []}})");
  EXPECT_NE(check({"--golden", (dir_ / "g.json").string()}).out.find("UNPROVEN  behaviour"),
            std::string::npos);
}

TEST_F(Check, PerplexityMayBeLimited) {
  const std::string text = (kTinylm / "heldout.txt").string();
  EXPECT_EQ(check({"--text", text}).exit_code, 0);
  expect_caught(check({"--text", text, "--max-perplexity", "1.01"}), {"is above 1.01"});
}

TEST_F(Check, QuickReadsHeadersOnly) {
  exchange_experts();
  const ProcessResult result = check({"--quick"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  change_config([](json& config) { config["n_routed_experts"] = 8; });
  EXPECT_EQ(check({"--quick"}).exit_code, 1);
}

TEST_F(Check, SaysItAgainInJsonAndHtml) {
  exchange_experts();
  const std::string page = (dir_ / "page.html").string();
  const ProcessResult result = check({"--json", "-", "--html", page});
  EXPECT_EQ(result.exit_code, 1);
  const json document = json::parse(result.out);
  EXPECT_EQ(document.at("schema"), "assay.check/1");
  EXPECT_EQ(document.at("verdict"), "failed");
  EXPECT_EQ(document.at("stages").size(), 6u);
  EXPECT_NE(read_file(page).find("held when it was recorded"), std::string::npos);
}

TEST_F(Check, WhatCannotBeReadIsExitCode2) {
  EXPECT_EQ(check_at(dir_ / "nowhere").exit_code, 2);
  EXPECT_EQ(check({"--against", (dir_ / "nowhere").string()}).exit_code, 2);
  EXPECT_EQ(check({"--kernels", "nonsense"}).exit_code, 2);
  fs::create_directory(dir_ / "empty");
  EXPECT_EQ(check_at(dir_ / "empty").exit_code, 2);
}

}  // namespace
}  // namespace assay::test
