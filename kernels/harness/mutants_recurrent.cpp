#include "kernels/harness/mutants_recurrent.h"

#include <utility>

namespace assay {
namespace {

// Every number of x through `change`; x itself belongs to others.
Matrix changed(ReferenceOps& ops, const Matrix& x, const std::function<double(double)>& change) {
  std::vector<double> values = ops.download(x);
  for (double& value : values) value = change(value);
  return ops.upload(values, x.rows(), x.columns());
}
// Row t is what row t - 1 was, within its sequence.
Matrix one_late(ReferenceOps& ops, const Matrix& x, const std::vector<SequenceState>& sequences) {
  const Matrix late = changed(ops, x, [](double value) { return value; });
  for (const SequenceState& s : sequences) {
    if (s.tokens > 1) ops.store({.base = late}, s.first + 1, x.row_range(s.first, s.tokens - 1));
    std::fill_n(late.row<float>(s.first), late.columns(), 0.0F);
  }
  return late;
}

// What any operation that keeps a state may do wrong with it.
template <class Call>
void add_of_states(std::vector<Mutant<Call>>& all) {
  all.push_back(
      on_wrong_call<Call>("the state of the step before forgotten", "states", [](ReferenceOps&, Call& call) {
        for (SequenceState& s : call.sequences) s.before = Matrix();
      }));
  all.push_back(on_wrong_call<Call>(
      "the state not reset where a sequence begins", "states", [](ReferenceOps& ops, Call& call) {
        for (SequenceState& s : call.sequences) {
          const Matrix& shape = s.after.back();
          if (s.before.empty() && !shape.empty())
            s.before = ops.upload(std::vector<double>(shape.rows() * shape.columns(), 0.5), shape.rows(),
                                  shape.columns());
        }
      }));
}

// What does not forget: softplus of it is 0.
constexpr double kNever = -1e30;

}  // namespace

template <>
std::vector<Mutant<ConvolutionCall>> mutants_of() {
  std::vector<Mutant<ConvolutionCall>> all;
  all.push_back(on_wrong_call<ConvolutionCall>(
      "inputs a token late", "off by one",
      [](ReferenceOps& ops, ConvolutionCall& call) { call.x = one_late(ops, call.x, call.sequences); }));
  all.push_back(
      on_wrong_call<ConvolutionCall>("the activation turned over", "formula",
                                     [](ReferenceOps&, ConvolutionCall& call) { call.silu = !call.silu; }));
  add_of_states(all);
  return all;
}

template <>
std::vector<Mutant<DeltaRuleCall>> mutants_of() {
  std::vector<Mutant<DeltaRuleCall>> all;
  const auto add = [&](std::string_view name, std::string_view family,
                       std::function<void(ReferenceOps&, DeltaRuleCall&)> change) {
    all.push_back(on_wrong_call<DeltaRuleCall>(name, family, std::move(change)));
  };
  add("the decay of the other sign", "formula", [](ReferenceOps& ops, DeltaRuleCall& call) {
    call.decay = changed(ops, call.decay, [](double x) { return -x; });
  });
  add("the decay forgotten", "formula", [](ReferenceOps& ops, DeltaRuleCall& call) {
    call.decay = changed(ops, call.decay, [](double) { return kNever; });
  });
  add("lengths of q and k left as they are", "formula",
      [](ReferenceOps&, DeltaRuleCall& call) { call.norm_epsilon = 0; });
  add("the scale of queries forgotten", "formula",
      [](ReferenceOps&, DeltaRuleCall& call) { call.scale = 1; });
  add("beta always 1", "formula", [](ReferenceOps& ops, DeltaRuleCall& call) {
    call.beta = changed(ops, call.beta, [](double) { return 100.0; });
  });
  add("keys a token late", "off by one",
      [](ReferenceOps& ops, DeltaRuleCall& call) { call.k = one_late(ops, call.k, call.sequences); });
  add_of_states(all);
  return all;
}

template <>
std::vector<Mutant<StateSpaceCall>> mutants_of() {
  std::vector<Mutant<StateSpaceCall>> all;
  const auto add = [&](std::string_view name, std::string_view family,
                       std::function<void(ReferenceOps&, StateSpaceCall&)> change) {
    all.push_back(on_wrong_call<StateSpaceCall>(name, family, std::move(change)));
  };
  add("the step of the other sign", "formula", [](ReferenceOps& ops, StateSpaceCall& call) {
    call.step = changed(ops, call.step, [](double x) { return -x; });
  });
  add("B and C exchanged", "formula", [](ReferenceOps&, StateSpaceCall& call) { std::swap(call.b, call.c); });
  add("inputs a token late", "off by one",
      [](ReferenceOps& ops, StateSpaceCall& call) { call.x = one_late(ops, call.x, call.sequences); });
  add_of_states(all);
  return all;
}

template <>
std::vector<Mutant<GatedNormCall>> mutants_of() {
  std::vector<Mutant<GatedNormCall>> all;
  all.push_back(on_wrong_call<GatedNormCall>(
      "the gate forgotten", "formula", [](ReferenceOps& ops, GatedNormCall& call) {
        const double open = call.gate_form == GateForm::silu ? 1.2784645427610738 : 100;  // act(open) is 1
        call.gate = changed(ops, call.gate, [open](double) { return open; });
      }));
  all.push_back(on_wrong_call<GatedNormCall>(
      "the gate on the norm's other side", "formula",
      [](ReferenceOps&, GatedNormCall& call) { call.gate_first = !call.gate_first; }));
  all.push_back(on_wrong_call<GatedNormCall>(
      "the norm over the whole row", "groups",
      [](ReferenceOps&, GatedNormCall& call) { call.group = call.x.columns(); }));
  return all;
}

template <>
std::vector<Mutant<OutputGateCall>> mutants_of() {
  std::vector<Mutant<OutputGateCall>> all;
  all.push_back(on_wrong_call<OutputGateCall>(
      "the gate forgotten", "formula", [](ReferenceOps& ops, OutputGateCall& call) {
        const double open = call.form == GateForm::sigmoid    ? 100
                            : call.form == GateForm::identity ? 1
                                                              : 1.2784645427610738;
        call.gate = changed(ops, call.gate, [open](double) { return open; });
      }));
  all.push_back(on_wrong_call<OutputGateCall>(
      "the gate of the token before", "off by one", [](ReferenceOps& ops, OutputGateCall& call) {
        const std::vector<SequenceState> whole = {
            {.first = 0, .tokens = call.gate.rows(), .before = {}, .after = {}}};
        call.gate = one_late(ops, call.gate, whole);
      }));
  all.push_back(
      on_wrong_call<OutputGateCall>("the gate as it is", "formula", [](ReferenceOps&, OutputGateCall& call) {
        call.form = call.form == GateForm::identity ? GateForm::sigmoid : GateForm::identity;
      }));
  return all;
}

}  // namespace assay
