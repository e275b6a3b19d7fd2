// linear: y = x · Wᵀ
//
// Budget: u_out·|y| + 4·√K·u_acc·(|x|·|W|), measure.h. Where activations, or weights too, are quantized first
// (under fp8-block and int8 by the arithmetic, under int16 and int8-block by kernels that say so), truth
// multiplies what they became, so that the budget stays that of the product. That they became the right
// numbers is judged by a second truth, of what they were: operand_rounding.h.
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/cases.h"
#include "kernels/harness/kept_weights.h"
#include "kernels/harness/linear_grid.h"
#include "kernels/harness/made_weight.h"
#include "kernels/harness/operand_rounding.h"
#include "refimpl/ops/w8a8.h"

namespace assay {
namespace {

Precision precision_of(const CaseId& id) {
  const std::string text = id.word("act", "f32");
  const auto precision = precision_from_text(text);
  if (!precision || *precision == Precision::f64)
    throw Error::usage("act=" + text +
                       ": kernels compute in f32, bf16, fp8-block, int8, int16 or int8-block");
  return *precision;
}

std::vector<float> magnitudes(std::vector<float> values) {
  for (float& x : values) x = std::fabs(x);
  return values;
}

// The largest integers that an exact case may be made of: what the weight's codes can hold.
std::int64_t largest_exact_code(ElementType type) {
  return type == ElementType::F8_E4M3 || type == ElementType::F8_E5M2 ? 4 : 8;
}

class LinearOperands final : public Operands<LinearCall> {
 public:
  explicit LinearOperands(const CaseId& id)
      : tokens_(id.number("m", 1)),
        inputs_(id.number("k", 1)),
        outputs_(id.number("n", 1)),
        kind_(id.input()),
        input_major_(id.word("major", "output") == "input") {
    if (!input_major_ && id.word("major", "output") != "output")
      throw Error::usage("major=" + id.word("major") + ": output or input");
    arithmetic.precision = precision_of(id);
    const WeightForm form = weight_form(id.form());
    // Exact blocks have scales of 1/2 to 4, which take three digits more.
    const FillOptions common = {
        .terms = inputs_, .digits = form.scaled ? 21 : 24, .largest_code = largest_exact_code(form.type)};
    FillOptions of_x = common, of_w = common;
    of_x.rows = tokens_;
    of_x.columns = inputs_;
    of_w.rows = input_major_ ? inputs_ : outputs_;
    of_w.columns = input_major_ ? outputs_ : inputs_;
    of_x.seed = 2 * id.seed();
    of_w.seed = 2 * id.seed() + 1;
    of_x.halvings = -static_cast<int>(std::min<std::uint64_t>(id.number("up"), 100));
    x_ = filled(arithmetic, kind_, of_x);
    if (kind_ == InputKind::exact) make_exact_in_eight_bits();
    const bool same_kind =
        kind_ == InputKind::exact || kind_ == InputKind::positive_mean || kind_ == InputKind::signature;
    if (id.number("bias") != 0)
      bias_ = std::make_shared<MadeWeight>(weight_form(arithmetic.bfloat16() ? "BF16" : "F32"),
                                           kind_ == InputKind::exact ? kind_ : InputKind::zero_mean,
                                           FillOptions{.columns = outputs_, .seed = id.seed() + 50});
    of_w.halvings = static_cast<int>(std::min<std::uint64_t>(id.number("down"), 140));
    weight_ = kept_weight(id.form(), same_kind ? kind_ : InputKind::zero_mean, of_w);
  }

  LinearCall call(Ops& ops) const override { return {upload(ops, x_), stored(), bias(), {}}; }

  Truth truth(int jobs) const override {
    return product(quantized_by_arithmetic(jobs), numbers(), of_arithmetic(), jobs);
  }
  Truth truth_of(const RoundedOperands& how, int jobs) const override {
    Filled x = x_;
    for (std::size_t t = 0; t < tokens_; ++t) {
      const std::span row = std::span(x.values).subspan(t * inputs_, inputs_);
      std::vector<float> rounded(row.begin(), row.end());
      how.inputs.round(rounded);
      std::copy(rounded.begin(), rounded.end(), row.begin());
    }
    std::vector<float> w = numbers();
    for (std::size_t o = 0; how.weights && o < outputs_; ++o)
      how.weights->round(std::span(w).subspan(o * inputs_, inputs_));
    return product(x, std::move(w), how, jobs);
  }

  std::optional<LinearCall> first_token(const LinearCall& call) const override {
    if (tokens_ < 2) return std::nullopt;
    LinearCall first = call;
    first.x = call.x.row_range(0, 1);
    return first;
  }
  bool spoil_last_token(LinearCall& call) const override {
    // A quantizing kernel refuses NaN.
    if (tokens_ < 2 || arithmetic.precision == Precision::fp8_block ||
        arithmetic.precision == Precision::int8)
      return false;
    fill_row_with_nan(call.x, tokens_ - 1);
    return true;
  }
  double flops() const override {
    return 2.0 * static_cast<double>(tokens_) * static_cast<double>(inputs_) * static_cast<double>(outputs_);
  }
  double bytes() const override {
    const double activations = static_cast<double>(tokens_) * static_cast<double>(inputs_ + outputs_) * 4;
    return activations + static_cast<double>(weight_->view().rows * weight_->view().row_bytes);
  }

 private:
  // x · Wᵀ + b; `how` says what was rounded to have these.
  Truth product(const Filled& x, std::vector<float> w, const std::optional<RoundedOperands>& how,
                int jobs) const {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.type = output_type(arithmetic), .rows = tokens_, .columns = outputs_};
    const MadeWeight exact(w, outputs_, inputs_);
    y.values = wide.download(run_reference(wide, LinearCall{upload(wide, x), exact.view(), bias(), {}}));
    if (how && !x_.values.empty()) y.unrounded = unrounded(wide, *how);
    if (kind_ == InputKind::exact || kind_ == InputKind::one_hot) {
      demand_equality(y);
      // A kernel that rounds operands anew errs by their products, not by a sum that may be 0.
      if (how) y.products = sizes_of_products(wide, x, std::move(w));
      return {std::move(y)};
    }
    y.per_roundoff = sizes_of_products(wide, x, std::move(w));
    y.products = y.per_roundoff;
    for (double& value : y.per_roundoff) value *= accumulation_factor(inputs_);
    if (bias_) add_bias_error(y);
    y.fine_digits = inputs_ >= 32 && y.type == ElementType::F32 && kind_ == InputKind::zero_mean;
    return {std::move(y)};
  }
  // |x| · |W|ᵀ
  std::vector<double> sizes_of_products(ReferenceOps& wide, const Filled& x, std::vector<float> w) const {
    Filled sizes = x;
    for (double& value : sizes.values) value = std::fabs(value);
    const MadeWeight absolute(magnitudes(std::move(w)), outputs_, inputs_);
    return wide.download(run_reference(wide, LinearCall{upload(wide, sizes), absolute.view(), {}, {}}));
  }
  WeightView stored() const {
    WeightView view = weight_->view();
    view.input_major = input_major_;
    return view;
  }
  // The weight as the arithmetic has it, [outputs, inputs].
  std::vector<float> numbers() const {
    std::vector<float> w = weight_->values();
    if (input_major_) {
      std::vector<float> transposed(w.size());
      for (std::size_t i = 0; i < w.size(); ++i) transposed[i % outputs_ * inputs_ + i / outputs_] = w[i];
      w = std::move(transposed);
    }
    if (arithmetic.precision == Precision::bf16)
      for (float& value : w) value = static_cast<float>(arithmetic.round(value));
    return w;
  }
  std::optional<RoundedOperands> of_arithmetic() const {
    if (!is_w8a8(stored(), arithmetic)) return std::nullopt;
    return RoundedOperands{arithmetic.precision == Precision::fp8_block ? kFp8Inputs : kInt8Inputs, {}};
  }
  Unrounded unrounded(ReferenceOps& wide, const RoundedOperands& how) const {
    Unrounded result = unrounded_product(wide, x_, numbers(), how);
    const std::vector<float> b = bias_ ? bias_->values() : std::vector<float>(outputs_);
    for (std::size_t i = 0; i < result.values.size(); ++i)
      result.values[i] += static_cast<double>(b[i % outputs_]);
    return result;
  }
  // Integers that scales of max / 448 or max / 127 leave as they are: that maximum in every block.
  void make_exact_in_eight_bits() {
    const bool fp8 = arithmetic.precision == Precision::fp8_block;
    if (!fp8 && arithmetic.precision != Precision::int8) return;
    const double unit = fp8 ? 112 : 1, largest = fp8 ? 448 : 127;
    const std::size_t block = fp8 ? 128 : inputs_;
    for (std::size_t t = 0; t < tokens_; ++t) {
      double* row = &x_.values[t * inputs_];
      for (std::size_t k = 0; k < inputs_; ++k)  // 336 is no number of E4M3
        row[k] = (std::fabs(row[k]) == 3 ? std::copysign(2.0, row[k]) : row[k]) * unit;
      for (std::size_t first = 0; first < inputs_; first += block)
        row[first + 37 * t % std::min(block, inputs_ - first)] = largest;
    }
  }
  WeightView bias() const { return bias_ ? bias_->view() : WeightView(); }
  // One sum more: it rounds the product and the bias by half a unit of the larger.
  void add_bias_error(TruthPart& y) const {
    const std::vector<float> b = bias_->values();
    for (std::size_t i = 0; i < y.values.size(); ++i)
      y.per_roundoff[i] += std::fabs(y.values[i]) + std::fabs(static_cast<double>(b[i % outputs_]));
  }
  Filled quantized_by_arithmetic(int jobs) const {
    const bool eight_bits =
        arithmetic.precision == Precision::fp8_block || arithmetic.precision == Precision::int8;
    if (!eight_bits || x_.values.empty()) return x_;
    ReferenceOps ops(arithmetic, jobs);
    const bool fp8 = arithmetic.precision == Precision::fp8_block;
    const QuantizedMatrix q = run_reference(
        ops,
        QuantizeCall{upload(ops, x_),
                     {.codes = weight_->view().type, .block_rows = 1, .block_columns = fp8 ? 128u : 0u}});
    ReferenceOps wide(Arithmetic{Precision::f32}, jobs);
    return {x_.rows, x_.columns, wide.download(run_reference(wide, DequantizeCall{q}))};
  }

  std::size_t tokens_, inputs_, outputs_;
  InputKind kind_;
  bool input_major_;
  Filled x_;
  MadeWeightPtr weight_, bias_;
};

class LinearCases final : public OpCases<LinearCall> {
 public:
  std::vector<CaseId> grid() const override { return linear_grid(); }
  std::vector<CaseId> always() const override { return linear_always(); }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    return linear_at(size, value);
  }
  std::vector<CaseId> perf_grid() const override { return linear_perf_grid(); }
  std::unique_ptr<Operands<LinearCall>> make(const CaseId& id) const override {
    if (id.number("k", 1) == 0) throw Error::usage("k=0: a sum of nothing");
    return std::make_unique<LinearOperands>(id);
  }
};

}  // namespace

template <>
const OpCases<LinearCall>& cases_of<LinearCall>() {
  static const LinearCases cases;
  return cases;
}

}  // namespace assay
