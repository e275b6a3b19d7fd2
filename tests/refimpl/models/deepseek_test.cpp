// DeepSeek beyond what all families share: the variants, its own inference/model.py, queries and latents,
// absorbed against naive attention, multi-token prediction, 8-bit products.
#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

using test::difference_beyond_float32;
using test::folder;
using test::kOfDoubles;
using test::largest;
using test::largest_difference;
using test::Runner;
using test::tokens_of;
using Tensors = std::map<std::string, test::Numbers>;

Tensors transformers(const std::string& model) {
  return test::read_tensors(folder(model) / "golden/transformers.safetensors");
}
Tensors deepseek(const std::string& model) {
  return test::read_tensors(folder(model) / "golden/deepseek.safetensors");
}

class DeepseekCode : public testing::TestWithParam<const char*> {
 protected:
  Tensors golden = deepseek(GetParam());
  std::vector<TokenId> prompt = tokens_of(golden.at("tokens"));
  double error(Precision precision, MlaForm form, const std::string& expected) {
    Runner run(GetParam(), precision, {.variant = "deepseek", .mla = form});
    const std::vector<double>& truth = golden.at(expected).values;
    return largest_difference(run(prompt), truth) / largest(truth);
  }
};

TEST_P(DeepseekCode, BothFormsInDouble) {
  EXPECT_LE(error(Precision::f64, MlaForm::naive, "logits.naive.f64"), kOfDoubles);
  EXPECT_LE(error(Precision::f64, MlaForm::absorbed, "logits.absorb.f64"), kOfDoubles);
}

TEST_P(DeepseekCode, Single) {
  EXPECT_LE(error(Precision::f32, MlaForm::absorbed, "logits.f32"), 1e-4);
}

TEST_P(DeepseekCode, HalfByTheYardstick) {
  const std::vector<double>& truth = golden.at("logits.absorb.f64").values;
  const double yardstick = largest_difference(golden.at("logits.bf16").values, truth) / largest(truth);
  EXPECT_LE(error(Precision::bf16, MlaForm::absorbed, "logits.absorb.f64"), 2 * yardstick);
}

// Whether this model tells the variants apart: where it does not, the tests above say little about them.
TEST_P(DeepseekCode, DiffersWhereTheReferencesDo) {
  const std::vector<double>& theirs = golden.at("logits.naive.f64").values;
  const std::vector<double> ours = Runner(GetParam(), Precision::f64)(prompt);
  const double gap = largest_difference(ours, theirs) / largest(theirs);
  if (std::string(GetParam()) == "deepseek-v2")
    EXPECT_GT(gap, 0.1);  // two mscales
  else
    EXPECT_LE(gap, kOfDoubles);
}

INSTANTIATE_TEST_SUITE_P(Models, DeepseekCode,
                         testing::Values("deepseek-v2", "deepseek-v2-lite", "deepseek-v3", "deepseek-v3-fp8",
                                         "kimi-k2"));

TEST(Deepseek, GroupsMaskedWithZeroAsInTransformers4) {
  const Tensors golden = transformers("deepseek-v3");
  const std::vector<double>& truth = golden.at("logits_transformers4.f64").values;
  const std::vector<TokenId> prompt = tokens_of(golden.at("tokens"));
  const auto gap = [&](const char* variant) {
    return largest_difference(Runner("deepseek-v3", Precision::f64, {.variant = variant})(prompt), truth) /
           largest(truth);
  };
  EXPECT_LE(gap("transformers-4"), kOfDoubles);
  EXPECT_GT(gap("transformers"), 1e-3);
}

// FP8 products as inference/kernel.py defines them. What is compared is bfloat16 everywhere else, and a code
// more or less of an activation moves everything after it: the yardstick is the distance of their result
// from the truth.
TEST(Deepseek, Fp8BlockProductsByTheYardstick) {
  const Tensors golden = deepseek("deepseek-v3-fp8");
  const std::vector<TokenId> prompt = tokens_of(golden.at("tokens"));
  const std::vector<double>& theirs = golden.at("logits.fp8").values;
  const std::vector<double>& truth = golden.at("logits.absorb.f64").values;
  const std::vector<double> ours =
      Runner("deepseek-v3-fp8", Precision::fp8_block, {.variant = "deepseek"})(prompt);
  const double yardstick = largest_difference(theirs, truth);
  EXPECT_LE(largest_difference(ours, truth), 2 * yardstick);
  EXPECT_GT(largest_difference(ours, truth), 0.1 * yardstick);  // it did compute in 8 bits
}

TEST(Deepseek, AbsorbedEqualsNaive) {
  for (const char* model : {"deepseek-v2-lite", "deepseek-v3", "minicpm3"}) {
    const std::vector<TokenId> prompt = tokens_of(transformers(model).at("tokens"));
    const std::vector<double> naive = Runner(model, Precision::f64, {.mla = MlaForm::naive})(prompt);
    const std::vector<double> absorbed = Runner(model, Precision::f64, {.mla = MlaForm::absorbed})(prompt);
    EXPECT_LE(largest_difference(naive, absorbed), 1e-12 * largest(naive)) << model;
    EXPECT_NE(naive, absorbed) << model << ": one form was computed twice";
  }
}

TEST(Deepseek, DenseMixtureEqualsSparse) {
  for (const char* model : {"deepseek-v3", "mixtral", "gpt-oss"}) {
    const std::vector<TokenId> prompt = tokens_of(transformers(model).at("tokens"));
    EXPECT_EQ(Runner(model, Precision::f64, {.moe = MoeForm::dense})(prompt),
              Runner(model, Precision::f64, {.moe = MoeForm::sparse})(prompt))
        << model;
  }
}

// transformers lays the rotary part of a head out in halves, where DeepSeek's pairs stand side by side; but
// for DeepSeek-V2, where it keeps the pairs.
std::vector<double> halves(std::vector<double> heads, std::size_t head_dim, std::size_t rotated) {
  for (std::size_t head = 0; head < heads.size(); head += head_dim) {
    const std::size_t first = head + head_dim - rotated;
    const std::vector<double> pairs(heads.begin() + static_cast<std::ptrdiff_t>(first),
                                    heads.begin() + static_cast<std::ptrdiff_t>(first + rotated));
    for (std::size_t i = 0; i < rotated; ++i) heads[first + i % 2 * (rotated / 2) + i / 2] = pairs[i];
  }
  return heads;
}

TEST(Deepseek, QueriesAndTheSharedKeyPart) {
  for (const std::string model : {"deepseek-v2", "deepseek-v3", "minicpm3"}) {
    const Tensors golden = transformers(model);
    Runner run(model, Precision::f64);
    run(tokens_of(golden.at("tokens")));
    const AttentionGeometry& g = run.weights().tree().attention.at(0);
    const std::size_t rotated = g.rope_head_dim, head_dim = g.qk_head_dim;
    const bool permuted = model == "deepseek-v3";
    for (std::size_t layer = 0; layer < run.weights().tree().layers; ++layer) {
      const std::string at = "layers." + std::to_string(layer) + ".";
      const std::vector<double>& q = run.taps().at(at + "q");
      const std::vector<double>& q_truth = golden.at("tap." + at + "q").values;
      EXPECT_LE(difference_beyond_float32(permuted ? halves(q, head_dim, rotated) : q, q_truth),
                kOfDoubles * largest(q_truth))
          << model << ' ' << at;

      std::vector<double> k_truth;  // of head 0, as of every head
      const std::vector<double>& keys = golden.at("tap." + at + "k").values;
      for (std::size_t token = 0; token < keys.size(); token += g.heads * head_dim)
        k_truth.insert(k_truth.end(), keys.begin() + static_cast<std::ptrdiff_t>(token + head_dim - rotated),
                       keys.begin() + static_cast<std::ptrdiff_t>(token + head_dim));
      const std::vector<double>& k = run.taps().at(at + "k_rope");
      EXPECT_LE(difference_beyond_float32(permuted ? halves(k, rotated, rotated) : k, k_truth),
                kOfDoubles * largest(k_truth))
          << model << ' ' << at;
    }
  }
}

TEST(Deepseek, MultiTokenPrediction) {
  const Tensors golden = transformers("deepseek-v3");
  const std::vector<double>& truth = golden.at("mtp_logits.f64").values;
  Runner run("deepseek-v3", Precision::f64);
  EXPECT_LE(largest_difference(run.draft(tokens_of(golden.at("tokens"))), truth),
            kOfDoubles * largest(truth));
}

}  // namespace
}  // namespace assay
