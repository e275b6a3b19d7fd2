// Every operation of the reference against torch and the classes of transformers, in float64 and in bfloat16
// (data/make_op_truths.py). Doubles agree to a few roundings. In bfloat16 PyTorch rounds where the reference
// says that it does: every number is the same one, but where a case says that some are a place off.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/numeric/codec.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/ops/reference.h"
#include "refimpl/sampling/law.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"

namespace assay {
namespace {

using test::Numbers;

const std::map<std::string, Numbers>& fixture() {
  static const auto tensors = test::read_tensors(test::source_dir() / "data/fixtures/op_truths.safetensors");
  return tensors;
}

// A stored weight of float32 numbers.
struct Weight {
  std::string name = "w";
  std::vector<float> values;
  WeightView view;
  explicit Weight(const Numbers& numbers) : values(numbers.values.begin(), numbers.values.end()) {
    view.name = &name;
    view.rows = numbers.shape.size() > 1 ? numbers.shape[0] : 1;
    view.columns = numbers.shape.back();
    view.codes = std::as_bytes(std::span(values)).data();
    view.row_bytes = view.columns * sizeof(float);
  }
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;
};

// Matrices of experts one behind the other: [experts, rows, columns], or biases [experts, columns].
struct Stack {
  std::vector<std::unique_ptr<Weight>> kept;
  std::vector<WeightView> views;
  explicit Stack(const Numbers& numbers) {
    const std::size_t count = numbers.shape[0], size = numbers.values.size() / count;
    for (std::size_t i = 0; i < count; ++i) {
      const auto begin = numbers.values.begin() + static_cast<std::ptrdiff_t>(i * size);
      const Numbers one = {{numbers.shape.begin() + 1, numbers.shape.end()},
                           {begin, begin + static_cast<std::ptrdiff_t>(size)}};
      kept.push_back(std::make_unique<Weight>(one));
      views.push_back(kept.back()->view);
    }
  }
};

// A case in one precision: its inputs, and what torch makes of them.
class Case {
 public:
  Case(std::string name, Precision precision) : name_(std::move(name)), ops({precision}, 1) {}

  const Numbers& numbers(const std::string& key) const { return fixture().at(name_ + "." + key); }
  bool has(const std::string& key) const { return fixture().contains(name_ + "." + key); }
  Matrix matrix(const std::string& key) {
    const Numbers& n = numbers(key);
    return ops.upload(n.values, n.shape.at(0), n.shape.at(1));
  }
  const Numbers& expected(const std::string& key = "") const {
    const std::string suffix = ops.arithmetic().precision == Precision::f64 ? "f64" : "bf16";
    return numbers(key.empty() ? suffix : key + "." + suffix);
  }
  // Of what stays float32 under bfloat16.
  void expect_float32(const std::vector<double>& ours, const std::vector<double>& torch) const {
    ASSERT_EQ(ours.size(), torch.size()) << name_;
    for (std::size_t i = 0; i < ours.size(); ++i)
      ASSERT_NEAR(ours[i], torch[i], 1e-6 * std::abs(torch[i])) << name_ << " " << i;
  }
  void expect(const Matrix& y, const std::string& key = "") { agrees(ops.download(y), expected(key).values); }
  void agrees(const std::vector<double>& ours, const std::vector<double>& torch) const {
    ASSERT_EQ(ours.size(), torch.size()) << name_;
    double largest = 0;
    for (const double x : torch) largest = std::max(largest, std::abs(x));
    ops.arithmetic().precision == Precision::f64 ? same(ours, torch, largest) : next(ours, torch, largest);
  }

 private:
  void same(const std::vector<double>& ours, const std::vector<double>& torch, double largest) const {
    for (std::size_t i = 0; i < ours.size(); ++i)
      ASSERT_NEAR(ours[i], torch[i], 1e-13 * largest) << name_ << " " << i;
  }
  // 2^-7 of a number is a place of bfloat16; where a sum cancels, a place of what cancelled.
  void next(const std::vector<double>& ours, const std::vector<double>& torch, double largest) const {
    std::size_t different = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_NEAR(ours[i], torch[i], std::abs(torch[i]) * 0x1p-7 + largest * 0x1p-9) << name_ << " " << i;
      different += ours[i] == torch[i] ? 0 : 1;
    }
    EXPECT_LE(static_cast<double>(different), rounded_elsewhere * static_cast<double>(ours.size())) << name_;
  }
  std::string name_;

 public:
  ReferenceOps ops;
  double rounded_elsewhere = 0;  // the share of numbers that may be a place of bfloat16 off
};

class OpTruths : public testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(Precisions, OpTruths, testing::Values(Precision::f64, Precision::bf16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(OpTruths, Linear) {
  Case c("linear", GetParam());
  const Weight w(c.numbers("w")), b(c.numbers("b"));
  c.expect(c.ops.linear(c.matrix("x"), w.view, b.view, ResultRounding::as_arithmetic));
}

TEST_P(OpTruths, Norms) {
  for (const auto& [name, form] : {std::pair{"norm.weight_last", NormForm::weight_last},
                                   {"norm.weight_inside", NormForm::weight_inside},
                                   {"norm.one_plus_weight", NormForm::one_plus_weight},
                                   {"norm.heads", NormForm::weight_last}}) {
    Case c(name, GetParam());
    const Weight w(c.numbers("w"));
    c.expect(c.ops.rms_norm(c.matrix("x"), w.view, 1e-2, form));
  }
  for (const char* name : {"norm.layer", "norm.layer_without_bias"}) {
    Case c(name, GetParam());
    const Weight w(c.numbers("w"));
    if (c.has("b")) {
      const Weight b(c.numbers("b"));
      c.expect(c.ops.layer_norm(c.matrix("x"), w.view, b.view, 1e-2));
    } else {
      c.expect(c.ops.layer_norm(c.matrix("x"), w.view, {}, 1e-2));
    }
  }
}

TEST_P(OpTruths, RopeOfHalves) {
  Case c("rope.half_split", GetParam());
  Matrix x = c.matrix("x");
  c.ops.rope(x, {.heads = 3, .head_dim = 8, .cos = c.matrix("cos"), .sin = c.matrix("sin")});
  c.expect(x);
}

// transformers leaves the rotated pairs as two halves; we where they stood.
TEST_P(OpTruths, RopeOfPairs) {
  Case c("rope.interleaved_to_halves", GetParam());
  Matrix x = c.matrix("x");
  c.ops.rope(x, {.heads = 3,
                 .head_dim = 8,
                 .cos = c.matrix("cos"),
                 .sin = c.matrix("sin"),
                 .layout = RopeLayout::interleaved});
  const std::vector<double> ours = c.ops.download(x);
  std::vector<double> halves(ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) halves[i / 8 * 8 + i % 2 * 4 + i % 8 / 2] = ours[i];
  c.agrees(halves, c.expected().values);
}

// Only the last part of every head rotates: the same numbers, with something before them that stays.
TEST_P(OpTruths, RopeOfTheEndOfAHead) {
  Case c("rope.half_split", GetParam());
  const std::vector<double>&x = c.numbers("x").values, &y = c.expected().values;
  std::vector<double> wide, rotated;
  for (std::size_t i = 0; i < x.size(); i += 8) {
    for (std::vector<double>* of : {&wide, &rotated}) of->insert(of->end(), {0.25, -3});
    wide.insert(wide.end(), &x[i], &x[i] + 8);
    rotated.insert(rotated.end(), &y[i], &y[i] + 8);
  }
  Matrix z = c.ops.upload(wide, 5, 30);
  c.ops.rope(z, {.heads = 3, .head_dim = 10, .offset = 2, .cos = c.matrix("cos"), .sin = c.matrix("sin")});
  c.agrees(c.ops.download(z), rotated);
}

struct Heads {
  const char* name;
  std::size_t heads, kv_heads, queries = 4, keys = 11, window = 0;
  double cap = 0;
};
const Heads kAttention[] = {{"every_head_its_own", 3, 3},
                            {"groups_of_5", 10, 2},
                            {"groups_of_7", 7, 1},
                            {"window", 4, 2, 4, 11, 3},
                            {"window_of_one", 2, 2, 4, 11, 1},
                            {"capped", 4, 2, 4, 11, 0, 1.5},
                            {"capped_in_a_window", 4, 2, 4, 11, 5, 0.8},
                            {"sinks", 6, 2},
                            {"one_query", 6, 3, 1},
                            {"all_at_once", 4, 4, 9, 9}};

TEST_P(OpTruths, Attention) {
  for (const Heads& h : kAttention) {
    Case c(std::string("attention.") + h.name, GetParam());
    std::optional<Weight> sinks;
    if (c.has("sinks")) sinks.emplace(c.numbers("sinks"));
    c.rounded_elsewhere =
        sinks ? 0.25 : 0;  // gpt-oss rounds what is left of a score after the largest is taken off
    AttentionCall call = {
        .q = c.matrix("q"),
        .sequences = {{0, h.queries, h.keys, {.base = c.matrix("k")}, {.base = c.matrix("v")}}},
        .heads = h.heads,
        .kv_heads = h.kv_heads,
        .qk_dim = 12,
        .v_dim = 8,
        .scale = 0.3,
        .window = h.window,
        .soft_cap = h.cap,
        .sinks = sinks ? sinks->view : WeightView()};
    c.expect(c.ops.attention(call));
  }
}

// The same keys and values on pages, in an order of their own.
TEST_P(OpTruths, AttentionOverPages) {
  Case c("attention.groups_of_5", GetParam());
  const std::vector<std::int32_t> pages = {2, 0, 3};
  const auto paged = [&](const std::string& key) {
    const Numbers& n = c.numbers(key);
    const std::size_t width = n.shape[1];
    std::vector<double> on_pages(16 * width, 1e9);
    for (std::size_t i = 0; i < n.values.size(); ++i) {
      const std::size_t row = i / width;
      on_pages[(static_cast<std::size_t>(pages[row / 4]) * 4 + row % 4) * width + i % width] = n.values[i];
    }
    return PagedKvView{c.ops.upload(on_pages, 16, width), pages.data(), 4};
  };
  c.expect(c.ops.attention({.q = c.matrix("q"),
                            .sequences = {{0, 4, 11, paged("k"), paged("v")}},
                            .heads = 10,
                            .kv_heads = 2,
                            .qk_dim = 12,
                            .v_dim = 8,
                            .scale = 0.3}));
}

TEST_P(OpTruths, Activations) {
  for (const auto& [name, kind] : {std::pair{"silu", Activation::silu},
                                   {"gelu", Activation::gelu},
                                   {"gelu_tanh", Activation::gelu_tanh},
                                   {"relu", Activation::relu}}) {
    Case alone(std::string("activation.") + name, GetParam());
    // PyTorch's tails come of 1 + erf(x) in float32, which cancels.
    const bool has_tails = kind == Activation::gelu || kind == Activation::gelu_tanh;
    alone.rounded_elsewhere = has_tails ? 0.1 : 0;
    alone.expect(alone.ops.activation(alone.matrix("x"), kind));
    Case gated(std::string("gated.") + name, GetParam());
    gated.rounded_elsewhere = alone.rounded_elsewhere;
    gated.expect(gated.ops.gated_activation(gated.matrix("x"), gated.matrix("u"), {.activation = kind}));
  }
  Case c("gated.gpt_oss", GetParam());
  c.expect(c.ops.gated_activation(c.matrix("x"), c.matrix("u"),
                                  {.activation = Activation::gpt_oss, .limit = 1.75}));
}

// By the names of transformers, which write some of them out operation by operation and so round in between.
TEST_P(OpTruths, ActivationsByName) {
  const auto config = ModelConfig::from_json(ParsedJson::parse(R"({"model_type": "llama"})"), "config.json");
  for (const char* name : {"relu2", "sigmoid", "gelu_fast", "gelu_10", "quick_gelu", "tanh", "linear",
                           "relu6", "leaky_relu", "hardswish", "mish", "laplace", "sqrtsoftplus"}) {
    Hyperparameters h;
    h.activation = name;
    Case c(std::string("activation.") + name, GetParam());
    c.rounded_elsewhere = 0.6;
    c.expect(c.ops.activation(c.matrix("x"), activation_of(h, config)));
  }
}

TEST_P(OpTruths, ElementByElement) {
  Case sum("add", GetParam());
  sum.expect(sum.ops.add(sum.matrix("x"), sum.matrix("y")));
  Case product("multiply", GetParam());
  product.expect(product.ops.multiply(product.matrix("x"), product.ops.arithmetic().round(std::sqrt(40))));
  Case cap("soft_cap", GetParam());
  cap.expect(cap.ops.soft_cap(cap.matrix("x"), 6));
  Case rows("embed", GetParam());
  const Weight table(rows.numbers("x"));
  const std::vector<double>& ids = rows.numbers("ids").values;
  rows.expect(rows.ops.embed(std::vector<TokenId>(ids.begin(), ids.end()), table.view));
}

// Rows of nothing but -inf are rows of zeros, as in torch's scaled_dot_product_attention.
TEST_P(OpTruths, Softmax) {
  Case c("softmax", GetParam());
  c.expect(c.ops.softmax(c.matrix("x")));
}

struct Gate {
  const char* name;
  GateRule rule;
};
const GateRule kV3 = {.score = GateRule::Score::sigmoid,
                      .top_k = 6,
                      .epsilon = 1e-20,
                      .scale = 2.5,
                      .group_score = GateRule::GroupScore::sum_of_two};
GateRule with(GateRule rule, std::size_t groups, std::size_t chosen, bool renormalize) {
  rule.groups = groups;
  rule.chosen_groups = chosen;
  rule.renormalize = renormalize;
  return rule;
}
constexpr ResultRounding kRounded = ResultRounding::as_arithmetic;
const Gate kGates[] = {
    {"mixtral", {.top_k = 2, .renormalize = true}},
    {"qwen3_moe", {.top_k = 8, .renormalize = true, .rounding = kRounded}},
    {"qwen3_moe_unnormalized", {.top_k = 8, .rounding = kRounded}},
    {"gpt_oss", {.top_k_first = true, .top_k = 4, .rounding = kRounded}},
    {"deepseek_v3", with(kV3, 4, 2, true)},
    {"deepseek_v3_unnormalized", with(kV3, 4, 3, false)},
    {"deepseek_v3_one_group", with(kV3, 1, 1, false)},
    {"deepseek_v2", {.top_k = 3, .scale = 16, .groups = 6, .chosen_groups = 2}},
    {"deepseek_v2_greedy", {.top_k = 3, .scale = 16}},
};

TEST_P(OpTruths, Gates) {
  for (const Gate& gate : kGates) {
    Case c(std::string("gate.") + gate.name, GetParam());
    std::optional<Weight> correction;
    if (c.has("correction")) correction.emplace(c.numbers("correction"));
    const Routing routing =
        c.ops.moe_gate(c.matrix("x"), correction ? correction->view : WeightView(), gate.rule);
    // torch's in the order of their numbers; ours are, best first
    const std::vector<double> weights = c.ops.download(routing.weights);
    std::vector<double> experts, in_order;
    for (std::size_t first = 0; first < weights.size(); first += gate.rule.top_k) {
      std::map<std::int32_t, double> token;
      for (std::size_t i = first; i < first + gate.rule.top_k; ++i) token[routing.experts[i]] = weights[i];
      for (const auto& [expert, weight] : token) {
        experts.push_back(expert);
        in_order.push_back(weight);
      }
    }
    EXPECT_EQ(experts, c.expected("experts").values) << gate.name;
    const std::vector<double>& torch = c.expected("weights").values;
    const bool stays = GetParam() == Precision::bf16 && gate.rule.rounding == ResultRounding::float32;
    stays ? c.expect_float32(in_order, torch) : c.agrees(in_order, torch);
  }
}

Routing routing_of(Case& c) {
  const std::vector<double>& ids = c.numbers("ids").values;
  return {c.numbers("ids").shape.at(1), std::vector<std::int32_t>(ids.begin(), ids.end()),
          c.matrix("weights")};
}

// Sums are rounded after every expert, in the order of the experts' numbers: another order shows in bfloat16.
TEST_P(OpTruths, Mixtures) {
  for (const auto& [name, form] : {std::pair{"mixture.sparse", MoeForm::sparse},
                                   {"mixture.sparse", MoeForm::dense},
                                   {"mixture.soft", MoeForm::soft},
                                   {"mixture.soft", MoeForm::sparse}}) {
    Case c(name, GetParam());
    const Stack gate_up(c.numbers("gate_up")), down(c.numbers("down"));
    ExpertWeights experts;
    experts.gate_up = gate_up.views;
    experts.down = down.views;
    c.expect(c.ops.fused_moe(c.matrix("x"), routing_of(c), experts, form));
  }
}

// In bfloat16 gpt-oss adds its biases to rounded products, which here are not rounded before.
TEST_P(OpTruths, MixtureWithBiases) {
  if (GetParam() == Precision::bf16) GTEST_SKIP() << "rounded elsewhere";
  Case c("mixture.gpt_oss", GetParam());
  const Stack gate_up(c.numbers("gate_up")), gate_up_bias(c.numbers("gate_up_bias"));
  const Stack down(c.numbers("down")), down_bias(c.numbers("down_bias"));
  ExpertWeights experts;
  experts.gate_up = gate_up.views;
  experts.gate_up_bias = gate_up_bias.views;
  experts.down = down.views;
  experts.down_bias = down_bias.views;
  experts.interleaved = true;
  experts.form = {.activation = Activation::gpt_oss, .limit = 1.75};
  c.expect(c.ops.fused_moe(c.matrix("x"), routing_of(c), experts, MoeForm::sparse));
}

// Which of several equals are kept is left open: the probabilities, largest first.
TEST(SampleTruths, WhatStandsOnALimit) {
  const std::pair<const char*, SamplingParams> rules[] = {
      {"top_p_met_exactly", {.temperature = 1, .top_p = 0.5}},
      {"top_p_just_above", {.temperature = 1, .top_p = 0.5625}},
      {"top_p_just_below", {.temperature = 1, .top_p = 0.4375}},
      {"top_p_least", {.temperature = 1, .top_p = 0}},
      {"min_p_met_exactly", {.temperature = 1, .min_p = 1}},
      {"min_p", {.temperature = 1, .min_p = 0.3}},
      {"top_k_of_all", {.temperature = 1, .top_k = 4}},
  };
  for (const auto& [name, rule] : rules) {
    std::vector<double> ours =
        sampling_law(fixture().at(std::string("sample.") + name + ".logits").values, rule);
    std::vector<double> torch = fixture().at(std::string("sample.") + name + ".p").values;
    std::sort(ours.begin(), ours.end());
    std::sort(torch.begin(), torch.end());
    ASSERT_EQ(ours.size(), torch.size());
    for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], torch[i], 1e-12) << name;
  }
}

}  // namespace
}  // namespace assay
