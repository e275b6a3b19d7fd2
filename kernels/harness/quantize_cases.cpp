// quantize and dequantize.
//
//   quantize    scales  max|x| / limit, which rounds once, or by way of a reciprocal twice: 2 u |s|;
//                       a power of two has no excuse: equality
//               values  what the codes stand for: within half a step of x, a step being what the code type
//                       has at x / s (1 for integers); where both neighbours are as near, either will do
//   dequantize  code · scale, rounded once
#include <algorithm>
#include <cmath>

#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "kernels/harness/cases.h"

namespace assay {
namespace {

QuantizeRule rule_of(const CaseId& id) {
  QuantizeRule rule;
  const auto type = element_type_from_text(id.form());
  if (!type || (*type != ElementType::I8 && *type != ElementType::F8_E4M3 && *type != ElementType::F8_E5M2))
    throw Error::usage(id.form() + ": activations become I8, F8_E4M3 or F8_E5M2");
  rule.codes = *type;
  rule.block_rows = id.number("rows", 1);
  rule.block_columns = id.number("columns", 128);
  rule.power_of_two = id.number("pow2") != 0;
  return rule;
}

double limit_of(ElementType type) {
  return type == ElementType::I8 ? 127 : type == ElementType::F8_E4M3 ? 448 : 57344;
}

// The distance between the codes around `x`, in units of the scale.
double step_at(ElementType type, double x) {
  const FloatFormat* format = float_format(type);
  if (format == nullptr) return 1;
  const int lowest = 1 - format->bias;
  const int exponent = x == 0 ? lowest : std::max(lowest, std::ilogb(x));
  return std::ldexp(1.0, exponent - format->mantissa_bits);
}

struct Blocks {
  std::size_t down, across, per_row, per_column;
  Blocks(const QuantizeRule& rule, std::size_t rows, std::size_t columns)
      : down(rule.block_rows == 0 ? std::max<std::size_t>(1, rows) : rule.block_rows),
        across(rule.block_columns == 0 ? std::max<std::size_t>(1, columns) : rule.block_columns),
        per_row((columns + across - 1) / across),
        per_column((rows + down - 1) / down) {}
  std::size_t of(std::size_t row, std::size_t column) const { return row / down * per_row + column / across; }
};

class QuantizeOperands final : public Operands<QuantizeCall> {
 public:
  explicit QuantizeOperands(const CaseId& id) : rule_(rule_of(id)) {
    x_ = filled(arithmetic, id.input(),
                {.rows = id.number("m", 1), .columns = id.number("n", 1), .seed = id.seed()});
    if (id.number("zeros") != 0)
      std::fill_n(x_.values.begin(), std::min<std::size_t>(x_.columns, x_.values.size()), 0.0);
  }
  QuantizeCall call(Ops& ops) const override { return {upload(ops, x_), rule_}; }
  Truth truth(int) const override {
    const Blocks blocks(rule_, x_.rows, x_.columns);
    TruthPart scales = {.name = "scales",
                        .rows = blocks.per_column,
                        .columns = blocks.per_column == 0 ? 0 : blocks.per_row,
                        .values = due_scales(blocks)};
    TruthPart values = {.name = "values", .rows = x_.rows, .columns = x_.columns, .values = x_.values};
    for (std::size_t i = 0; i < x_.values.size(); ++i) {
      const double s = scales.values[blocks.of(i / x_.columns, i % x_.columns)];
      const double slack = 1 + 0x1p-20;  // x / s rounds before it is rounded to a code
      values.absolute.push_back(0.5 * step_at(rule_.codes, x_.values[i] / s) * s * slack);
      values.per_roundoff.push_back(2 * std::fabs(x_.values[i]));
    }
    for (const double s : scales.values) scales.per_roundoff.push_back(2 * s);
    if (rule_.power_of_two) demand_equality(scales);
    return {std::move(scales), std::move(values)};
  }
  std::optional<QuantizeCall> first_token(const QuantizeCall& call) const override {
    if (x_.rows < 2 || rule_.block_rows != 1) return std::nullopt;
    return QuantizeCall{call.x.row_range(0, 1), call.rule};
  }
  double flops() const override { return 3.0 * static_cast<double>(x_.values.size()); }
  double bytes() const override { return 5.0 * static_cast<double>(x_.values.size()); }

 private:
  std::vector<double> due_scales(const Blocks& blocks) const {
    // DeepSeek's act_quant never takes the magnitude of an FP8 block below 1e-4; a block of zeros in INT8
    // has the scale 1.
    std::vector<double> amax(blocks.per_column * blocks.per_row);
    for (std::size_t i = 0; i < x_.values.size(); ++i) {
      double& a = amax[blocks.of(i / x_.columns, i % x_.columns)];
      a = std::max(a, std::fabs(x_.values[i]));
    }
    for (double& a : amax) {
      if (rule_.codes != ElementType::I8) a = std::max(a, static_cast<double>(1e-4F));
      a = a == 0 ? 1 : a / limit_of(rule_.codes);
      if (rule_.power_of_two) a = std::exp2(std::ceil(std::log2(static_cast<double>(static_cast<float>(a)))));
    }
    return amax;
  }
  QuantizeRule rule_;
  Filled x_;
};

class DequantizeOperands final : public Operands<DequantizeCall> {
 public:
  explicit DequantizeOperands(const CaseId& id) {
    const QuantizeRule rule = rule_of(id);
    q_ = {rule, id.number("m", 1), id.number("n", 1), {}, {}};
    const Blocks blocks(rule, q_.rows, q_.columns);
    InputStream stream(id.seed());
    const int halvings = static_cast<int>(std::min<std::uint64_t>(id.number("down"), 140));
    for (std::size_t i = 0; i < q_.rows * q_.columns; ++i) {
      // Any code whose topmost exponent bit is clear: FP8 has its NaNs and infinities among the others.
      const auto code = static_cast<std::uint8_t>(stream.next());
      q_.codes.push_back(static_cast<std::byte>(rule.codes == ElementType::I8 ? code : code & 0xBF));
    }
    for (std::size_t i = 0; i < blocks.per_column * blocks.per_row; ++i)
      q_.scales.push_back(static_cast<float>(std::ldexp(0.001 + stream.uniform(), -halvings)));
  }
  DequantizeCall call(Ops&) const override { return {q_}; }
  Truth truth(int) const override {
    const Blocks blocks(q_.rule, q_.rows, q_.columns);
    std::vector<double> codes(q_.codes.size());
    decode(q_.rule.codes, q_.codes, codes.data());
    TruthPart y = {.rows = q_.rows, .columns = q_.columns, .values = std::move(codes)};
    for (std::size_t i = 0; i < y.values.size(); ++i)
      y.values[i] *= q_.scales[blocks.of(i / q_.columns, i % q_.columns)];
    y.per_roundoff.assign(y.values.size(), 0);
    return {std::move(y)};
  }
  std::optional<DequantizeCall> first_token(const DequantizeCall& call) const override {
    if (q_.rows < 2 || q_.rule.block_rows != 1) return std::nullopt;
    DequantizeCall first = call;
    first.x.rows = 1;
    first.x.codes.resize(q_.columns);
    first.x.scales.resize(q_.scales.size() / q_.rows);
    return first;
  }
  double flops() const override { return static_cast<double>(q_.codes.size()); }
  double bytes() const override { return 5.0 * static_cast<double>(q_.codes.size()); }

 private:
  QuantizedMatrix q_;
};

template <class Add>
void for_rules(std::string_view op, Add add) {
  struct Block {
    std::uint64_t rows, columns;
  };
  for (const std::string_view codes : {"F8_E4M3", "F8_E5M2", "I8"}) {
    // Tokens in blocks of 128 (DeepSeek), whole tokens, square blocks, the whole tensor.
    for (const Block& b : {Block{1, 128}, {1, 0}, {128, 128}, {0, 0}}) {
      for (const std::uint64_t m : {0, 1, 5, 131}) {
        CaseId id = CaseId(std::string(op), std::string(codes))
                        .with("m", m)
                        .with("n", m == 131 ? 130 : 448)
                        .with("rows", b.rows)
                        .with("columns", b.columns);
        add(id);
      }
    }
  }
}

// `value` rows, or columns: in blocks of 128, and under a scale a row.
std::vector<CaseId> codes_at(std::string_view op, std::string_view size, std::size_t value) {
  std::vector<CaseId> cases;
  if (size != "m" && size != "n") return cases;
  for (const auto& [codes, columns] : {std::pair<const char*, std::uint64_t>{"F8_E4M3", 128}, {"I8", 0}})
    cases.push_back(CaseId(std::string(op), codes)
                        .with("m", size == "m" ? value : 2)
                        .with("n", size == "n" ? value : 130)
                        .with("rows", 1)
                        .with("columns", columns)
                        .with(InputKind::zero_mean));
  return cases;
}

class QuantizeCases final : public OpCases<QuantizeCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    for_rules("quantize", [&](const CaseId& id) {
      for (const InputKind kind : {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed})
        cases.push_back(CaseId(id).with(kind));
      if (id.form() != "I8") cases.push_back(CaseId(id).with("pow2", 1).with(InputKind::zero_mean));
      if (id.number("m") == 5) cases.push_back(CaseId(id).with("zeros", 1).with(InputKind::zero_mean));
    });
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    return codes_at("quantize", size, value);
  }
  std::vector<CaseId> perf_grid() const override {
    return {CaseId("quantize", "F8_E4M3").with("m", 512).with("n", 7168).with(InputKind::zero_mean),
            CaseId("quantize", "I8")
                .with("m", 512)
                .with("n", 4096)
                .with("columns", 0)
                .with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<QuantizeCall>> make(const CaseId& id) const override {
    return std::make_unique<QuantizeOperands>(id);
  }
};

class DequantizeCases final : public OpCases<DequantizeCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    for_rules("dequantize", [&](CaseId id) { cases.push_back(id.with("seed", 1)); });
    return cases;
  }
  std::vector<CaseId> always() const override {  // results that are subnormal
    std::vector<CaseId> cases;
    for (const char* codes : {"F8_E4M3", "I8"})
      cases.push_back(CaseId("dequantize", codes).with("m", 3).with("n", 130).with("down", 130));
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    return codes_at("dequantize", size, value);
  }
  std::vector<CaseId> perf_grid() const override {
    return {CaseId("dequantize", "F8_E4M3").with("m", 512).with("n", 7168).with(InputKind::zero_mean),
            CaseId("dequantize", "I8")
                .with("m", 512)
                .with("n", 4096)
                .with("columns", 0)
                .with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<DequantizeCall>> make(const CaseId& id) const override {
    return std::make_unique<DequantizeOperands>(id);
  }
};

}  // namespace

template <>
const OpCases<QuantizeCall>& cases_of<QuantizeCall>() {
  static const QuantizeCases cases;
  return cases;
}
template <>
const OpCases<DequantizeCall>& cases_of<DequantizeCall>() {
  static const DequantizeCases cases;
  return cases;
}

}  // namespace assay
