// Ranks of made-up logits: what a softmax, norms, biases, rounding and caps leave of them; NumPy's singular values
// (data/make_singular_fixtures.py).
#include "refimpl/fingerprint/logit_rank.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <nlohmann/json.hpp>

#include "refimpl/fingerprint/distinct_logits.h"
#include "refimpl/fingerprint/hidden_size.h"
#include "refimpl/fingerprint/published_sizes.h"
#include "refimpl/fingerprint/singular_values.h"
#include "refimpl/fingerprint/soft_cap.h"
#include "refimpl/fingerprint/vocabulary_size.h"
#include "tests/refimpl/fingerprint/made_logits.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::MadeModel;
using Rounding = std::function<double(double)>;

// ln p of `contexts` prompts; `of_logits` rounds before the softmax, `of_told` behind it.
DenseMatrix told_by(const MadeModel& model, std::size_t contexts, const Rounding& of_logits = {},
                    const Rounding& of_told = {}) {
  DenseMatrix table(contexts, model.vocabulary);
  for (std::size_t t = 0; t < contexts; ++t) {
    std::vector<double> z = model.logits(t + 1);
    for (double& x : z) x = of_logits ? of_logits(x) : x;
    z = test::log_softmax(z);
    for (std::size_t v = 0; v < model.vocabulary; ++v) table.at(t, v) = of_told ? of_told(z[v]) : z[v];
  }
  return table;
}

std::optional<std::size_t> hidden_of(const DenseMatrix& table) {
  const RankFound rank = find_rank(spectrum_of(table, Means::of_rows, 1));
  const RankFound differences = find_rank(spectrum_of(table, Means::of_both, 1));
  if (!rank.rank || !differences.rank) return std::nullopt;
  return hidden_size_of(*rank.rank, *differences.rank).size;
}

double to_bf16(double x) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

TEST(SingularValues, AreNumpys) {
  const auto document =
      nlohmann::json::parse(test::read_file(test::source_dir() / "data/fixtures/singular_values.json"));
  ASSERT_EQ(document.size(), 4U);
  for (const auto& one : document) {
    const auto& rows = one["rows"];
    DenseMatrix a(rows.size(), rows[0].size());
    for (std::size_t i = 0; i < a.rows(); ++i)
      for (std::size_t j = 0; j < a.columns(); ++j) a.at(i, j) = rows[i][j];
    const std::vector<double> values = singular_values(a, 1);
    ASSERT_EQ(values.size(), one["singular_values"].size());
    for (std::size_t i = 0; i < values.size(); ++i)  // LAPACK's are exact to some ε of the largest
      EXPECT_NEAR(values[i], one["singular_values"][i].get<double>(), 2e-14 * values.front())
          << one["name"] << " " << i;
  }
}

TEST(SingularValues, AreTheSameInSeveralThreads) {
  const DenseMatrix table = told_by({.hidden = 30, .vocabulary = 300}, 280);
  EXPECT_EQ(singular_values(table, 1), singular_values(table, 2));
}

// A third of the vocabulary has one row of the head, as in a GGUF of Q8_0 whose unused tokens were near zero; some contexts come twice. What is said
// twice is rounded twice alike.
TEST(LogitRank, OfTokensThatAreTheSame) {
  const MadeModel model = {.hidden = 24, .vocabulary = 200};
  const auto to_float = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  const DenseMatrix told = told_by(model, 160, to_float, to_float);
  DenseMatrix table(told.rows() + 20, told.columns() + 100);
  for (std::size_t j = 0; j < table.columns(); ++j)
    for (std::size_t i = 0; i < table.rows(); ++i)
      table.at(i, j) = told.at(i < told.rows() ? i : 3, j < told.columns() ? j : 7);
  EXPECT_NE(hidden_of(table), 24U);
  const DenseMatrix distinct = distinct_logits(table);
  EXPECT_EQ(distinct.rows(), told.rows());
  EXPECT_EQ(distinct.columns(), told.columns());
  EXPECT_EQ(distinct.at(159, 199), told.at(159, 199));
  EXPECT_EQ(hidden_of(distinct), 24U);
}

struct LastLayer {
  const char* name;
  bool layer_norm, norm_bias, head_bias;
  std::size_t rank, of_differences;
};

class HiddenSizes : public testing::TestWithParam<LastLayer> {};

// The table of hidden_size.h.
TEST_P(HiddenSizes, AreExact) {
  const LastLayer& p = GetParam();
  const MadeModel model = {.hidden = 24,
                           .vocabulary = 80,
                           .layer_norm = p.layer_norm,
                           .norm_bias = p.norm_bias,
                           .head_bias = p.head_bias};
  const DenseMatrix table = told_by(model, 64);
  EXPECT_EQ(find_rank(spectrum_of(table, Means::of_rows, 1)).rank, p.rank);
  EXPECT_EQ(find_rank(spectrum_of(table, Means::of_both, 1)).rank, p.of_differences);
  EXPECT_EQ(hidden_of(table), 24U);
}

INSTANTIATE_TEST_SUITE_P(OfLastLayers, HiddenSizes,
                         testing::Values(LastLayer{"Rms", false, false, false, 24, 24},
                                         LastLayer{"RmsHeadBias", false, false, true, 25, 24},
                                         LastLayer{"LayerNorm", true, false, false, 23, 23},
                                         LastLayer{"LayerNormBias", true, true, false, 24, 23},
                                         LastLayer{"LayerNormHeadBias", true, false, true, 24, 23},
                                         LastLayer{"LayerNormBothBiases", true, true, true, 24, 23}),
                         [](const auto& info) { return info.param.name; });

TEST(HiddenSizes, ThroughRounding) {
  const MadeModel model = {.hidden = 24, .vocabulary = 200};
  const auto to_float = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  EXPECT_EQ(hidden_of(told_by(model, 128, {}, to_float)), 24U);
  EXPECT_EQ(hidden_of(told_by(model, 128, to_bf16, to_float)), 24U);
  const auto decimals = [](double x) { return std::round(x * 1000) / 1000; };
  EXPECT_EQ(hidden_of(told_by(model, 128, {}, decimals)), 24U);
  EXPECT_EQ(hidden_of(told_by(model, 128, {}, to_bf16)), 24U);  // larger, and seen in the values themselves
}

// The bound on what noise does to singular values (logit_rank.h): of many tables of noise, plain and as unequal as rounding, none is above it,
// and it is not far above. Weyl's inequality is what moves them by no more.
TEST(HiddenSizes, TheBoundOfNoiseHolds) {
  std::uint64_t drawn = 1u << 29;
  for (int i = 0; i < 20; ++i) {
    const MadeModel model = {.hidden = 8, .vocabulary = 60};
    const DenseMatrix right = told_by(model, 40);
    DenseMatrix noisy = right, noise = right;
    for (std::size_t j = 0; j < noise.columns(); ++j)
      for (std::size_t t = 0; t < noise.rows(); ++t) {
        noise.at(t, j) = 1e-4 * right.at(t, j) * MadeModel::normal(++drawn);
        noisy.at(t, j) += noise.at(t, j);
      }
    const double largest = spectrum_of(noise, Means::kept, 1).values.front();
    const Spectrum with = spectrum_of(noisy, Means::kept, 1), without = spectrum_of(right, Means::kept, 1);
    for (std::size_t k = 0; k < with.values.size(); ++k)
      EXPECT_LE(std::abs(with.values[k] - without.values[k]), largest * (1 + 1e-9));
    const RankFound found = find_rank(with);
    ASSERT_EQ(found.rank, 9U);              // and the softmax's own
    EXPECT_LT(largest, found.floor * 1.1);  // σ is estimated: as far as 40 vectors tell it
    EXPECT_GT(largest, found.floor / 5);
  }
}

TEST(HiddenSizes, AreNotGuessed) {
  const MadeModel model = {.hidden = 24, .vocabulary = 80};
  std::uint64_t drawn = 1u << 30;
  for (const double noise :
       {0.01, 0.05, 0.3, 3.0})  // of logits whose root mean square is about 1: 2⁻⁸ may be
    EXPECT_EQ(
        hidden_of(told_by(model, 64, {}, [&](double x) { return x + noise * MadeModel::normal(++drawn); })),
        std::nullopt)
        << noise;
  EXPECT_EQ(hidden_of(told_by(model, 64, {}, [](double x) { return std::round(2 * x) / 2; })), std::nullopt);
  EXPECT_EQ(hidden_of(told_by({.hidden = 80, .vocabulary = 80}, 96)), std::nullopt);
  EXPECT_EQ(hidden_of(told_by({.hidden = 70, .vocabulary = 80}, 64)), std::nullopt);
  EXPECT_EQ(hidden_of(DenseMatrix(20, 20)), std::nullopt);
  // Only few directions are far above the others, which are no noise.
  const auto lopsided = [&](double x) { return x > 1.5 ? 50 * x : x; };
  EXPECT_EQ(hidden_of(told_by(model, 64, lopsided)), std::nullopt);
}

TEST(SoftCap, IsFound) {
  for (const double cap : {3.0, 6.0}) {
    const MadeModel model = {.hidden = 24, .vocabulary = 80, .cap = cap};
    const DenseMatrix table = told_by(model, 64);
    EXPECT_EQ(hidden_of(table), std::nullopt);
    const auto uncapped = remove_soft_cap(table, 24, 1);
    ASSERT_TRUE(uncapped);
    EXPECT_NEAR(uncapped->cap, cap, 1e-6 * cap);
    const RankFound rank = find_rank(spectrum_of(uncapped->logits, Means::kept, 1));
    EXPECT_EQ(rank.rank, 24U) << cap;
  }
}

// One far above the logits bends them by less than rounding does.
TEST(SoftCap, HidesNothingWhereItIsHigh) {
  EXPECT_EQ(hidden_of(told_by({.hidden = 24, .vocabulary = 80, .cap = 30}, 64)), 24U);
}

TEST(SoftCap, IsNotMadeUp) {
  std::uint64_t drawn = 1u << 30;
  const MadeModel model = {.hidden = 24, .vocabulary = 80};
  const DenseMatrix noisy =
      told_by(model, 64, {}, [&](double x) { return x + 0.3 * MadeModel::normal(++drawn); });
  for (const std::size_t rank : {8U, 24U, 40U}) {
    const auto uncapped = remove_soft_cap(noisy, rank, 1);
    EXPECT_FALSE(uncapped && find_rank(spectrum_of(uncapped->logits, Means::kept, 1)).rank) << rank;
  }
  EXPECT_FALSE(remove_soft_cap(noisy, 62, 1));  // more unknowns than what is left could tell
}

TEST(VocabularySize, IsWhereIdsEnd) {
  for (const std::size_t size : {16U, 17U, 96U, 300U, 32000U, 151936U})
    EXPECT_EQ(find_vocabulary([&](std::size_t id) { return id < size; }), size);
  EXPECT_EQ(find_vocabulary([](std::size_t id) { return id < 96 && id != 31 && id != 63 && id != 47; }), 96U);
  EXPECT_EQ(find_vocabulary([](std::size_t) { return true; }), std::nullopt);
}

TEST(PublishedSizes, AreThoseOfTheConfigs) {
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "data/fixtures/published_configs")) {
    const auto document = nlohmann::json::parse(test::read_file(entry.path()));
    const auto config = document.contains("text_config") ? document["text_config"] : document;
    ++seen;
    bool there = false;
    for (const PublishedSize& size : published_sizes()) {
      if (size.model != entry.path().stem().string()) continue;
      there = true;
      EXPECT_EQ(size.hidden_size, config.contains("hidden_size") ? config["hidden_size"] : config["n_embd"]);
      EXPECT_EQ(size.vocabulary, config.value("vocab_size", config.value("padded_vocab_size", 0U)));
      EXPECT_EQ(size.soft_cap, config.value("final_logit_softcapping", 0.0));
      EXPECT_EQ(size.hidden_size % 2, 0U);  // what hidden_size.h counts on
    }
    EXPECT_TRUE(there) << entry.path();
  }
  EXPECT_EQ(seen, published_sizes().size());
}

}  // namespace
}  // namespace assay
