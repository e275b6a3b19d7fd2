// linear: y = x · Wᵀ
//
// Budget: u_out·|y| + 4·√K·u_acc·(|x|·|W|), measure.h. Under fp8-block, int8, int16 and int8-block arithmetic
// activations (int16: floating-point weights too) are quantized first; truth multiplies what they became, so
// that the budget stays that of the product.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/system/error.h"
#include "kernels/harness/cases.h"
#include "kernels/harness/made_weight.h"
#include "refimpl/ops/int16_activations.h"
#include "refimpl/ops/int8_block_activations.h"

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
        kind_(id.input()) {
    arithmetic.precision = precision_of(id);
    const WeightForm form = weight_form(id.form());
    const FillOptions common = {.terms = inputs_, .largest_code = largest_exact_code(form.type)};
    FillOptions of_x = common, of_w = common;
    of_x.rows = tokens_;
    of_w.rows = outputs_;
    of_x.columns = of_w.columns = inputs_;
    of_x.seed = 2 * id.seed();
    of_w.seed = 2 * id.seed() + 1;
    of_x.halvings = -static_cast<int>(std::min<std::uint64_t>(id.number("up"), 100));
    x_ = filled(arithmetic, kind_, of_x);
    const bool same_kind =
        kind_ == InputKind::exact || kind_ == InputKind::positive_mean || kind_ == InputKind::signature;
    if (id.number("bias") != 0)
      bias_ = std::make_shared<MadeWeight>(weight_form(arithmetic.bfloat16() ? "BF16" : "F32"),
                                           kind_ == InputKind::exact ? kind_ : InputKind::zero_mean,
                                           FillOptions{.columns = outputs_, .seed = id.seed() + 50});
    of_w.halvings = static_cast<int>(std::min<std::uint64_t>(id.number("down"), 140));
    weight_ = std::make_shared<MadeWeight>(form, same_kind ? kind_ : InputKind::zero_mean, of_w);
  }

  LinearCall call(Ops& ops) const override { return {upload(ops, x_), weight_->view(), bias(), {}}; }

  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    const Filled x = multiplied(jobs);
    std::vector<float> w = weight_->values();
    if (arithmetic.precision == Precision::bf16)
      for (float& value : w) value = static_cast<float>(arithmetic.round(value));
    if (has_int16_floats(weight_->view()) && takes_int16(weight_->view(), arithmetic)) {
      for (std::size_t o = 0; o < outputs_; ++o)
        round_to_int16(std::span(w).subspan(o * inputs_, inputs_), kInt16WeightBits);
    }
    TruthPart y = {.type = output_type(arithmetic), .rows = tokens_, .columns = outputs_};
    const MadeWeight exact(w, outputs_, inputs_);
    y.values = wide.download(run_reference(wide, LinearCall{upload(wide, x), exact.view(), bias(), {}}));
    if (kind_ == InputKind::exact || kind_ == InputKind::one_hot) {
      demand_equality(y);
      return {std::move(y)};
    }
    Filled sizes = x;
    for (double& value : sizes.values) value = std::fabs(value);
    const MadeWeight absolute(magnitudes(std::move(w)), outputs_, inputs_);
    y.per_roundoff =
        wide.download(run_reference(wide, LinearCall{upload(wide, sizes), absolute.view(), {}, {}}));
    y.products = y.per_roundoff;
    for (double& value : y.per_roundoff) value *= accumulation_factor(inputs_);
    if (bias_) add_bias_error(y);
    y.fine_digits = inputs_ >= 32 && y.type == ElementType::F32 && kind_ == InputKind::zero_mean;
    return {std::move(y)};
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
  WeightView bias() const { return bias_ ? bias_->view() : WeightView(); }
  // One sum more: it rounds the product and the bias by half a unit of the larger.
  void add_bias_error(TruthPart& y) const {
    const std::vector<float> b = bias_->values();
    for (std::size_t i = 0; i < y.values.size(); ++i)
      y.per_roundoff[i] += std::fabs(y.values[i]) + std::fabs(static_cast<double>(b[i % outputs_]));
  }
  // The activations as they are multiplied.
  Filled multiplied(int jobs) const {
    if (takes_int16(weight_->view(), arithmetic) && !x_.values.empty()) {
      ReferenceOps ops(arithmetic, jobs);
      return {x_.rows, x_.columns, ops.download(rounded_to_int16(ops, upload(ops, x_), weight_->view()))};
    }
    if (takes_int8_block(weight_->view(), arithmetic) && !x_.values.empty()) {
      ReferenceOps ops(arithmetic, jobs);
      return {x_.rows, x_.columns, ops.download(rounded_to_int8_block(ops, upload(ops, x_)))};
    }
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
  Filled x_;
  MadeWeightPtr weight_, bias_;
};

struct Shape {
  std::uint64_t m, k, n;
};

class LinearCases final : public OpCases<LinearCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    const auto add = [&](std::string_view form, const Shape& s, InputKind kind, std::string_view act = "") {
      CaseId id("linear", std::string(form));
      if (!act.empty()) id.with("act", act);
      cases.push_back(id.with("m", s.m).with("k", s.k).with("n", s.n).with(kind));
    };
    constexpr std::array kPowerful = {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed,
                                      InputKind::one_hot};
    // Plain elements: ragged, single, prime and empty.
    for (const std::string_view form : {"F32", "BF16", "F16"}) {
      for (const Shape& s : {Shape{0, 64, 8}, {1, 1, 1}, {3, 7, 5}}) add(form, s, InputKind::zero_mean);
      for (const Shape& s : {Shape{5, 31, 33}, {17, 129, 67}, {1, 1031, 63}, {6, 257, 16}, {40, 512, 96}}) {
        for (const InputKind kind : kInputKinds) add(form, s, kind);
      }
    }
    for (const InputKind kind : kInputKinds) {
      add("F32", {7, 65, 33}, kind);
      cases.back().with("bias", 1);
    }
    // Subnormal weights; activations beyond what half precision holds.
    add("F16", {5, 64, 19}, InputKind::zero_mean);
    cases.back().with("down", 16);
    for (const std::string_view form : {"F32", "F16", "BF16"}) {
      add(form, {5, 64, 19}, InputKind::zero_mean);
      cases.back().with("up", 16);
    }
    // A scale a block, whose edges the matrix does not respect.
    for (const std::string_view form :
         {"FP8_128x128", "FP8_64x64", "FP8_1x128", "INT8_CHANNEL", "INT8_128x128"}) {
      for (const Shape& s : {Shape{1, 200, 130}, {7, 384, 257}, {33, 129, 129}}) {
        for (const InputKind kind : kPowerful) add(form, s, kind);
        add(form, s, InputKind::exact);
      }
    }
    for (const std::string_view form : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K",
                                        "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"}) {
      for (const Shape& s : {Shape{1, 256, 67}, {9, 768, 35}}) {
        for (const InputKind kind : kPowerful) add(form, s, kind);
      }
    }
    // Real ones, cut in the number of outputs: DeepSeek-V3, Llama-3-8B, Qwen3-0.6B.
    constexpr std::array<Shape, 7> kReal = {{{1, 7168, 576},
                                             {2, 16384, 128},
                                             {7, 1536, 1536},
                                             {128, 512, 512},
                                             {1, 14336, 256},
                                             {33, 4096, 256},
                                             {5, 1024, 3072}}};
    std::size_t turn = 0;
    for (const std::string_view form :
         {"F32", "BF16", "FP8_128x128", "INT8_CHANNEL", "Q8_0", "Q4_K", "Q6_K"}) {
      for (const Shape& s : kReal) add(form, s, kPowerful[turn++ % kPowerful.size()]);
    }
    // Activations that are not float32.
    for (const InputKind kind :
         {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed, InputKind::exact}) {
      for (const Shape& s : {Shape{5, 33, 31}, {17, 512, 67}}) add("BF16", s, kind, "bf16");
      for (const std::string_view form : {"F32", "F16", "FP8_128x128", "INT8_CHANNEL", "Q8_0", "Q4_K"}) {
        for (const Shape& s : {Shape{1, 256, 67}, {9, 768, 35}}) add(form, s, kind, "bf16");
      }
      for (const Shape& s : {Shape{3, 200, 130}, {17, 512, 257}}) {
        if (kind == InputKind::exact) continue;
        add("FP8_128x128", s, kind, "fp8-block");
        add("FP8_64x64", s, kind, "fp8-block");
        add("INT8_CHANNEL", s, kind, "int8");
      }
    }
    for (const Shape& s : {Shape{1, 4096, 256}, {40, 1536, 131}})
      add("BF16", s, InputKind::zero_mean, "bf16");
    add("BF16", {7, 65, 33}, InputKind::zero_mean, "bf16");
    cases.back().with("bias", 1);
    for (const std::string_view form : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"}) {
      for (const Shape& s : {Shape{1, 512, 67}, {3, 256, 9}, {17, 768, 35}, {64, 1024, 96}}) {
        for (const InputKind kind : kPowerful) {
          add(form, s, kind, "int16");
          // A scale of max / 127 makes no 1 of a 1: nothing to be equal to bit for bit.
          if (kind != InputKind::one_hot) add(form, s, kind, "int8-block");
        }
      }
    }
    for (const std::string_view form : {"BF16", "F16"}) {
      for (const Shape& s : {Shape{1, 512, 67}, {3, 96, 9}, {17, 608, 35}, {64, 1024, 96}, {7, 33, 5}}) {
        for (const InputKind kind : kInputKinds) add(form, s, kind, "int16");
      }
    }
    return cases;
  }

  std::vector<CaseId> perf_grid() const override {
    std::vector<CaseId> cases;
    for (const std::string_view form :
         {"F32", "BF16", "FP8_128x128", "INT8_CHANNEL", "Q8_0", "Q4_K", "Q6_K"}) {
      for (const Shape& s : {Shape{1, 4096, 14336}, {512, 4096, 1024}})
        cases.push_back(CaseId("linear", std::string(form))
                            .with("m", s.m)
                            .with("k", s.k)
                            .with("n", s.n)
                            .with(InputKind::zero_mean));
    }
    // What GPUs multiply on tensor cores.
    for (const auto& [form, act] : {std::pair<std::string_view, std::string_view>{"BF16", "bf16"},
                                    {"FP8_128x128", "fp8-block"},
                                    {"FP8_64x64", "fp8-block"},
                                    {"INT8_CHANNEL", "int8"}}) {
      for (const Shape& s : {Shape{1, 4096, 14336}, {2048, 7168, 4096}})
        cases.push_back(CaseId("linear", std::string(form))
                            .with("act", act)
                            .with("m", s.m)
                            .with("k", s.k)
                            .with("n", s.n)
                            .with(InputKind::zero_mean));
    }
    return cases;
  }

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
