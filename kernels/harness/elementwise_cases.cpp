// Operations that touch each element once: embedding, rope, activation, gated.
//
//   embedding    y = table[token]                              a copy: equality
//   rope         a c - b s, b c + a s                          3 u (|a c| + |b s|): two products and a sum
//                act=bf16: products rounded to bfloat16        2^-8 (|a c| + |b s|) more
//   activation   silu x σ(x)                                   8 u |y|: exponential to 2 ulp, sum, quotient
//                gelu ½ x (1 + erf)                            4 u |y| + 4 u |x|: erf is off by an ulp of 1
//                gelu_tanh ½ x (1 + tanh t)                    4 u |y| + |x| (4 u + 4 u |t| (1 - tanh² t))
//                relu                                          a choice: equality
//   gated        act(g) · u                                    the activation's · |u|, one rounding more
//                gpt_oss g σ(1.702 g) (u + 1)                  12 u (1 + |1.702 g|) |g σ| (|u| + 1)
//                of BF16: the activation is rounded to bfloat16, 2^-8 |y| more; of gpt_oss the sigmoid's argument
//                s, it, its product and u + 1:                 2^-8 (3 + |s| (1 - σ)) |y|
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/system/error.h"
#include "kernels/harness/cases.h"
#include "kernels/harness/made_weight.h"
#include "refimpl/ops/activation.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

// down=135: all inputs × 2^-135, so that they are subnormal.
int halvings_of(const CaseId& id) {
  return static_cast<int>(std::min<std::uint64_t>(id.number("down"), 140));
}

FillOptions shape(const CaseId& id, std::string_view rows, std::string_view columns) {
  return {.rows = id.number(rows, 1),
          .columns = id.number(columns, 1),
          .seed = id.seed(),
          .halvings = halvings_of(id)};
}

// --- embedding

class EmbeddingOperands final : public Operands<EmbeddingCall> {
 public:
  explicit EmbeddingOperands(const CaseId& id) {
    FillOptions options = shape(id, "vocab", "hidden");
    table_ = std::make_shared<MadeWeight>(weight_form(id.form()), id.input(), options);
    InputStream stream(id.seed());
    for (std::uint64_t i = 0; i < id.number("m", 1); ++i)
      tokens_.push_back(static_cast<TokenId>(stream.next() % options.rows));
  }
  EmbeddingCall call(Ops&) const override { return {tokens_, table_->view()}; }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.rows = tokens_.size(), .columns = table_->view().columns};
    y.values = wide.download(run_reference(wide, call(wide)));
    demand_equality(y);
    return {std::move(y)};
  }
  std::optional<EmbeddingCall> first_token(const EmbeddingCall& call) const override {
    if (call.tokens.size() < 2) return std::nullopt;
    return EmbeddingCall{{call.tokens.front()}, call.table};
  }
  double flops() const override { return 0; }
  double bytes() const override {
    return static_cast<double>(tokens_.size() * (table_->view().row_bytes + table_->view().columns * 4));
  }

 private:
  MadeWeightPtr table_;
  std::vector<TokenId> tokens_;
};

class EmbeddingCases final : public OpCases<EmbeddingCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    for (const std::string_view form : {"F32", "BF16", "F16", "FP8_128x128", "Q8_0", "Q4_K", "Q6_K"}) {
      for (const std::uint64_t m : {0, 1, 17}) {
        cases.push_back(CaseId("embedding", std::string(form))
                            .with("m", m)
                            .with("vocab", 331)
                            .with("hidden", 256)
                            .with(InputKind::zero_mean));
        cases.push_back(CaseId("embedding", std::string(form))
                            .with("m", m)
                            .with("vocab", 67)
                            .with("hidden", 768)
                            .with(InputKind::signature));
      }
    }
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    if (size != "hidden") return {};
    return {CaseId("embedding", "BF16")
                .with("m", 3)
                .with("vocab", 5)
                .with("hidden", value)
                .with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<EmbeddingCall>> make(const CaseId& id) const override {
    if (id.number("vocab", 1) == 0 || id.number("hidden", 1) == 0) throw Error::usage("an empty table");
    return std::make_unique<EmbeddingOperands>(id);
  }
};

// --- rope

RopeLayout layout_of(const CaseId& id) {
  const std::string word = id.word("layout", "half");
  if (word != "half" && word != "interleaved") throw Error::usage("layout=" + word + ": half or interleaved");
  return word == "half" ? RopeLayout::half_split : RopeLayout::interleaved;
}

class RopeOperands final : public Operands<RotaryCall> {
 public:
  explicit RopeOperands(const CaseId& id)
      : tokens_(id.number("m", 1)),
        heads_(id.number("heads", 1)),
        head_dim_(id.number("dim", 64)),
        rotary_(id.number("rotary", head_dim_)),
        offset_(id.number("offset", 0)),
        layout_(layout_of(id)) {
    arithmetic = narrow_arithmetic(id);
    if (rotary_ % 2 != 0 || offset_ + rotary_ > head_dim_)
      throw Error::usage("rotary and offset do not fit dim");
    x_ = filled(
        arithmetic, id.input(),
        {.rows = tokens_, .columns = heads_ * head_dim_, .seed = id.seed(), .halvings = halvings_of(id)});
    // Su et al. 2021: angle = position · 10000^(-2i/d), positions from `first` on.
    cos_ = sin_ = {tokens_, rotary_ / 2, {}};
    std::vector<double> frequencies;
    for (std::size_t i = 0; i < rotary_ / 2; ++i)
      frequencies.push_back(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_)));
    const std::uint64_t first = id.number("first", 0);
    for (std::size_t t = 0; t < tokens_; ++t) {
      for (const double frequency : frequencies) {
        const double angle = static_cast<double>(first + t) * frequency;
        cos_.values.push_back(arithmetic.round(std::cos(angle)));
        sin_.values.push_back(arithmetic.round(std::sin(angle)));
      }
    }
  }
  RotaryCall call(Ops& ops) const override {
    return {upload(ops, x_), {heads_, head_dim_, offset_, upload(ops, cos_), upload(ops, sin_), layout_}};
  }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.type = output_type(arithmetic), .rows = tokens_, .columns = heads_ * head_dim_};
    y.values = wide.download(run_reference(wide, call(wide)));
    // |a c| + |b s| of each element is the rotation itself, of magnitudes and with -sin in the first half.
    for (std::size_t t = 0; t < tokens_; ++t) {
      for (std::size_t c = 0; c < y.columns; ++c) {
        y.per_roundoff.push_back(3 * size_of_terms(t, c));
        if (arithmetic.bfloat16()) y.absolute.push_back(stage_error(1) * size_of_terms(t, c));
      }
    }
    return {std::move(y)};
  }
  std::optional<RotaryCall> first_token(const RotaryCall& call) const override {
    if (tokens_ < 2) return std::nullopt;
    RotaryCall first = call;
    first.x = call.x.row_range(0, 1);
    first.angles.cos = call.angles.cos.row_range(0, 1);
    first.angles.sin = call.angles.sin.row_range(0, 1);
    return first;
  }
  bool spoil_last_token(RotaryCall& call) const override {
    if (tokens_ < 2) return false;
    fill_row_with_nan(call.x, tokens_ - 1);
    return true;
  }
  double flops() const override { return 3.0 * static_cast<double>(tokens_ * heads_ * rotary_); }
  double bytes() const override { return 8.0 * static_cast<double>(x_.values.size()); }

 private:
  double size_of_terms(std::size_t token, std::size_t column) const {
    const std::size_t in_head = column % head_dim_, pairs = rotary_ / 2;
    if (in_head < offset_ || in_head >= offset_ + rotary_) return 0;
    const std::size_t j = in_head - offset_;
    const bool halves = layout_ == RopeLayout::half_split;
    const std::size_t pair = halves ? j % pairs : j / 2;
    const bool second = halves ? j >= pairs : j % 2 == 1;
    const std::size_t partner =
        halves ? (second ? column - pairs : column + pairs) : (second ? column - 1 : column + 1);
    const double* row = &x_.values[token * x_.columns];
    const double c = cos_.values[token * pairs + pair], s = sin_.values[token * pairs + pair];
    return std::fabs(row[column] * c) + std::fabs(row[partner] * s);
  }
  std::size_t tokens_, heads_, head_dim_, rotary_, offset_;
  RopeLayout layout_;
  Filled x_, cos_, sin_;
};

class RopeCases final : public OpCases<RotaryCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Head {
      std::uint64_t heads, dim, rotary, offset;
    };
    // Llama and Qwen (128 whole), GPT-NeoX-like (a quarter), DeepSeek's last 64 of 192, ragged ones.
    for (const Head& h :
         {Head{4, 128, 128, 0}, {3, 80, 20, 0}, {5, 192, 64, 128}, {1, 6, 6, 0}, {7, 10, 2, 3}}) {
      for (const std::string_view layout : {"half", "interleaved"}) {
        for (const std::uint64_t m : {0, 1, 9}) {
          for (const InputKind kind : {InputKind::zero_mean, InputKind::heavy_tailed, InputKind::signature}) {
            cases.push_back(CaseId("rope", "F32")
                                .with("m", m)
                                .with("heads", h.heads)
                                .with("dim", h.dim)
                                .with("rotary", h.rotary)
                                .with("offset", h.offset)
                                .with("layout", layout)
                                .with("first", m == 9 ? 4090 : 3)
                                .with(kind));
          }
        }
        for (const InputKind kind : {InputKind::zero_mean, InputKind::heavy_tailed, InputKind::signature})
          cases.push_back(CaseId("rope", "F32")
                              .with("act", "bf16")
                              .with("m", 9)
                              .with("heads", h.heads)
                              .with("dim", h.dim)
                              .with("rotary", h.rotary)
                              .with("offset", h.offset)
                              .with("layout", layout)
                              .with("first", 3)
                              .with(kind));
      }
    }
    return cases;
  }
  std::vector<CaseId> always() const override {
    return {CaseId("rope", "F32")
                .with("m", 3)
                .with("heads", 2)
                .with("dim", 80)
                .with("first", 3)
                .with("down", 135)
                .with(InputKind::zero_mean)};
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    CaseId id("rope", "F32");
    if (size == "elements")
      id.with("m", (value + 63) / 64).with("heads", 1).with("dim", 64);
    else if (size == "pairs")
      id.with("m", 3).with("heads", value).with("dim", 2);
    else if (size == "rotary pairs")
      id.with("act", "bf16").with("m", 3).with("heads", 2).with("dim", 2 * value);
    else
      return {};
    return {id.with(InputKind::zero_mean)};
  }
  std::vector<CaseId> perf_grid() const override {
    return {
        CaseId("rope", "F32").with("m", 512).with("heads", 32).with("dim", 128).with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<RotaryCall>> make(const CaseId& id) const override {
    return std::make_unique<RopeOperands>(id);
  }
};

// --- activation and gated

// What rounding may do to act(x), in units of u.
double activation_error(Activation kind, double x) {
  constexpr double kRoot = 0.7978845608028654;  // √(2/π)
  switch (kind) {
    case Activation::silu: return 8 * std::fabs(x * logistic(x));
    case Activation::gelu:
      return 4 * std::fabs(0.5 * x * (1 + std::erf(x / std::numbers::sqrt2))) + 4 * std::fabs(x);
    case Activation::gelu_tanh: {
      const double t = kRoot * (x + 0.044715 * x * x * x), tanh = std::tanh(t);
      return 4 * std::fabs(0.5 * x * (1 + tanh)) + std::fabs(x) * (4 + 4 * std::fabs(t) * (1 - tanh * tanh));
    }
    case Activation::relu: return 0;
    case Activation::relu_squared: return 2 * x * x;
    case Activation::sigmoid: return 8 * logistic(x);
    case Activation::gpt_oss: return 0;  // gated alone, with a budget of its own
    default: break;
  }
  return 2 * std::fabs(activate(x, kind));  // computed in float64, and rounded
}

constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"silu", Activation::silu},
    {"gelu", Activation::gelu},
    {"gelu_tanh", Activation::gelu_tanh},
    {"relu", Activation::relu},
    {"relu_squared", Activation::relu_squared},
    {"sigmoid", Activation::sigmoid},
    {"gpt_oss", Activation::gpt_oss},
    {"gelu_cut", Activation::gelu_cut},
    {"gelu_clipped", Activation::gelu_clipped},
    {"gelu_logistic", Activation::gelu_logistic},
    {"tanh", Activation::tanh},
    {"identity", Activation::identity},
    {"relu6", Activation::relu6},
    {"leaky_relu", Activation::leaky_relu},
    {"hard_silu", Activation::hard_silu},
    {"mish", Activation::mish},
    {"laplace", Activation::laplace},
    {"softplus_root", Activation::softplus_root}};

Activation activation_of(const CaseId& id) {
  std::string known;
  for (const auto& [word, kind] : kActivations) {
    if (id.word("act", "silu") == word) return kind;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word);
  }
  throw Error::usage(fmt::format("act={}: one of {}", id.word("act"), known));
}

class ActivationOperands final : public Operands<ActivationCall> {
 public:
  explicit ActivationOperands(const CaseId& id) : kind_(activation_of(id)) {
    x_ = filled(arithmetic, id.input(), shape(id, "m", "n"));
  }
  ActivationCall call(Ops& ops) const override { return {upload(ops, x_), kind_}; }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.rows = x_.rows, .columns = x_.columns};
    y.values = wide.download(run_reference(wide, call(wide)));
    for (const double x : x_.values) y.per_roundoff.push_back(activation_error(kind_, x));
    for (const double x : x_.values) y.absolute.push_back(kFlushed * (1 + std::fabs(x)));
    if (kind_ == Activation::relu) demand_equality(y);
    return {std::move(y)};
  }
  std::optional<ActivationCall> first_token(const ActivationCall& call) const override {
    if (x_.rows < 2) return std::nullopt;
    return ActivationCall{call.x.row_range(0, 1), call.kind};
  }
  bool spoil_last_token(ActivationCall& call) const override {
    if (x_.rows < 2) return false;
    fill_row_with_nan(call.x, x_.rows - 1);
    return true;
  }
  double flops() const override { return 10.0 * static_cast<double>(x_.values.size()); }
  double bytes() const override { return 8.0 * static_cast<double>(x_.values.size()); }

 private:
  Activation kind_;
  Filled x_;
};

class GatedActivationOperands final : public Operands<GatedActivationCall> {
 public:
  explicit GatedActivationOperands(const CaseId& id) : form_{.activation = activation_of(id)} {
    if (id.form() == "BF16") arithmetic.precision = Precision::bf16;
    fine_ = id.input() == InputKind::zero_mean && !arithmetic.bfloat16();
    FillOptions options = shape(id, "m", "n");
    gate_ = filled(arithmetic, id.input(), options);
    ++options.seed;
    up_ = filled(arithmetic, id.input(), options);
  }
  GatedActivationCall call(Ops& ops) const override { return {upload(ops, gate_), upload(ops, up_), form_}; }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.type = output_type(arithmetic), .rows = gate_.rows, .columns = gate_.columns};
    y.values = wide.download(run_reference(wide, call(wide)));
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      const double g = gate_.values[i], u = up_.values[i];
      if (form_.activation == Activation::gpt_oss) {
        const double clamped = std::min(g, form_.limit), sharp = 1.702 * clamped;
        y.per_roundoff.push_back(12 * (1 + std::fabs(sharp)) * std::fabs(clamped * logistic(sharp)) *
                                 (std::min(std::fabs(u), form_.limit) + 1));
      } else {
        y.per_roundoff.push_back(activation_error(form_.activation, g) * std::fabs(u) +
                                 std::fabs(y.values[i]));
      }
      y.absolute.push_back(kFlushed * (1 + std::fabs(g)) * (1 + std::fabs(u)) +
                           staged(g) * std::fabs(y.values[i]));
    }
    y.fine_digits = fine_ && form_.activation != Activation::relu;
    return {std::move(y)};
  }
  std::optional<GatedActivationCall> first_token(const GatedActivationCall& call) const override {
    if (gate_.rows < 2) return std::nullopt;
    return GatedActivationCall{call.gate.row_range(0, 1), call.up.row_range(0, 1), call.form};
  }
  bool spoil_last_token(GatedActivationCall& call) const override {
    if (gate_.rows < 2) return false;
    fill_row_with_nan(call.gate, gate_.rows - 1);
    return true;
  }
  double flops() const override { return 12.0 * static_cast<double>(gate_.values.size()); }
  double bytes() const override { return 12.0 * static_cast<double>(gate_.values.size()); }

 private:
  // What the arithmetic's own roundings come to, relatively.
  double staged(double gate) const {
    if (!arithmetic.bfloat16()) return 0;
    if (form_.activation != Activation::gpt_oss) return stage_error(1);
    const double s = 1.702 * std::min(gate, form_.limit);
    return stage_error(3) + std::fabs(s) * (1 - logistic(s)) * stage_error(1) * (1 + stage_error(3));
  }

  GatedActivation form_;
  bool fine_ = false;
  Filled gate_, up_;
};

std::vector<CaseId> activation_grid(std::string_view op, std::string_view form,
                                    std::initializer_list<std::string_view> kinds) {
  std::vector<CaseId> cases;
  struct Shape {
    std::uint64_t m, n;
  };
  for (const std::string_view kind : kinds) {
    for (const Shape& s : {Shape{0, 16}, {1, 5}, {3, 77}, {5, 1536}, {17, 131}}) {
      for (const InputKind input : {InputKind::zero_mean, InputKind::heavy_tailed, InputKind::large})
        cases.push_back(CaseId(std::string(op), std::string(form))
                            .with("act", kind)
                            .with("m", s.m)
                            .with("n", s.n)
                            .with(input));
    }
  }
  return cases;
}

std::vector<CaseId> activation_at(std::string_view op, std::string_view act, std::string_view size,
                                  std::size_t value) {
  CaseId id(std::string(op), "F32");
  id.with("act", act);
  if (size == "n")
    id.with("m", 3).with("n", value);
  else if (size == "elements")
    id.with("m", (value + 63) / 64).with("n", 64);
  else
    return {};
  return {id.with(InputKind::zero_mean)};
}

class ActivationCases final : public OpCases<ActivationCall> {
 public:
  std::vector<CaseId> grid() const override {
    return activation_grid("activation", "F32", {"silu", "gelu", "gelu_tanh", "relu", "mish"});
  }
  std::vector<CaseId> always() const override {
    return {CaseId("activation", "F32")
                .with("act", "relu")
                .with("m", 3)
                .with("n", 77)
                .with("down", 135)
                .with(InputKind::zero_mean)};
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    return activation_at("activation", "silu", size, value);
  }
  std::unique_ptr<Operands<ActivationCall>> make(const CaseId& id) const override {
    if (activation_of(id) == Activation::gpt_oss) throw Error::usage("act=gpt_oss exists only gated");
    return std::make_unique<ActivationOperands>(id);
  }
};

class GatedActivationCases final : public OpCases<GatedActivationCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases =
        activation_grid("gated_activation", "F32", {"silu", "gelu", "gelu_tanh", "relu", "gpt_oss", "mish"});
    for (CaseId& id : activation_grid("gated_activation", "BF16",
                                      {"silu", "gelu", "gelu_tanh", "relu", "relu_squared", "sigmoid",
                                       "gpt_oss", "mish", "hard_silu"}))
      cases.push_back(std::move(id));
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    std::vector<CaseId> cases;
    for (const std::string_view act : {"silu", "gelu"}) {
      for (CaseId& id : activation_at("gated_activation", act, size, value)) cases.push_back(std::move(id));
    }
    if (size == "n")
      cases.push_back(CaseId("gated_activation", "BF16")
                          .with("act", "silu")
                          .with("m", 3)
                          .with("n", value)
                          .with(InputKind::zero_mean));
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    return {CaseId("gated_activation", "F32")
                .with("act", "silu")
                .with("m", 512)
                .with("n", 4096)
                .with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<GatedActivationCall>> make(const CaseId& id) const override {
    return std::make_unique<GatedActivationOperands>(id);
  }
};

}  // namespace

template <>
const OpCases<EmbeddingCall>& cases_of<EmbeddingCall>() {
  static const EmbeddingCases cases;
  return cases;
}
template <>
const OpCases<RotaryCall>& cases_of<RotaryCall>() {
  static const RopeCases cases;
  return cases;
}
template <>
const OpCases<ActivationCall>& cases_of<ActivationCall>() {
  static const ActivationCases cases;
  return cases;
}
template <>
const OpCases<GatedActivationCall>& cases_of<GatedActivationCall>() {
  static const GatedActivationCases cases;
  return cases;
}

}  // namespace assay
