// Whole models: a good one passes, a fault in one layer is named with layer and tap.
#include "kernels/model_compare/model_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/formats/safetensors.h"
#include "core/system/error.h"
#include "kernels/model_compare/model_mutants.h"
#include "kernels/model_compare/passing_ops.h"
#include "kernels/model_compare/quantization_noise.h"
#include "kernels/registry/registry.h"
#include "kernels/selection/select.h"
#include "refimpl/ops/reference.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

fs::path folder(const std::string& name) {
  return test::source_dir() / "data" / name;
}

using MakeOps = std::function<std::unique_ptr<Ops>(const Arithmetic&, int)>;
MakeOps kernels(const std::string& selection) {
  return [selection](const Arithmetic& arithmetic, int jobs) {
    return select_kernels(builtin_kernels(), selection, arithmetic, jobs);
  };
}

std::vector<TokenId> some_tokens(std::size_t count = 20) {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>((7 * i * i + 3 * i + 2) % 90));
  return tokens;
}

ModelCompareRequest request_of(const Weights& reference, const Weights& test, MakeOps make = kernels("cpu")) {
  return {.reference = {&reference, {Precision::f64}, kernels("reference")},
          .test = {&test, {Precision::f32}, std::move(make)},
          .options = {},
          .tokens = some_tokens(),
          .greedy = 4,
          .jobs = 2};
}

std::string first_divergence(const ModelComparison& result) {
  return result.first_divergence ? result.taps[*result.first_divergence].name : "none";
}

// The cpu kernels, but for what a test overrides.
class FaultyOps : public PassingOps {
 public:
  explicit FaultyOps(std::unique_ptr<Ops> inner) : PassingOps(*inner), inner_(std::move(inner)) {}

 private:
  std::unique_ptr<Ops> inner_;
};
template <class Faulty>
MakeOps faulty() {
  return [](const Arithmetic& arithmetic, int jobs) {
    return std::make_unique<Faulty>(select_kernels(builtin_kernels(), "cpu", arithmetic, jobs));
  };
}

bool is_of(const WeightView& weight, std::string_view name) {
  return weight && weight.name->find(name) != std::string::npos;
}

// ------------------------------------------------------------------------------------------ nothing is wrong

class EveryModel : public testing::TestWithParam<const char*> {};

TEST_P(EveryModel, TheCpuKernelsPass) {
  const Weights weights(folder(GetParam()), 1);
  const ModelComparison result = compare_models(request_of(weights, weights));
  EXPECT_EQ(result.status, CaseStatus::passed) << testing::PrintToString(result.reasons);
  EXPECT_EQ(first_divergence(result), "none");
  EXPECT_TRUE(result.probe_inert);
  EXPECT_FALSE(result.bit_equal);
  EXPECT_GT(result.taps.size(), 10u);
  EXPECT_LT(result.largest_ratio(), 1);
  EXPECT_GT(result.largest_ratio(), 0.05);  // else the yardstick would be too long
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel,
                         testing::Values("tinylm", "models/llama", "models/gemma2", "models/gpt2",
                                         "models/gpt-oss", "models/deepseek-v2", "models/kimi-k2",
                                         "models/mixtral", "models/olmo2", "models/qwen3-moe",
                                         "models/llama-dynamic", "models/minicpm3"));

TEST(CompareModel, Bfloat16IsHeldToPlainBfloat16) {
  const Weights weights(folder("models/qwen3"), 1);
  ModelCompareRequest request = request_of(weights, weights, kernels("reference"));
  request.test.arithmetic = {Precision::bf16};
  const ModelComparison result = compare_models(request);
  EXPECT_EQ(result.status, CaseStatus::passed) << testing::PrintToString(result.reasons);
  EXPECT_GT(result.taps.back().free.all().relative(), 1e-4);
}

TEST(CompareModel, ShortOfFloat32IsNoted) {
  // Weights as if a kernel had kept its sums in bfloat16: under float32 that is a divergence from the start.
  class Bf16Sums : public FaultyOps {
   public:
    using FaultyOps::FaultyOps;
    using FaultyOps::run;
    Matrix run(const LinearCall& call) override {
      const Matrix y = FaultyOps::run(call);
      std::vector<double> values = download(y);
      for (double& v : values) v = Arithmetic{Precision::bf16}.round(v);
      return upload(values, y.rows(), y.columns());
    }
  };
  const Weights weights(folder("models/qwen2"), 1);
  EXPECT_EQ(first_divergence(compare_models(request_of(weights, weights, faulty<Bf16Sums>()))),
            "layers.0.q_proj");
}

TEST(CompareModel, GgufRowsInAnotherOrderAreTheSameModel) {
  for (const char* model : {"models/llama", "models/mixtral", "models/deepseek-v3"}) {
    const Weights safetensors(folder(model), 1), gguf(folder(model) / "gguf/model.gguf", 1);
    const ModelComparison result = compare_models(request_of(safetensors, gguf));
    EXPECT_EQ(result.status, CaseStatus::passed) << model << testing::PrintToString(result.reasons);
  }
}

TEST(CompareModel, OneProgramTwiceIsToldApartFromAgreement) {
  const Weights weights(folder("models/llama"), 1);
  ModelCompareRequest request = request_of(weights, weights, kernels("reference"));
  request.test.arithmetic = request.reference.arithmetic;
  request.same_program = true;
  const ModelComparison result = compare_models(request);
  EXPECT_EQ(result.status, CaseStatus::passed);
  EXPECT_TRUE(result.bit_equal);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("same program"), std::string::npos);
}

// -------------------------------------------------------------------------------------------- faulty kernels

TEST(CompareModel, OneLinearOfOneLayerIsNamed) {
  class OneLinear : public FaultyOps {
   public:
    using FaultyOps::FaultyOps;
    using FaultyOps::run;
    Matrix run(const LinearCall& call) override {
      Matrix y = FaultyOps::run(call);
      if (is_of(call.weight, "layers.1.self_attn.o_proj")) y = multiply(y, 1 + 1e-5);
      return y;
    }
  };
  const Weights weights(folder("models/gemma3"), 1);
  const ModelComparison result = compare_models(request_of(weights, weights, faulty<OneLinear>()));
  EXPECT_EQ(result.status, CaseStatus::failed);
  EXPECT_EQ(first_divergence(result), "layers.1.attn_out");
  // Errors inherited from it are no divergence of their own.
  for (const TapReport& tap : result.taps)
    EXPECT_EQ(tap.ratio > 1, tap.name == "layers.1.attn_out") << tap.name;
}

TEST(CompareModel, AttentionOfOneLayerIsNamedEvenWhereOnlyDecodingIsWrong) {
  class LateWindow : public FaultyOps {
   public:
    using FaultyOps::FaultyOps;
    using FaultyOps::run;
    Matrix run(const AttentionCall& call) override {
      AttentionCall wrong = call;
      if (call.q.rows() == 1 && ++calls_ % 3 == 2)
        wrong.window = call.sequences[0].keys - 1;  // of 3 layers, the second
      return FaultyOps::run(wrong);
    }

   private:
    int calls_ = 0;
  };
  const Weights weights(folder("models/llama"), 1);
  ASSERT_EQ(weights.tree().layers, 3u);
  const ModelComparison result = compare_models(request_of(weights, weights, faulty<LateWindow>()));
  EXPECT_EQ(first_divergence(result), "layers.1.attn_context");
  EXPECT_TRUE(result.taps[*result.first_divergence].in_decode);
}

TEST(CompareModel, ALeakedRouterBiasIsNamed) {
  class Leak : public FaultyOps {
   public:
    using FaultyOps::FaultyOps;
    using FaultyOps::run;
    Routing run(const MoeGateCall& call) override {
      Routing routing = FaultyOps::run(call);
      if (!is_of(call.correction, "layers.2.")) return routing;
      const std::vector<double> bias = decode_vector(call.correction);
      std::vector<double> weights = download(routing.weights);
      for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] += bias[static_cast<std::size_t>(routing.experts[i])];
      routing.weights = upload(weights, routing.weights.rows(), routing.weights.columns());
      return routing;
    }
  };
  const Weights weights(folder("tinylm"), 1);
  EXPECT_EQ(first_divergence(compare_models(request_of(weights, weights, faulty<Leak>()))),
            "layers.2.router_weights");
}

TEST(CompareModel, NotANumberIsADivergence) {
  class OneNan : public FaultyOps {
   public:
    using FaultyOps::FaultyOps;
    using FaultyOps::run;
    Matrix run(const LinearCall& call) override {
      Matrix y = FaultyOps::run(call);
      if (!is_of(call.weight, "layers.0.mlp.down_proj")) return y;
      std::vector<double> values = download(y);
      values.back() = std::nan("");
      return upload(values, y.rows(), y.columns());
    }
  };
  const Weights weights(folder("models/llama"), 1);
  EXPECT_EQ(first_divergence(compare_models(request_of(weights, weights, faulty<OneNan>()))),
            "layers.0.mlp_out");
}

TEST(CompareModel, KernelsThatDoNotRepeatThemselvesAreNotTrusted) {
  class Unsteady : public FaultyOps {
   public:
    using FaultyOps::FaultyOps;
    using FaultyOps::run;
    Matrix run(const AttentionCall& call) override {
      return multiply(FaultyOps::run(call), ++calls_ % 2 == 0 ? 1 + 0x1p-23 : 1);
    }

   private:
    int calls_ = 0;
  };
  const Weights weights(folder("models/llama"), 1);
  const ModelComparison result = compare_models(request_of(weights, weights, faulty<Unsteady>()));
  EXPECT_FALSE(result.probe_inert);
  EXPECT_EQ(result.status, CaseStatus::failed);
}

// ---------------------------------------------------------------------------------------- faulty checkpoints

// A copy of a model of data/models whose bytes can be changed.
class Copy {
 public:
  explicit Copy(const std::string& name) {
    fs::copy(folder(name), dir_.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    header_ = safetensors::read_header(File::open(path()), safetensors::Reading::reference);
    bytes_ = test::read_file(path());
  }
  char* tensor(const std::string& name, std::size_t* size = nullptr) {
    const auto it = std::find_if(header_.tensors.begin(), header_.tensors.end(),
                                 [&](const auto& t) { return t.name == name; });
    EXPECT_NE(it, header_.tensors.end()) << name;
    if (size != nullptr) *size = it->end - it->begin;
    return bytes_.data() + header_.buffer_offset() + it->begin;
  }
  void swap(const std::string& a, const std::string& b) {
    std::size_t size = 0, other = 0;
    char *x = tensor(a, &size), *y = tensor(b, &other);
    ASSERT_EQ(size, other);
    std::swap_ranges(x, x + size, y);
  }
  std::string compare(const std::string& original) {
    test::write_file(path(), bytes_);
    const Weights before(folder(original), 1), after(dir_.path(), 1);
    return first_divergence(compare_models(request_of(before, after)));
  }

 private:
  fs::path path() const { return dir_ / "model.safetensors"; }
  test::TempDir dir_;
  safetensors::Header header_;
  std::string bytes_;
};

TEST(CompareCheckpoints, AnUnchangedCopyPasses) {
  EXPECT_EQ(Copy("models/deepseek-v3-fp8").compare("models/deepseek-v3-fp8"), "none");
}

TEST(CompareCheckpoints, ATransposedScaleIsNamed) {
  Copy copy("models/deepseek-v3-fp8");
  std::size_t size = 0;
  char* scale = copy.tensor("model.layers.1.self_attn.q_a_proj.weight_scale_inv", &size);
  ASSERT_EQ(size, 4 * sizeof(float));  // 2 × 2 blocks
  std::swap_ranges(scale + 4, scale + 8, scale + 8);
  EXPECT_EQ(copy.compare("models/deepseek-v3-fp8"), "layers.1.q");
}

TEST(CompareCheckpoints, ASwappedExpertIsNamed) {
  Copy copy("models/deepseek-v3-fp8");
  for (const char* matrix : {"gate_proj", "up_proj", "down_proj"}) {
    for (const char* part : {"weight", "weight_scale_inv"}) {
      const auto name = [&](int e) {
        return "model.layers.1.mlp.experts." + std::to_string(e) + "." + matrix + "." + part;
      };
      copy.swap(name(2), name(4));
    }
  }
  EXPECT_EQ(copy.compare("models/deepseek-v3-fp8"), "layers.1.mlp_out");
}

TEST(CompareCheckpoints, ANormWeightThatIsOffIsNamed) {
  Copy copy("models/deepseek-v3-fp8");
  copy.tensor("model.layers.1.post_attention_layernorm.weight")[0] ^= 0x10;  // a bit of the mantissa
  EXPECT_EQ(copy.compare("models/deepseek-v3-fp8"), "layers.1.mlp_norm");
}

TEST(CompareCheckpoints, AnotherModelIsRefused) {
  const Weights llama(folder("models/llama"), 1), gpt2(folder("models/gpt2"), 1);
  EXPECT_THROW(compare_models(request_of(llama, gpt2)), Error);
}

// Conversions: within what the form explains, and no further.
class Converted : public testing::TestWithParam<const char*> {};

TEST_P(Converted, PassesAndAFaultOnTopIsNamed) {
  const test::TempDir dir;
  const std::string out = dir / (std::string(GetParam()).starts_with("gguf") ? "out.gguf" : "out");
  const test::ProcessResult made = test::assay({"convert", folder("tinylm-bf16"), out, "--to", GetParam()});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Weights before(folder("tinylm-bf16"), 1), after(out, 1);
  const ModelComparison result = compare_models(request_of(before, after));
  EXPECT_EQ(result.status, CaseStatus::passed) << testing::PrintToString(result.reasons);
  EXPECT_GT(result.requantized, 50u);

  // The same, and one matrix too large by more than its form could ever be off.
  class TooLarge : public FaultyOps {
   public:
    using FaultyOps::FaultyOps;
    using FaultyOps::run;
    Matrix run(const FusedMoeCall& call) override {
      const Matrix y = FaultyOps::run(call);
      const WeightView& down = call.experts.down.front();
      return is_of(down, "layers.2.") || is_of(down, "blk.2.") ? multiply(y, 1.3) : y;
    }
  };
  EXPECT_EQ(first_divergence(compare_models(request_of(before, after, faulty<TooLarge>()))),
            "layers.2.mlp_out");
}

INSTANTIATE_TEST_SUITE_P(Forms, Converted,
                         testing::Values("fp8:block=128x128", "int8:channel", "int8:block=128x128",
                                         "gguf:q8_0", "gguf:q4_k_m"));

// What the noise assumes against what rounding did: ‖Q(W) - W‖ / ‖W‖ of real weights.
TEST(QuantizationNoise, NoiseIsThatOfTheConversion) {
  const Weights before(folder("tinylm-bf16"), 1);
  const WeightKey key = {.role = Role::mlp_gate, .part = Part::dense_mlp, .layer = 0};
  const WeightView original = before.get(key);
  std::vector<float> w(original.rows * original.columns), q(w.size());
  decode_rows(original, 0, original.rows, w.data());
  for (const char* spec :
       {"fp8:block=128x128", "int8:channel", "int8:block=128x128", "gguf:q8_0", "gguf:q6_k"}) {
    const test::TempDir dir;
    const std::string out = dir / (std::string(spec).starts_with("gguf") ? "out.gguf" : "out");
    ASSERT_EQ(test::assay({"convert", folder("tinylm-bf16"), out, "--to", spec}).exit_code, 0);
    const Weights after(out, 1);
    const WeightView stored = after.get(key);
    decode_rows(stored, 0, stored.rows, q.data());
    double error = 0, size = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      error += (static_cast<double>(q[i]) - w[i]) * (static_cast<double>(q[i]) - w[i]);
      size += static_cast<double>(w[i]) * w[i];
    }
    const double measured = std::sqrt(error / size);
    EXPECT_GT(rounding_noise(stored), 0.8 * measured) << spec;
    EXPECT_LT(rounding_noise(stored), 1.6 * measured) << spec;
    EXPECT_FALSE(copies_exactly(original, stored)) << spec;
  }
  EXPECT_TRUE(copies_exactly(original, original));
}

// ------------------------------------------------------------------------------------------ what proves
// nothing

TEST(CompareModel, OneTokenAndNoneAreMistrusted) {
  const Weights weights(folder("models/llama"), 1);
  ModelCompareRequest request = request_of(weights, weights);
  request.tokens = {5};
  EXPECT_EQ(compare_models(request).status, CaseStatus::mistrusted);
  request.tokens = {};
  EXPECT_EQ(compare_models(request).status, CaseStatus::mistrusted);
}

TEST(CompareModel, ZeroActivationsAreMistrusted) {
  const test::TempDir dir;
  fs::copy(folder("models/llama"), dir.path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const fs::path file = dir / "model.safetensors";
  const auto header = safetensors::read_header(File::open(file), safetensors::Reading::reference);
  std::string bytes = test::read_file(file);
  for (const auto& tensor : header.tensors) {
    if (tensor.name == "model.layers.0.mlp.down_proj.weight")
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(header.buffer_offset() + tensor.begin),
                  tensor.end - tensor.begin, '\0');
  }
  test::write_file(file, bytes);
  const Weights weights(dir.path(), 1);
  const ModelComparison result = compare_models(request_of(weights, weights));
  EXPECT_EQ(result.status, CaseStatus::mistrusted);
  ASSERT_FALSE(result.reasons.empty());
  EXPECT_NE(result.reasons[0].find("layers.0.mlp_out is all zeros"), std::string::npos);
}

// --------------------------------------------------------------------------------------------- the figures

// Expected by numpy.
TEST(CompareLogits, AreWhatNumpySays) {
  const std::vector<double> p = {1.0, 2.0, 0.5, -1.0, 0.0, 3.0,  0.0, 0.1, 0.2,
                                 0.3, 4.0, 0.5, 2.0,  2.0, -1.0, 0.0, 1.0, 1.5};
  const std::vector<double> q = {1.1, 1.9, 0.5, -1.2, 0.0, 2.8,  0.0, 0.1, 0.2,
                                 4.5, 4.0, 0.5, 2.0,  1.7, -1.0, 0.3, 1.0, 1.5};
  const std::vector<TokenId> tokens = {3, 5, 0};
  LogitsTally tally;
  for (std::size_t t = 0; t < tokens.size(); ++t)
    tally.add(std::span(p).subspan(6 * t, 6), std::span(q).subspan(6 * t, 6),
              t + 1 < tokens.size() ? std::optional(tokens[t + 1]) : std::nullopt);
  const LogitsReport r = tally.report();
  EXPECT_NEAR(r.kl_mean, 0.2741822332334313, 1e-14);
  EXPECT_NEAR(r.kl_max, 0.805228211076816, 1e-14);
  EXPECT_EQ(r.kl_max_at, 1u);
  EXPECT_NEAR(r.same_first, 2.0 / 3, 1e-15);
  EXPECT_NEAR(r.top5_overlap, 1, 1e-15);
  EXPECT_NEAR(r.loss_reference, 2.306225500920961, 1e-14);
  EXPECT_NEAR(r.loss_difference, 0.4828303372895497, 1e-14);
  EXPECT_NEAR(r.standard_error, 0.41545597535673306, 1e-14);
  EXPECT_NEAR(r.perplexity_difference(), 6.229184716902877, 1e-12);
}

// ---------------------------------------------------------------------------------------------- planted
// faults

TEST(ModelMutants, EveryOneThatChangesAnythingIsNamed) {
  for (const char* model : {"models/deepseek-v3-fp8", "models/gpt-oss", "models/gemma2"}) {
    const Weights weights(folder(model), 1);
    const std::vector<ModelMutantResult> results = run_model_mutants(request_of(weights, weights));
    std::size_t named = 0;
    for (const ModelMutantResult& r : results) {
      EXPECT_NE(r.fate, MutantFate::misnamed)
          << model << ": " << r.name << " at " << r.expected << ", named " << r.named;
      EXPECT_NE(r.fate, MutantFate::missed) << model << ": " << r.name;
      named += r.fate == MutantFate::named ? 1 : 0;
    }
    EXPECT_GE(named, 40u) << model;
  }
}

}  // namespace
}  // namespace assay
