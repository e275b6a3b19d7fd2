// rms_norm, layer_norm and softmax: a sum over a row, then each element by it.
//
// u is the roundoff of accumulators, λ = 4·√n that of a sum of n terms (measure.h).
//
//   rms_norm    the mean square is a sum of positive terms, off by λ u relatively, its root by half of that;
//               quotient, root and products round once each:          (λ/2 + 5) u |y|
//               under bf16 (act=bf16) x / rms is rounded before the weight comes in, form=last: 2^-8 |y| more
//   layer_norm  with d = x - mean: δd = u (λ·mean|x| + |d|); the variance is off by 2 Σ|d| δd / Σ d² + λ u:
//               |w|/σ·δd + |w d|/σ·(½ of that + 5 u) + u |b|
//   softmax     x - max rounds, and the exponential carries that on: u |x - max|; it is itself good to 2 ulp,
//               the sum to λ u:                                       (|x - max| + λ + 8) u y
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/cases.h"
#include "kernels/harness/made_weight.h"

namespace assay {
namespace {

NormForm norm_form(const CaseId& id) {
  const std::string word = id.word("form", "last");
  if (word == "last") return NormForm::weight_last;
  if (word == "inside") return NormForm::weight_inside;
  if (word == "plus_one") return NormForm::one_plus_weight;
  throw Error::usage("form=" + word + ": last, inside or plus_one");
}

// A row and its group: what norms of either kind are given.
struct NormInputs {
  std::size_t group = 1;
  double epsilon = 1e-6;
  Filled x;
  MadeWeightPtr weight, bias;
  bool fine = false;  // enough digits that none could guess them

  NormInputs(const CaseId& id, const Arithmetic& arithmetic) : group(id.number("n", 1)) {
    if (group == 0) throw Error::usage("n=0: a mean of nothing");
    fine = group > 16 && id.input() == InputKind::zero_mean;
    const FillOptions vector = {.rows = 1, .columns = group, .seed = id.seed() + 100};
    FillOptions bias_options = vector;
    ++bias_options.seed;
    x = filled(arithmetic, id.input(),
               {.rows = id.number("m", 1), .columns = group * id.number("groups", 1), .seed = id.seed()});
    // A small ε shows only where x is small.
    for (double& value : x.values)
      value = arithmetic.round(value * std::ldexp(1.0, -static_cast<int>(id.number("down", 0))));
    weight = std::make_shared<MadeWeight>(weight_form(id.form()), InputKind::positive_mean, vector);
    bias = std::make_shared<MadeWeight>(weight_form(id.form()), InputKind::zero_mean, bias_options);
  }
};

class RmsNormOperands final : public Operands<RmsNormCall> {
 public:
  explicit RmsNormOperands(const CaseId& id)
      : in_(id, arithmetic = narrow_arithmetic(id)), form_(norm_form(id)) {}
  RmsNormCall call(Ops& ops) const override {
    return {upload(ops, in_.x), in_.weight->view(), in_.epsilon, form_};
  }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    const bool bf16 = arithmetic.bfloat16();
    TruthPart y = {.type = output_type(arithmetic),
                   .rows = in_.x.rows,
                   .columns = in_.x.columns,
                   .fine_digits = in_.fine && !bf16};
    y.values = wide.download(run_reference(wide, call(wide)));
    const double factor = accumulation_factor(in_.group) / 2 + 5;
    const double staged = form_ == NormForm::weight_last ? stage_error(1) : 0;
    for (const double value : y.values) {
      y.per_roundoff.push_back(factor * std::fabs(value));
      if (bf16) y.absolute.push_back(staged * std::fabs(value));
    }
    return {std::move(y)};
  }
  std::optional<RmsNormCall> first_token(const RmsNormCall& call) const override {
    if (in_.x.rows < 2) return std::nullopt;
    RmsNormCall first = call;
    first.x = call.x.row_range(0, 1);
    return first;
  }
  bool spoil_last_token(RmsNormCall& call) const override {
    if (in_.x.rows < 2) return false;
    fill_row_with_nan(call.x, in_.x.rows - 1);
    return true;
  }
  double flops() const override { return 4.0 * static_cast<double>(in_.x.values.size()); }
  double bytes() const override { return 8.0 * static_cast<double>(in_.x.values.size()); }

 private:
  NormInputs in_;
  NormForm form_;
};

class LayerNormOperands final : public Operands<LayerNormCall> {
 public:
  explicit LayerNormOperands(const CaseId& id) : in_(id, arithmetic) {}
  LayerNormCall call(Ops& ops) const override {
    return {upload(ops, in_.x), in_.weight->view(), in_.bias->view(), in_.epsilon};
  }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.rows = in_.x.rows, .columns = in_.x.columns, .fine_digits = in_.fine};
    y.values = wide.download(run_reference(wide, call(wide)));
    y.per_roundoff.resize(y.values.size());
    const std::vector<float> w = in_.weight->values(), b = in_.bias->values();
    for (std::size_t first = 0; first < y.values.size(); first += in_.group)
      group_error(&in_.x.values[first], w, b, &y.per_roundoff[first]);
    return {std::move(y)};
  }
  std::optional<LayerNormCall> first_token(const LayerNormCall& call) const override {
    if (in_.x.rows < 2) return std::nullopt;
    LayerNormCall first = call;
    first.x = call.x.row_range(0, 1);
    return first;
  }
  bool spoil_last_token(LayerNormCall& call) const override {
    if (in_.x.rows < 2) return false;
    fill_row_with_nan(call.x, in_.x.rows - 1);
    return true;
  }
  double flops() const override { return 6.0 * static_cast<double>(in_.x.values.size()); }
  double bytes() const override { return 8.0 * static_cast<double>(in_.x.values.size()); }

 private:
  void group_error(const double* x, const std::vector<float>& w, const std::vector<float>& b,
                   double* error) const {
    const double n = static_cast<double>(in_.group), lambda = accumulation_factor(in_.group);
    double mean = 0, mean_size = 0, variance = 0, carried = 0;
    for (std::size_t i = 0; i < in_.group; ++i) {
      mean += x[i] / n;
      mean_size += std::fabs(x[i]) / n;
    }
    const auto difference_error = [&](double d) { return lambda * mean_size + std::fabs(d); };
    for (std::size_t i = 0; i < in_.group; ++i) {
      const double d = x[i] - mean;
      variance += d * d / n;
      carried += std::fabs(d) * difference_error(d) / n;
    }
    const double deviation = std::sqrt(variance + in_.epsilon);
    const double relative = 2 * carried / (variance + in_.epsilon) + lambda;
    for (std::size_t i = 0; i < in_.group; ++i) {
      const double d = x[i] - mean, scale = std::fabs(w[i]) / deviation;
      error[i] = scale * difference_error(d) + scale * std::fabs(d) * (relative / 2 + 5) + std::fabs(b[i]);
    }
  }
  NormInputs in_;
};

class SoftmaxOperands final : public Operands<SoftmaxCall> {
 public:
  explicit SoftmaxOperands(const CaseId& id)
      : fine_(id.number("n", 1) > 16 && id.input() == InputKind::zero_mean) {
    x_ = filled(arithmetic, id.input(),
                {.rows = id.number("m", 1), .columns = id.number("n", 1), .seed = id.seed()});
  }
  SoftmaxCall call(Ops& ops) const override { return {upload(ops, x_)}; }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.rows = x_.rows, .columns = x_.columns, .fine_digits = fine_};
    y.values = wide.download(run_reference(wide, call(wide)));
    const double constant = accumulation_factor(x_.columns) + 8;
    for (std::size_t r = 0; r < x_.rows; ++r) {
      const auto row = x_.values.begin() + static_cast<std::ptrdiff_t>(r * x_.columns);
      const double largest = *std::max_element(row, row + static_cast<std::ptrdiff_t>(x_.columns));
      for (std::size_t c = 0; c < x_.columns; ++c)
        y.per_roundoff.push_back((largest - row[static_cast<std::ptrdiff_t>(c)] + constant) *
                                 y.values[r * x_.columns + c]);
    }
    y.absolute.assign(y.values.size(), kFlushed);
    return {std::move(y)};
  }
  std::optional<SoftmaxCall> first_token(const SoftmaxCall& call) const override {
    if (x_.rows < 2) return std::nullopt;
    return SoftmaxCall{call.x.row_range(0, 1)};
  }
  bool spoil_last_token(SoftmaxCall& call) const override {
    if (x_.rows < 2) return false;
    fill_row_with_nan(call.x, x_.rows - 1);
    return true;
  }
  double flops() const override { return 10.0 * static_cast<double>(x_.values.size()); }
  double bytes() const override { return 8.0 * static_cast<double>(x_.values.size()); }

 private:
  bool fine_;
  Filled x_;
};

constexpr std::array kNormInputs = {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed,
                                    InputKind::signature};

// Rows of `value` numbers, or so many that there are as many numbers in all.
std::vector<CaseId> rows_at(std::string_view op, std::string_view size, std::size_t value) {
  constexpr std::uint64_t kColumns = 64;
  CaseId id(std::string(op), "F32");
  if (size == "n")
    id.with("m", 3).with("n", value);
  else if (size == "elements")
    id.with("m", (value + kColumns - 1) / kColumns).with("n", kColumns);
  else
    return {};
  return {id.with(InputKind::zero_mean)};
}

class RmsNormCases final : public OpCases<RmsNormCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Shape {
      std::uint64_t m, n, groups;
    };
    for (const std::string_view form : {"last", "inside", "plus_one"}) {
      // Whole rows (DeepSeek-V3's 7168, its latents' 1536 and 512), heads of 128 (Qwen3's q and k norms).
      for (const Shape& s : {Shape{0, 8, 1},
                             {1, 1, 1},
                             {3, 7168, 1},
                             {5, 1536, 1},
                             {2, 512, 1},
                             {3, 128, 16},
                             {4, 61, 3},
                             {300, 64, 1}}) {
        for (const InputKind kind : kNormInputs)
          cases.push_back(CaseId("rms_norm", "BF16")
                              .with("form", form)
                              .with("m", s.m)
                              .with("n", s.n)
                              .with("groups", s.groups)
                              .with(kind));
      }
      for (const InputKind kind : kNormInputs) {
        for (const Shape& s : {Shape{3, 1024, 1}, {5, 128, 16}, {4, 61, 3}})
          cases.push_back(CaseId("rms_norm", "BF16")
                              .with("act", "bf16")
                              .with("form", form)
                              .with("m", s.m)
                              .with("n", s.n)
                              .with("groups", s.groups)
                              .with(kind));
      }
      cases.push_back(CaseId("rms_norm", "F32")
                          .with("form", form)
                          .with("m", 3)
                          .with("n", 96)
                          .with("down", 11)
                          .with(InputKind::zero_mean));
    }
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    std::vector<CaseId> cases = rows_at("rms_norm", size, value);
    if (size == "n")
      cases.push_back(CaseId("rms_norm", "BF16")
                          .with("act", "bf16")
                          .with("m", 3)
                          .with("n", value)
                          .with(InputKind::zero_mean));
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    return {CaseId("rms_norm", "BF16").with("m", 512).with("n", 4096).with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<RmsNormCall>> make(const CaseId& id) const override {
    return std::make_unique<RmsNormOperands>(id);
  }
};

class LayerNormCases final : public OpCases<LayerNormCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Shape {
      std::uint64_t m, n;
    };
    for (const Shape& s : {Shape{0, 8}, {1, 2}, {3, 768}, {5, 1600}, {7, 61}}) {
      for (const InputKind kind : kNormInputs)
        cases.push_back(CaseId("layer_norm", "F32").with("m", s.m).with("n", s.n).with(kind));
    }
    cases.push_back(
        CaseId("layer_norm", "F32").with("m", 3).with("n", 96).with("down", 11).with(InputKind::zero_mean));
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    return rows_at("layer_norm", size, value);
  }
  std::unique_ptr<Operands<LayerNormCall>> make(const CaseId& id) const override {
    return std::make_unique<LayerNormOperands>(id);
  }
};

class SoftmaxCases final : public OpCases<SoftmaxCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Shape {
      std::uint64_t m, n;
    };
    for (const Shape& s : {Shape{0, 8}, {1, 1}, {3, 17}, {5, 1024}, {2, 32003}, {33, 65}}) {
      for (const InputKind kind :
           {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed, InputKind::large})
        cases.push_back(CaseId("softmax", "F32").with("m", s.m).with("n", s.n).with(kind));
    }
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    return rows_at("softmax", size, value);
  }
  std::vector<CaseId> perf_grid() const override {
    return {CaseId("softmax", "F32").with("m", 512).with("n", 4096).with(InputKind::zero_mean),
            CaseId("softmax", "F32").with("m", 1).with("n", 151936).with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<SoftmaxCall>> make(const CaseId& id) const override {
    if (id.number("n", 1) == 0) throw Error::usage("n=0: a softmax of nothing");
    return std::make_unique<SoftmaxOperands>(id);
  }
};

}  // namespace

template <>
const OpCases<RmsNormCall>& cases_of<RmsNormCall>() {
  static const RmsNormCases cases;
  return cases;
}
template <>
const OpCases<LayerNormCall>& cases_of<LayerNormCall>() {
  static const LayerNormCases cases;
  return cases;
}
template <>
const OpCases<SoftmaxCall>& cases_of<SoftmaxCall>() {
  static const SoftmaxCases cases;
  return cases;
}

}  // namespace assay
