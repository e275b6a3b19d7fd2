// What a tap behind an exponential is allowed, and that blocks of families with rules of their own have planted faults that
// are named.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/model_compare/model_compare.h"
#include "kernels/model_compare/model_mutants.h"
#include "kernels/registry/registry.h"
#include "kernels/selection/select.h"
#include "refimpl/ops/reference.h"
#include "tests/refimpl/models/made_weights.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

// Four numbers of 1, each off by so many roundings of float32.
TapErrors off_by(double roundings) {
  const std::vector<double> truth(4, 1.0), out(4, 1 + roundings * 0x1p-24);
  TapErrors errors;
  errors.prefill = compare_rows(out, truth, 4, 0, {Precision::f32});
  return errors;
}

TEST(LocalRatio, AllowsAnExponentialEightRoundingsMore) {
  const std::vector<TapErrors> plain = {off_by(0)};
  const auto ratio = [&](double roundings, bool bends) {
    return local_ratio(off_by(roundings), plain, {Precision::f32}, bends).ratio;
  };
  EXPECT_DOUBLE_EQ(ratio(4, false), 1);
  EXPECT_DOUBLE_EQ(ratio(12, true), 1);
  EXPECT_DOUBLE_EQ(ratio(10, false), 2.5);
  EXPECT_GT(ratio(13, true), 1);
}

// A row a hundred times as large as nine others, off by so many of its roundings, and one of those by as much.
TapErrors off_in_row(std::size_t row, double roundings) {
  std::vector<double> truth(10, 1.0);
  truth[3] = 100;
  std::vector<double> out = truth;
  out[row] += 100 * roundings * 0x1p-24;
  TapErrors errors;
  errors.prefill = compare_rows(out, truth, 1, 0, {Precision::f32});
  return errors;
}

TEST(LocalRatio, HoldsARowThatOutweighsTheOthersToItsOwnSize) {
  const std::vector<TapErrors> plain = {off_by(0)};
  const auto ratio = [&](std::size_t row, double roundings) {
    return local_ratio(off_in_row(row, roundings), plain, {Precision::f32}, false).ratio;
  };
  EXPECT_LE(ratio(3, 3.9), 1);
  EXPECT_GT(ratio(3, 5), 1);
  EXPECT_GT(ratio(4, 4), 3);
}

TEST(Segments, TellWhichTapsAreBehindAnExponential) {
  const Weights weights(test::source_dir() / "data/models/llama", 1);
  const std::unique_ptr<LanguageModel> model = make_model(weights, {});
  ReferenceOps ops({Precision::f32}, 1);
  const std::vector<TokenId> tokens = {1, 2, 3};
  const Segments segments = segments_of(*model, ops, tokens, false);
  for (const char* tap : {"layers.0.attn_context", "layers.0.mlp_out"})
    EXPECT_TRUE(segments.at(tap).bends) << tap;
  for (const char* tap : {"embed", "layers.0.attn_norm", "layers.0.q", "layers.0.k", "layers.0.v",
                          "layers.0.attn_out", "layers.0.out", "final_norm", "logits"})
    EXPECT_FALSE(segments.at(tap).bends) << tap;
}

struct MadeModel {
  test::TempDir place;
  std::vector<TokenId> tokens;
  std::unique_ptr<Weights> weights;

  MadeModel(const std::string& config, std::vector<TokenId> text) : tokens(std::move(text)) {
    test::put_made_model(place.path(), config);
    weights = std::make_unique<Weights>(place.path(), 1);
  }
  ModelCompareRequest request() const {
    const auto kernels = [](const std::string& selection) {
      return [selection](const Arithmetic& arithmetic, int jobs) {
        return select_kernels(builtin_kernels(), selection, arithmetic, jobs);
      };
    };
    return {.reference = {weights.get(), {Precision::f64}, kernels("reference")},
            .test = {weights.get(), {Precision::f32}, kernels("cpu")},
            .options = {},
            .tokens = tokens,
            .greedy = 2,
            .jobs = 1};
  }
};

// Columns of few numbers, of which one that a kernel's exponential is off by 2 ulp in decides: 1.27 × the budget that was.
TEST(CompareModel, ACpuExponentialOfASmallModelIsNoFault) {
  const MadeModel zamba(
      R"({"architectures": ["ZambaForCausalLM"], "model_type": "zamba", "vocab_size": 41, "hidden_size": 8,
          "num_hidden_layers": 4, "num_attention_heads": 2, "tie_word_embeddings": true, "pad_token_id": 0,
          "num_key_value_heads": 1, "intermediate_size": 38, "mamba_expand": 2, "n_mamba_heads": 2, "mamba_d_state": 2,
          "mamba_d_conv": 3, "mamba_dt_rank": "auto", "mamba_conv_bias": true, "mamba_proj_bias": false,
          "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]})",
      {12, 33, 5, 12, 36, 7, 9, 30, 35, 2, 20});
  const ModelComparison result = compare_models(zamba.request());
  EXPECT_EQ(result.status, CaseStatus::passed) << testing::PrintToString(result.reasons);
}

// How many faults are named in the first variant of a family, and in how much of the glue between its operations.
struct Planted {
  const char* family;
  std::size_t named, glue;
};

class NewBlocks : public testing::TestWithParam<Planted> {};

TEST_P(NewBlocks, PlantedFaultsAreNamed) {
  const auto [family, least, least_of_glue] = GetParam();
  const auto entry = nlohmann::json::parse(test::read_file(test::source_dir() / "data/fixtures/kin" /
                                                           (std::string(family) + ".json")))
                         .at(0);
  const MadeModel made(entry["config"].dump(), entry["tokens"].get<std::vector<TokenId>>());
  std::size_t named = 0, glue = 0;
  for (const ModelMutantResult& r : run_model_mutants(made.request())) {
    EXPECT_NE(r.fate, MutantFate::misnamed)
        << r.op << ", " << r.name << " at " << r.expected << ", named " << r.named;
    EXPECT_NE(r.fate, MutantFate::missed)
        << r.op << ", " << r.name << " at " << r.expected << ": " << r.ratio;
    if (r.fate != MutantFate::named) continue;
    ++named;
    glue += r.family == "glue" ? 1 : 0;
  }
  EXPECT_GE(named, least);
  EXPECT_GE(glue, least_of_glue);
}

INSTANTIATE_TEST_SUITE_P(
    Families, NewBlocks,
    testing::Values(Planted{"hy_v4", 68, 10}, Planted{"dots3_note_text", 55, 10}, Planted{"glm5_next", 82, 6},
                    Planted{"mistral_large4", 87, 14}, Planted{"qwen4_exp", 103, 37},
                    Planted{"hrm_text", 44, 8}, Planted{"muse_spark", 51, 8}, Planted{"muse_glimmer", 51, 10},
                    Planted{"inkling_text", 49, 18}, Planted{"molmo2", 37, 4}, Planted{"rwkv", 41, 17},
                    Planted{"jetmoe", 52, 10}, Planted{"zamba", 53, 10}, Planted{"doge", 49, 8},
                    Planted{"zaya", 68, 14}, Planted{"xlstm", 35, 10}, Planted{"falcon_mamba", 35, 2}),
    [](const auto& info) { return std::string(info.param.family); });

}  // namespace
}  // namespace assay
