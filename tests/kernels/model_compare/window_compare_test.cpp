// Long texts under `compare model`: cut into windows, and never all their logits in memory.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "core/formats/safetensors.h"
#include "core/system/sanitizer.h"
#include "kernels/model_compare/model_compare.h"
#include "kernels/model_compare/passing_ops.h"
#include "kernels/registry/registry.h"
#include "kernels/selection/select.h"
#include "tests/support/paths.h"
#include "tests/support/peak_memory.h"
#include "tests/support/support.h"

namespace assay {
namespace {

const fs::path kData = test::source_dir() / "data";

nlohmann::json compared(const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {"compare",
                                        "model",
                                        (kData / "tinylm-bf16").string(),
                                        "--kernels",
                                        "reference",
                                        "--against-kernels",
                                        "cpu",
                                        "--against-precision",
                                        "f32",
                                        "-n",
                                        "0",
                                        "--json",
                                        "-"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.begin(), test::assay_binary());
  const test::ProcessResult result = test::run(arguments, {.timeout_seconds = 300});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

// The first 1,000 letters of the held-out text, in the windows of transformers (data/make_tinylm_windows.py).
TEST(CompareWindows, LossIsThatOfTransformers) {
  const auto expected = nlohmann::json::parse(test::read_file(kData / "fixtures/perplexity/windows.json"));
  const test::TempDir dir;
  test::write_file(dir / "text.txt", test::read_file(kData / "tinylm/heldout.txt").substr(0, 1000));
  const nlohmann::json found = compared(
      {"--file", (dir / "text.txt").string(), "--context", expected["context"].dump(), "--stride", "24"});
  EXPECT_NEAR(found["logits"]["loss_reference"].get<double>(), expected["transformers"]["loss"].get<double>(),
              2e-7);  // transformers computed in float32; measured: 1.5e-7
  EXPECT_EQ(found["logits"]["positions"],
            expected["transformers"]["tokens"].get<int>() + 1);  // the last, too
  EXPECT_GT(found["windows"], 10);
  EXPECT_EQ(found["first_divergence"], nullptr);
}

TEST(CompareWindows, WhatMakesNoSenseIsRefused) {
  const auto refuse = [](const std::vector<std::string>& options, const std::string& words) {
    std::vector<std::string> arguments = {"compare", "model", (kData / "tinylm-bf16").string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const test::ProcessResult result = test::assay(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  };
  refuse({"--context", "257"}, "the model's context of 256");
  refuse({"--context", "8", "--stride", "9"}, "--stride");
  refuse({"--context", "1"}, "--context");
}

// A fault in the second window only is a fault.
TEST(CompareWindows, AFaultOfAnyWindowIsNamed) {
  class SecondWindow : public PassingOps {
   public:
    explicit SecondWindow(std::unique_ptr<Ops> inner) : PassingOps(*inner), inner_(std::move(inner)) {}
    using PassingOps::run;
    Matrix run(const LinearCall& call) override {
      Matrix y = PassingOps::run(call);
      if (call.weight && call.weight.name->find("layers.1.self_attn.o_proj") != std::string::npos && second_)
        y = multiply(y, 1 + 1e-5);
      return y;
    }
    Matrix run(const EmbeddingCall& call) override {
      second_ = second_ || call.tokens.front() == 50;
      if (call.tokens.front() == 1) second_ = false;
      return PassingOps::run(call);
    }

   private:
    std::unique_ptr<Ops> inner_;
    bool second_ = false;
  };
  const auto kernels = [](const std::string& selection) {
    return [selection](const Arithmetic& arithmetic, int jobs) {
      return select_kernels(builtin_kernels(), selection, arithmetic, jobs);
    };
  };
  const Weights weights(kData / "models/llama", 1);
  ModelCompareRequest request = {.reference = {&weights, {Precision::f64}, kernels("reference")},
                                 .test = {&weights, {Precision::f32}, kernels("cpu")},
                                 .options = {},
                                 .tokens = {},
                                 .windows = {{{1, 17, 42, 5, 90, 61, 33}}, {{50, 17, 42, 5, 90, 61, 33}}},
                                 .greedy = 0,
                                 .jobs = 2};
  const ModelComparison good = compare_models(request);
  EXPECT_EQ(good.status, CaseStatus::passed) << testing::PrintToString(good.reasons);
  EXPECT_EQ(good.windows, 2u);
  EXPECT_EQ(good.prefill + good.decode, 14u);
  request.test.make_ops = [&](const Arithmetic& arithmetic, int jobs) {
    return std::make_unique<SecondWindow>(select_kernels(builtin_kernels(), "cpu", arithmetic, jobs));
  };
  const ModelComparison found = compare_models(request);
  ASSERT_TRUE(found.first_divergence);
  EXPECT_EQ(found.taps[*found.first_divergence].name, "layers.1.attn_out");
  EXPECT_FALSE(found.taps[*found.first_divergence].in_decode);
}

// A Llama of one layer and a large vocabulary.
void write_wide_model(const fs::path& folder, std::uint64_t vocabulary) {
  test::write_file(folder / "config.json", nlohmann::json({{"architectures", {"LlamaForCausalLM"}},
                                                           {"model_type", "llama"},
                                                           {"vocab_size", vocabulary},
                                                           {"hidden_size", 8},
                                                           {"intermediate_size", 16},
                                                           {"num_hidden_layers", 1},
                                                           {"num_attention_heads", 2},
                                                           {"num_key_value_heads", 1},
                                                           {"rms_norm_eps", 1e-6},
                                                           {"max_position_embeddings", 4096},
                                                           {"tie_word_embeddings", true}})
                                               .dump());
  const std::string layer = "model.layers.0.";
  std::vector<safetensors::Tensor> tensors;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    tensors.push_back({name, ElementType::F32, std::move(shape)});
  };
  add("model.embed_tokens.weight", {vocabulary, 8});
  for (const char* name : {"self_attn.q_proj", "self_attn.o_proj"}) add(layer + name + ".weight", {8, 8});
  for (const char* name : {"self_attn.k_proj", "self_attn.v_proj"}) add(layer + name + ".weight", {4, 8});
  for (const char* name : {"mlp.gate_proj", "mlp.up_proj"}) add(layer + name + ".weight", {16, 8});
  add(layer + "mlp.down_proj.weight", {8, 16});
  for (const char* name : {"input_layernorm", "post_attention_layernorm"}) add(layer + name + ".weight", {8});
  add("model.norm.weight", {8});
  AtomicFile file(folder / "model.safetensors");
  file.write(safetensors::serialize_header(tensors, {}));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const safetensors::Tensor& tensor : tensors) {
    std::vector<float> values(tensor.bytes() / sizeof(float));
    for (float& value : values) value = normal(random);
    file.write(std::as_bytes(std::span(values)));
  }
  file.commit();
}

std::string ids(std::size_t count, std::uint64_t vocabulary) {
  std::string list;
  for (std::uint64_t i = 0; i < count; ++i)
    list += (i == 0 ? "" : ",") + std::to_string((i * 2654435761u + 1) % vocabulary);
  return list;
}

// `assay` with at most `megabytes` of address space.
test::ProcessResult within(std::size_t megabytes, std::vector<std::string> arguments) {
  std::vector<std::string> command = {"sh", "-c",
                                      "ulimit -v " + std::to_string(megabytes << 10) + "; exec \"$@\"", "sh",
                                      test::assay_binary()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return test::run(command, {.timeout_seconds = 300});
}

// 100 rows of 151,936 are 0.12 GB as doubles, of each side, of every way it is computed. With none kept it takes
// 136 MB, of 300 as of 100.
TEST(CompareWindows, LogitsAreNotKept) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: a sanitizer takes address space of its own";
  const test::TempDir dir;
  write_wide_model(dir.path(), 151936);
  const test::Peak peak =
      test::assay_peak({"compare", "model", dir.path().string(), "--tokens", ids(100, 151936), "--limit",
                        "100", "-n", "0", "--jobs", "2", "--kernels", "cpu", "--against-precision", "f32"});
  EXPECT_EQ(peak.exit_code, 0);
  EXPECT_LE(peak.bytes, 200'000'000u);
}

// Kept, the rows of 60 tokens would be 73 MB of the truth, as much of a clean run, and their copies. With none
// kept it takes 133 MB, of 100 as of 60.
TEST(ModelMutants, LogitsAreNotKept) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: a sanitizer takes address space of its own";
  const test::TempDir dir;
  write_wide_model(dir.path(), 151936);
  const test::Peak peak =
      test::assay_peak({"compare", "model", dir.path().string(), "--tokens", ids(60, 151936), "--limit", "60",
                        "-n", "0", "--jobs", "2", "--mutants"});
  EXPECT_EQ(peak.exit_code, 0);
  EXPECT_LE(peak.bytes, 200'000'000u);
}

TEST(RunLogits, OfALongTextAreWrittenAsTheyCome) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: a sanitizer takes address space of its own";
  const test::TempDir dir;
  write_wide_model(dir.path(), 151936);
  const std::string out = dir / "logits.safetensors";
  const test::ProcessResult result = within(600, {"run", dir.path().string(), "--tokens", ids(600, 151936),
                                                  "--jobs", "2", "--kernels", "cpu", "--logits", out});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto header = safetensors::read_header(File::open(out), safetensors::Reading::strict);
  EXPECT_EQ(header.tensors.at(0).shape, (std::vector<std::uint64_t>{600, 151936}));
  EXPECT_EQ(header.file_bytes, header.buffer_offset() + 600 * 151936 * sizeof(float));
}

}  // namespace
}  // namespace assay
