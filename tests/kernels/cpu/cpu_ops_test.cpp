// The CPU kernels against the reference operations in float64, on the very same operands.
#include "kernels/cpu/cpu_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_quantize.h"
#include "core/numeric/simd_targets.h"
#include "kernels/cpu/linear.h"
#include "kernels/harness/inputs.h"
#include "kernels/harness/measure.h"

namespace assay {
namespace {

// A weight in memory of its own, stored as `type`; FP8 and INT8 under a scale a block.
struct StoredWeight {
  std::string name = "w";
  std::vector<std::byte> codes;
  std::vector<float> scales;
  WeightView view;

  StoredWeight(ElementType type, std::size_t rows, std::size_t columns, InputKind kind,
               std::size_t block = 128) {
    std::vector<float> values(rows * columns);
    fill_inputs(kind, {.rows = rows, .columns = columns, .terms = columns, .seed = 7}, values);
    const ElementInfo& element = info(type);
    view.name = &name;
    view.rows = rows;
    view.columns = columns;
    view.type = type;
    view.row_bytes = columns / element.block_elements * element.block_bytes;
    codes.resize(rows * view.row_bytes);
    if (!element.in_safetensors)
      EXPECT_FALSE(gguf_quantize(type, values, codes.data()).has_value());
    else
      simd::encode(type, values, Overflow::saturate, codes.data());
    view.codes = codes.data();
    if (type == ElementType::F8_E4M3 || type == ElementType::I8) {
      view.kind = FormKind::scaled;
      view.block_rows = view.block_columns = block;
      view.scale_columns = (columns + block - 1) / block;
      for (std::size_t i = 0; i < (rows + block - 1) / block * view.scale_columns; ++i)
        scales.push_back(0.5F + static_cast<float>(i % 7) / 8);
      view.scales = reinterpret_cast<const std::byte*>(scales.data());
    }
  }
};

std::vector<float> filled(std::size_t rows, std::size_t columns, InputKind kind, std::uint64_t seed) {
  std::vector<float> values(rows * columns);
  fill_inputs(kind, {.rows = rows, .columns = columns, .terms = columns, .seed = seed}, values);
  return values;
}

Matrix upload(Ops& ops, const std::vector<float>& values, std::size_t rows, std::size_t columns) {
  return ops.upload(std::vector<double>(values.begin(), values.end()), rows, columns);
}

std::vector<float> as_floats(Ops& ops, const Matrix& x) {
  const std::vector<double> values = ops.download(x);
  return {values.begin(), values.end()};
}

struct Pair {
  CpuOps cpu{Arithmetic{Precision::f32}, 2};
  ReferenceOps truth{Arithmetic{Precision::f64}, 2};
};

// --- linear

struct LinearCase {
  ElementType type;
  std::size_t tokens, inputs, outputs;
  InputKind kind;
};

std::string case_name(const LinearCase& c) {
  return std::string(name(c.type)) + "_m" + std::to_string(c.tokens) + "_k" + std::to_string(c.inputs) +
         "_n" + std::to_string(c.outputs) + "_" + std::string(name(c.kind));
}

std::vector<LinearCase> linear_cases() {
  std::vector<LinearCase> cases;
  for (const ElementType type :
       {ElementType::F32, ElementType::BF16, ElementType::F16, ElementType::F8_E4M3, ElementType::I8,
        ElementType::Q4_0, ElementType::Q4_1, ElementType::Q5_0, ElementType::Q5_1, ElementType::Q8_0,
        ElementType::Q4_K, ElementType::Q5_K, ElementType::Q6_K, ElementType::Q3_K}) {
    const std::size_t inputs = info(type).block_elements == 1 ? 333 : 768;
    for (const std::size_t tokens : {1, 2, 7, 29}) {
      for (const InputKind kind : {InputKind::zero_mean, InputKind::heavy_tailed, InputKind::signature})
        cases.push_back({type, tokens, inputs, 70, kind});
    }
  }
  return cases;
}

class CpuLinear : public ::testing::TestWithParam<LinearCase> {};

TEST_P(CpuLinear, IsWithinItsBudget) {
  const LinearCase& c = GetParam();
  Pair ops;
  const StoredWeight w(c.type, c.outputs, c.inputs, c.kind);
  const std::vector<float> x = filled(c.tokens, c.inputs, c.kind, 3);
  const Matrix y = ops.cpu.linear(upload(ops.cpu, x, c.tokens, c.inputs), w.view, {}, {});
  const Matrix t = ops.truth.linear(upload(ops.truth, x, c.tokens, c.inputs), w.view, {}, {});

  std::vector<float> weights(c.outputs * c.inputs);
  decode_rows(w.view, 0, c.outputs, weights.data());
  std::vector<double> absolute(c.tokens * c.outputs), budget(absolute.size());
  for (std::size_t i = 0; i < absolute.size(); ++i) {
    for (std::size_t k = 0; k < c.inputs; ++k)
      absolute[i] += std::fabs(static_cast<double>(x[i / c.outputs * c.inputs + k]) *
                               weights[i % c.outputs * c.inputs + k]);
  }
  const std::vector<double> truth = ops.truth.download(t);
  linear_budget({.terms = c.inputs, .out = ElementType::F32}, truth, absolute, budget);
  const std::vector<float> out = as_floats(ops.cpu, y);
  const ErrorMeasure m = measure(out, truth, budget, ElementType::F32);
  EXPECT_EQ(judge(m), CaseStatus::passed) << describe_worst(m, out, truth, budget);
}

INSTANTIATE_TEST_SUITE_P(Grid, CpuLinear, ::testing::ValuesIn(linear_cases()),
                         [](const auto& test) { return case_name(test.param); });

// More than one piece of rows, the last not whole.
TEST(CpuAdd, AddsEveryRow) {
  for (const std::size_t rows : {1, 512, 513, 1300}) {
    Pair ops;
    const std::vector<float> a = filled(rows, 64, InputKind::zero_mean, 3),
                             b = filled(rows, 64, InputKind::zero_mean, 4);
    const Matrix y = ops.cpu.add(upload(ops.cpu, a, rows, 64), upload(ops.cpu, b, rows, 64));
    std::vector<double> sums;
    for (std::size_t i = 0; i < a.size(); ++i) sums.push_back(a[i] + b[i]);
    EXPECT_EQ(ops.cpu.download(y), sums) << rows;
  }
}

TEST(CpuLinear, IsExactWhereSumsAre) {
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    Pair ops;
    for (const std::size_t tokens : {1, 5, 6, 31}) {
      const StoredWeight w(ElementType::BF16, 67, 257, InputKind::exact);
      const std::vector<float> x = filled(tokens, 257, InputKind::exact, 11);
      const Matrix y = ops.cpu.linear(upload(ops.cpu, x, tokens, 257), w.view, {}, {});
      const Matrix t = ops.truth.linear(upload(ops.truth, x, tokens, 257), w.view, {}, {});
      EXPECT_EQ(ops.cpu.download(y), ops.truth.download(t)) << target << ", " << tokens << " tokens";
    }
  }
  use_simd_target("");
}

TEST(CpuLinear, APanelsRowIsTheSameAloneAndAmongOthers) {
  Pair ops;
  const StoredWeight w(ElementType::BF16, 100, 515, InputKind::zero_mean);
  const std::vector<float> x = filled(40, 515, InputKind::zero_mean, 5);
  const Matrix all = upload(ops.cpu, x, 40, 515);
  const Matrix together = ops.cpu.allocate(40, 100), alone = ops.cpu.allocate(1, 100);
  cpu::linear_by(cpu::LinearWay::gemm, all, w.view, together, 2);
  for (const std::size_t row : {std::size_t{0}, std::size_t{13}, std::size_t{39}}) {
    cpu::linear_by(cpu::LinearWay::gemm, all.row_range(row, 1), w.view, alone, 1);
    EXPECT_EQ(ops.cpu.download(alone), ops.cpu.download(together.row_range(row, 1)));
  }
}

TEST(CpuLinear, TakesInputMajorWeightsAndBiases) {
  Pair ops;
  StoredWeight w(ElementType::F32, 45, 131, InputKind::zero_mean);
  w.view.input_major = true;
  const StoredWeight bias(ElementType::BF16, 1, 131, InputKind::zero_mean);
  for (const std::size_t tokens : {1, 9}) {
    const std::vector<float> x = filled(tokens, 45, InputKind::zero_mean, 9);
    const Matrix y = ops.cpu.linear(upload(ops.cpu, x, tokens, 45), w.view, bias.view, {});
    const Matrix t = ops.truth.linear(upload(ops.truth, x, tokens, 45), w.view, bias.view, {});
    const std::vector<double> out = ops.cpu.download(y), truth = ops.truth.download(t);
    ASSERT_EQ(out.size(), truth.size());
    // |x|·|w| stays below 200 here: 4·√45 · 2^-24 · 200 < 4e-4.
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], truth[i], 4e-4);
  }
}

TEST(CpuLinear, ANanCodeOfFp8StaysANan) {
  Pair ops;
  StoredWeight w(ElementType::F8_E4M3, 3, 128, InputKind::zero_mean);
  w.codes[128 + 5] = std::byte{0x7F};
  w.codes[256 + 5] = std::byte{0xFF};
  const std::vector<float> x(128, 1.0F);
  const std::vector<double> y = ops.cpu.download(ops.cpu.linear(upload(ops.cpu, x, 1, 128), w.view, {}, {}));
  EXPECT_FALSE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_TRUE(std::isnan(y[2]));
}

// --- attention

struct AttentionShape {
  std::size_t heads, kv_heads, qk_dim, v_dim, window;
  double soft_cap;
  bool sinks;
  std::vector<std::pair<std::size_t, std::size_t>> sequences;  // queries, keys
  std::size_t page_rows;                                       // 0: no pages
};

class CpuAttention : public ::testing::TestWithParam<AttentionShape> {};

// Pages of a sequence in scattered order, its rows of NaN where no key is.
PagedKvView paged(Ops& ops, const std::vector<float>& rows, std::size_t keys, std::size_t width,
                  std::size_t page_rows, std::vector<std::int32_t>& pages) {
  if (page_rows == 0) return {.base = upload(ops, rows, keys, width)};
  const std::size_t count = (keys + page_rows - 1) / page_rows;
  pages.resize(count);
  for (std::size_t p = 0; p < count; ++p) pages[p] = static_cast<std::int32_t>((p * 5 + 3) % (count * 2 + 1));
  std::vector<double> memory((2 * count + 1) * page_rows * width, std::nan(""));
  for (std::size_t k = 0; k < keys; ++k) {
    const std::size_t slot = static_cast<std::size_t>(pages[k / page_rows]) * page_rows + k % page_rows;
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(k * width), width,
                memory.begin() + static_cast<std::ptrdiff_t>(slot * width));
  }
  return {.base = ops.upload(memory, (2 * count + 1) * page_rows, width),
          .pages = pages.data(),
          .page_rows = page_rows};
}

struct AttentionInputs {
  std::vector<float> q;
  std::vector<std::vector<float>> keys, values;
  std::vector<std::vector<std::int32_t>> key_pages, value_pages;
};

AttentionCall make_call(Ops& ops, const AttentionShape& s, AttentionInputs& in, const WeightView& sinks) {
  std::size_t tokens = 0;
  for (const auto& [queries, keys] : s.sequences) tokens += queries;
  AttentionCall call;
  call.q = upload(ops, in.q, tokens, s.heads * s.qk_dim);
  call.heads = s.heads;
  call.kv_heads = s.kv_heads;
  call.qk_dim = s.qk_dim;
  call.v_dim = s.v_dim;
  call.scale = 1 / std::sqrt(static_cast<double>(s.qk_dim));
  call.window = s.window;
  call.soft_cap = s.soft_cap;
  if (s.sinks) call.sinks = sinks;
  std::size_t first = 0;
  for (std::size_t i = 0; i < s.sequences.size(); ++i) {
    SequenceMetadata span;
    span.first = first;
    span.queries = s.sequences[i].first;
    span.keys = s.sequences[i].second;
    span.key_rows = paged(ops, in.keys[i], span.keys, s.kv_heads * s.qk_dim, s.page_rows, in.key_pages[i]);
    span.value_rows =
        paged(ops, in.values[i], span.keys, s.kv_heads * s.v_dim, s.page_rows, in.value_pages[i]);
    call.sequences.push_back(span);
    first += span.queries;
  }
  return call;
}

// Per output, with p the weights: an error δ of the scores is one of 2δ in p; then a sum over keys.
//   δ = 4√d·u·scale·max|q|·|k|,   |out - truth| ≤ (2δ + 4√keys·u + 8u) · max|v|
double attention_budget(const AttentionShape& s, const AttentionInputs& in) {
  double largest_product = 0, largest_value = 0;
  std::size_t most_keys = 1;
  const auto squares = [](const float* x, std::size_t n) { return std::inner_product(x, x + n, x, 0.0); };
  double longest_q = 0;
  for (std::size_t i = 0; i + s.qk_dim <= in.q.size(); i += s.qk_dim)
    longest_q = std::max(longest_q, squares(&in.q[i], s.qk_dim));
  for (std::size_t i = 0; i < in.keys.size(); ++i) {
    most_keys = std::max(most_keys, s.sequences[i].second);
    for (std::size_t k = 0; k + s.qk_dim <= in.keys[i].size(); k += s.qk_dim)
      largest_product = std::max(largest_product, std::sqrt(longest_q * squares(&in.keys[i][k], s.qk_dim)));
    for (const float v : in.values[i]) largest_value = std::max<double>(largest_value, std::fabs(v));
  }
  const double u = 0x1p-24, d = static_cast<double>(s.qk_dim);
  const double delta = 4 * std::sqrt(d) * u * largest_product / std::sqrt(d);
  return (2 * delta + 4 * std::sqrt(static_cast<double>(most_keys)) * u + 8 * u) * largest_value;
}

TEST_P(CpuAttention, IsWithinItsBudget) {
  const AttentionShape& s = GetParam();
  for (const InputKind kind : {InputKind::zero_mean, InputKind::large, InputKind::signature}) {
    Pair ops;
    AttentionInputs in;
    std::size_t tokens = 0;
    for (const auto& [queries, keys] : s.sequences) {
      in.keys.push_back(filled(keys, s.kv_heads * s.qk_dim, kind, 20 + keys));
      in.values.push_back(filled(keys, s.kv_heads * s.v_dim, InputKind::zero_mean, 40 + keys));
      tokens += queries;
    }
    in.key_pages.resize(s.sequences.size());
    in.value_pages.resize(s.sequences.size());
    in.q = filled(tokens, s.heads * s.qk_dim, InputKind::zero_mean, 17);
    const StoredWeight sinks(ElementType::F32, 1, s.heads, InputKind::zero_mean);
    AttentionInputs again = in;
    const Matrix y = ops.cpu.attention(make_call(ops.cpu, s, in, sinks.view));
    const Matrix t = ops.truth.attention(make_call(ops.truth, s, again, sinks.view));
    const std::vector<double> truth = ops.truth.download(t);
    const std::vector<double> budget(truth.size(), attention_budget(s, in));
    const std::vector<float> out = as_floats(ops.cpu, y);
    const ErrorMeasure m = measure(out, truth, budget, ElementType::F32);
    EXPECT_EQ(judge(m), CaseStatus::passed) << name(kind) << ": " << describe_worst(m, out, truth, budget);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuAttention,
                         ::testing::Values(AttentionShape{4, 4, 16, 16, 0, 0, false, {{1, 1}}, 0},
                                           AttentionShape{
                                               4, 2, 64, 64, 0, 0, false, {{1, 77}, {3, 5}, {40, 100}}, 0},
                                           AttentionShape{8, 1, 72, 64, 0, 0, false, {{1, 300}, {2, 2}}, 0},
                                           AttentionShape{6, 2, 40, 24, 7, 0, false, {{33, 33}, {1, 90}}, 0},
                                           AttentionShape{4, 1, 32, 32, 0, 20, false, {{9, 50}}, 0},
                                           AttentionShape{8, 2, 32, 32, 9, 0, true, {{1, 60}, {30, 31}}, 0},
                                           AttentionShape{4, 2, 32, 48, 0, 0, true, {{1, 41}, {17, 40}}, 16},
                                           AttentionShape{3, 3, 20, 20, 0, 0, false, {{25, 25}}, 1}));

TEST(CpuAttention, ASequenceDoesNotSeeTheOthersOfItsBatch) {
  const AttentionShape one{4, 2, 32, 32, 0, 0, false, {{1, 50}}, 0};
  const AttentionShape two{4, 2, 32, 32, 0, 0, false, {{1, 50}, {1, 9}}, 0};
  Pair ops;
  AttentionInputs in;
  in.q = filled(2, 4 * 32, InputKind::zero_mean, 1);
  for (const std::size_t keys : {50, 9}) {
    in.keys.push_back(filled(keys, 2 * 32, InputKind::zero_mean, keys));
    in.values.push_back(filled(keys, 2 * 32, InputKind::zero_mean, keys + 1));
  }
  in.key_pages.resize(2);
  in.value_pages.resize(2);
  AttentionInputs alone = in;
  alone.q.resize(4 * 32);
  const Matrix both = ops.cpu.attention(make_call(ops.cpu, two, in, {}));
  const Matrix first = ops.cpu.attention(make_call(ops.cpu, one, alone, {}));
  EXPECT_EQ(ops.cpu.download(first), ops.cpu.download(both.row_range(0, 1)));
}

// --- the others

TEST(CpuElementwise, NormsAgree) {
  Pair ops;
  for (const std::size_t columns : {8, 33, 200}) {
    for (const NormForm form : {NormForm::weight_last, NormForm::one_plus_weight}) {
      const StoredWeight w(ElementType::F32, 1, columns, InputKind::zero_mean);
      const std::vector<float> x = filled(5, columns * 3, InputKind::heavy_tailed, 2);
      const Matrix y = ops.cpu.rms_norm(upload(ops.cpu, x, 5, columns * 3), w.view, 1e-6, form);
      const Matrix t = ops.truth.rms_norm(upload(ops.truth, x, 5, columns * 3), w.view, 1e-6, form);
      const std::vector<double> out = ops.cpu.download(y), truth = ops.truth.download(t);
      // The mean's relative error is at most 4√n·u, the factor's half of it; three roundings more.
      const double relative = (2 * std::sqrt(static_cast<double>(columns)) + 3) * 0x1p-24;
      for (std::size_t i = 0; i < out.size(); ++i)
        EXPECT_LE(std::fabs(out[i] - truth[i]), relative * std::fabs(truth[i]) + 1e-30);
    }
  }
}

TEST(CpuElementwise, GatesAgree) {
  Pair ops;
  const std::vector<float> gate = filled(3, 37, InputKind::large, 4), up = filled(3, 37, InputKind::large, 5);
  for (const Activation activation :
       {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::gpt_oss}) {
    const GatedActivation form{activation, 7};
    const Matrix y = ops.cpu.gated_activation(upload(ops.cpu, gate, 3, 37), upload(ops.cpu, up, 3, 37), form);
    const Matrix t =
        ops.truth.gated_activation(upload(ops.truth, gate, 3, 37), upload(ops.truth, up, 3, 37), form);
    const std::vector<double> out = ops.cpu.download(y), truth = ops.truth.download(t);
    for (std::size_t i = 0; i < out.size(); ++i) {
      // Arguments up to 100 carry their own rounding into the exponential: 100·u, a few times.
      EXPECT_LE(std::fabs(out[i] - truth[i]), 1024 * 0x1p-24 * std::fabs(truth[i]) + 1e-4)
          << static_cast<int>(activation) << " " << gate[i] << " " << up[i];
    }
  }
}

TEST(CpuElementwise, TurnsAgree) {
  Pair ops;
  const std::vector<float> x = filled(6, 3 * 20, InputKind::zero_mean, 4);
  std::vector<float> cos(6 * 8), sin(6 * 8);
  for (std::size_t i = 0; i < cos.size(); ++i) {
    cos[i] = static_cast<float>(std::cos(0.3 * static_cast<double>(i)));
    sin[i] = static_cast<float>(std::sin(0.3 * static_cast<double>(i)));
  }
  for (const RopeLayout layout : {RopeLayout::half_split, RopeLayout::interleaved}) {
    const auto turn = [&](Ops& o) {
      Matrix m = upload(o, x, 6, 60);
      o.rope(m, {.heads = 3,
                 .head_dim = 20,
                 .offset = 4,
                 .cos = upload(o, cos, 6, 8),
                 .sin = upload(o, sin, 6, 8),
                 .layout = layout});
      return o.download(m);
    };
    const std::vector<double> out = turn(ops.cpu), truth = turn(ops.truth);
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], truth[i], 4 * 0x1p-24 * 8);
  }
}

}  // namespace
}  // namespace assay
