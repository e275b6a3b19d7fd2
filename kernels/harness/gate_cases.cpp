// gated_norm and output_gate: what recurrent layers and attention give, scaled by a gate of their input.
//
// u is the roundoff of accumulators, λ that of a sum of as many terms as a group has (measure.h). A gate's activation is
// good to 8 u (elementwise), the norm to (λ/2 + 5) u (norms), each product to one more:
//
//   gated_norm    norm(x) · w · act(gate)   (λ/2 + 5 + 10) |y|
//                 norm(x · act(gate)) · w   10 u of each product, and of their mean's root:   (λ/2 + 5 + 20) |y|
//   output_gate   x · act(gate)             9 |y|; a gate as it is: one product, equality
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/cases.h"
#include "kernels/harness/made_weight.h"

namespace assay {
namespace {

GateForm gate_form_of(const CaseId& id, std::string_view missing) {
  const std::string word = id.word("act", missing);
  if (word == "silu") return GateForm::silu;
  if (word == "sigmoid") return GateForm::sigmoid;
  if (word == "identity") return GateForm::identity;
  throw Error::usage("act=" + word + ": silu, sigmoid or identity");
}

template <class Call>
std::optional<Call> first_row(const Call& call) {
  if (call.x.rows() < 2) return std::nullopt;
  Call first = call;
  first.x = call.x.row_range(0, 1);
  first.gate = call.gate.row_range(0, 1);
  return first;
}

Filled gates_for(const CaseId& id, const Arithmetic& arithmetic, std::size_t columns) {
  return filled(arithmetic, id.input(),
                {.rows = id.number("m", 1), .columns = columns, .seed = id.seed() + 1});
}

class GatedNormOperands final : public Operands<GatedNormCall> {
 public:
  explicit GatedNormOperands(const CaseId& id)
      : group_(id.number("n", 1)),
        gate_first_(id.number("first", 0) != 0),
        gate_form_(gate_form_of(id, "silu")),
        form_(id.word("form", "last") == "last" ? NormForm::weight_last : NormForm::weight_inside),
        fine_(group_ > 16 && id.input() == InputKind::zero_mean) {
    const std::size_t columns = group_ * id.number("groups", 1);
    x_ = filled(arithmetic, id.input(), {.rows = id.number("m", 1), .columns = columns, .seed = id.seed()});
    for (double& value : x_.values)
      value = arithmetic.round(value * std::ldexp(1.0, -static_cast<int>(id.number("down", 0))));
    gate_ = gates_for(id, arithmetic, columns);
    // Mamba-2's weight has a number for each column, Gated DeltaNet's one for each of a head.
    const bool whole = id.word("w", "group") == "row";
    weight_ = std::make_shared<MadeWeight>(
        weight_form(id.form()), InputKind::positive_mean,
        FillOptions{.rows = 1, .columns = whole ? columns : group_, .seed = id.seed() + 100});
  }
  GatedNormCall call(Ops& ops) const override {
    return {.x = upload(ops, x_),
            .gate = upload(ops, gate_),
            .weight = weight_->view(),
            .epsilon = 1e-6,
            .group = group_,
            .gate_first = gate_first_,
            .gate_form = gate_form_,
            .form = form_};
  }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.rows = x_.rows, .columns = x_.columns, .fine_digits = fine_};
    y.values = wide.download(run_reference(wide, call(wide)));
    const double factor = accumulation_factor(group_) / 2 + 5 + (gate_first_ ? 20 : 10);
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      y.per_roundoff.push_back(factor * std::fabs(y.values[i]));
      // A norm's factor is 1 / √ε at the most.
      y.absolute.push_back(kFlushed * 1e3 * (1 + std::fabs(x_.values[i])) * (1 + std::fabs(gate_.values[i])));
    }
    return {std::move(y)};
  }
  std::optional<GatedNormCall> first_token(const GatedNormCall& call) const override {
    return first_row(call);
  }
  bool spoil_last_token(GatedNormCall& call) const override {
    if (x_.rows < 2) return false;
    fill_row_with_nan(call.gate, x_.rows - 1);
    return true;
  }
  double flops() const override { return 15.0 * static_cast<double>(x_.values.size()); }
  double bytes() const override { return 12.0 * static_cast<double>(x_.values.size()); }

 private:
  std::size_t group_;
  bool gate_first_;
  GateForm gate_form_;
  NormForm form_;
  bool fine_;
  Filled x_, gate_;
  MadeWeightPtr weight_;
};

class GatedNormCases final : public OpCases<GatedNormCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Shape {
      std::uint64_t m, n, groups;
      std::string_view weight;
    };
    for (const Shape& s : {Shape{0, 8, 2, "group"},
                           {1, 128, 4, "group"},
                           {3, 61, 3, "group"},
                           {2, 96, 2, "row"},
                           {5, 768, 1, "row"}}) {
      for (const std::uint64_t first : {0, 1}) {
        for (const std::string_view act : {"silu", "sigmoid"}) {
          for (const InputKind kind : {InputKind::zero_mean, InputKind::heavy_tailed, InputKind::signature})
            cases.push_back(CaseId("gated_norm", "F32")
                                .with("m", s.m)
                                .with("n", s.n)
                                .with("groups", s.groups)
                                .with("w", s.weight)
                                .with("first", first)
                                .with("act", act)
                                .with("form", first != 0 ? "inside" : "last")
                                .with(kind));
        }
      }
    }
    cases.push_back(sized(3, 96).with("down", 11));  // a small ε shows where x is small
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    if (size == "n") return {sized(3, value)};
    if (size == "elements") return {sized((value + 63) / 64, 64)};
    return {};
  }
  std::vector<CaseId> perf_grid() const override { return {sized(512, 128).with("groups", 32)}; }
  std::unique_ptr<Operands<GatedNormCall>> make(const CaseId& id) const override {
    if (id.number("n", 1) == 0) throw Error::usage("n=0: a mean of nothing");
    return std::make_unique<GatedNormOperands>(id);
  }

 private:
  static CaseId sized(std::uint64_t m, std::uint64_t n) {
    return CaseId("gated_norm", "F32").with("m", m).with("n", n).with(InputKind::zero_mean);
  }
};

class OutputGateOperands final : public Operands<OutputGateCall> {
 public:
  explicit OutputGateOperands(const CaseId& id)
      : form_(gate_form_of(id, "sigmoid")),
        fine_(form_ != GateForm::identity && id.input() == InputKind::zero_mean) {
    const std::size_t gates = id.number("n", 1);
    x_ = filled(arithmetic, id.input(),
                {.rows = id.number("m", 1), .columns = gates * id.number("width", 1), .seed = id.seed()});
    gate_ = gates_for(id, arithmetic, gates);
  }
  OutputGateCall call(Ops& ops) const override { return {upload(ops, x_), upload(ops, gate_), form_}; }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.rows = x_.rows, .columns = x_.columns, .fine_digits = fine_};
    y.values = wide.download(run_reference(wide, call(wide)));
    const std::size_t width = gate_.columns == 0 ? 1 : x_.columns / gate_.columns;
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      y.per_roundoff.push_back(9 * std::fabs(y.values[i]));
      y.absolute.push_back(kFlushed * (1 + std::fabs(x_.values[i])) *
                           (1 + std::fabs(gate_.values[i / width])));
    }
    if (form_ == GateForm::identity) demand_equality(y);
    return {std::move(y)};
  }
  std::optional<OutputGateCall> first_token(const OutputGateCall& call) const override {
    return first_row(call);
  }
  bool spoil_last_token(OutputGateCall& call) const override {
    if (x_.rows < 2) return false;
    fill_row_with_nan(call.gate, x_.rows - 1);
    return true;
  }
  double flops() const override {
    return static_cast<double>(x_.values.size()) + 9.0 * static_cast<double>(gate_.values.size());
  }
  double bytes() const override {
    return 8.0 * static_cast<double>(x_.values.size()) + 4.0 * static_cast<double>(gate_.values.size());
  }

 private:
  GateForm form_;
  bool fine_;
  Filled x_, gate_;
};

class OutputGateCases final : public OpCases<OutputGateCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Shape {
      std::uint64_t m, gates, width;
    };
    // A gate for each number, for a head, for the row.
    for (const Shape& s : {Shape{0, 8, 1}, {1, 96, 1}, {3, 7, 64}, {5, 3, 19}, {4, 1, 131}, {9, 77, 1}}) {
      for (const std::string_view act : {"sigmoid", "silu", "identity"}) {
        for (const InputKind kind : {InputKind::zero_mean, InputKind::heavy_tailed, InputKind::large})
          cases.push_back(sized(s.m, s.gates, s.width).with("act", act).with(kind));
      }
    }
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    if (size == "n") return {sized(3, value, 1).with(InputKind::zero_mean)};
    if (size == "width") return {sized(3, 2, value).with(InputKind::zero_mean)};
    if (size == "elements") return {sized((value + 63) / 64, 64, 1).with(InputKind::zero_mean)};
    return {};
  }
  std::vector<CaseId> perf_grid() const override { return {sized(512, 4096, 1).with(InputKind::zero_mean)}; }
  std::unique_ptr<Operands<OutputGateCall>> make(const CaseId& id) const override {
    if (id.number("n", 1) == 0) throw Error::usage("n=0: no gates");
    return std::make_unique<OutputGateOperands>(id);
  }

 private:
  static CaseId sized(std::uint64_t m, std::uint64_t gates, std::uint64_t width) {
    CaseId id("output_gate", "F32");
    return id.with("m", m).with("n", gates).with("width", width);
  }
};

}  // namespace

template <>
const OpCases<GatedNormCall>& cases_of<GatedNormCall>() {
  static const GatedNormCases cases;
  return cases;
}
template <>
const OpCases<OutputGateCall>& cases_of<OutputGateCall>() {
  static const OutputGateCases cases;
  return cases;
}

}  // namespace assay
