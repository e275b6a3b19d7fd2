// Faults of recurrent layers.
#include <limits>
#include <utility>

#include "core/numeric/codec.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/harness/mutants.h"

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
    if (s.tokens > 0) std::fill_n(late.row<float>(s.first), late.columns(), 0.0F);
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

// The right kernel's result, a little too large.
template <class Call>
Mutant<Call> scaled_result() {
  return {.name = "all × (1 + size)",
          .family = "precision",
          .unit = "× 1 +",
          .sizes = {0x1p-8, 0x1p-12, 0x1p-16, 0x1p-18, 0x1p-20, 0x1p-22},
          .run = [](ReferenceOps& ops, const Call& call, double size) {
            return changed(ops, run_reference(ops, call), [size](double x) { return x * (1 + size); });
          }};
}
// States that are kept in bfloat16, as a cache of keys and values may be.
template <class Call>
Mutant<Call> states_in_bf16() {
  return {.name = "states in BF16",
          .family = "silent BF16",
          .run = [](ReferenceOps& ops, const Call& call, double) {
            Matrix y = run_reference(ops, call);
            for (const SequenceState& s : call.sequences) {
              for (const Matrix& state : s.after) {
                for (std::size_t r = 0; r < state.rows(); ++r) {
                  for (std::size_t c = 0; c < state.columns(); ++c) {
                    float& value = state.row<float>(r)[c];
                    value = decode(kBF16, encode(kBF16, value, Overflow::special));
                  }
                }
              }
            }
            return y;
          }};
}
// Where states behind several tokens are asked for (speculative decoding), all are the last one.
template <class Call>
Mutant<Call> last_state_for_all() {
  return {.name = "the last state in place of those before it",
          .family = "states",
          .run = [](ReferenceOps& ops, const Call& call, double) {
            Matrix y = run_reference(ops, call);
            for (const SequenceState& s : call.sequences) {
              for (const Matrix& state : s.after) ops.store({.base = state}, 0, s.after.back());
            }
            return y;
          }};
}
// Of each run of `width` columns, all are the first.
Matrix first_of_each(ReferenceOps& ops, const Matrix& x, std::size_t width) {
  std::vector<double> values = ops.download(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = i % x.columns();
    values[i] = values[i - column % width];
  }
  return ops.upload(values, x.rows(), x.columns());
}
// Heads of x that `share` others have each, dealt out by turns: place h gets head h mod their number.
Matrix by_turns(ReferenceOps& ops, const Matrix& x, std::size_t heads, std::size_t share) {
  const std::vector<double> values = ops.download(x);
  const std::size_t width = x.columns() / heads;
  std::vector<double> turned;
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t h = 0; h < heads * share; ++h) {
      const auto* from = &values[r * x.columns() + h % heads * width];
      turned.insert(turned.end(), from, from + width);
    }
  }
  return ops.upload(turned, x.rows(), heads * share * width);
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
  all.push_back(on_wrong_call<ConvolutionCall>("the bias left out", "bias (25)",
                                               [](ReferenceOps&, ConvolutionCall& call) { call.bias = {}; }));
  add_of_states(all);
  all.push_back(last_state_for_all<ConvolutionCall>());
  all.push_back(scaled_result<ConvolutionCall>());
  all.push_back(without_last_piece<ConvolutionCall>(cpu::kWorthAThread));
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
  add("a decay a head where each channel has its own", "groups", [](ReferenceOps& ops, DeltaRuleCall& call) {
    if (call.decay.columns() != call.value_heads) call.decay = first_of_each(ops, call.decay, call.key_dim);
  });
  add("beta not doubled", "formula", [](ReferenceOps&, DeltaRuleCall& call) { call.beta_scale = 1; });
  add("the decay's floor ignored", "formula",
      [](ReferenceOps&, DeltaRuleCall& call) { call.decay_floor = 0; });
  add("heads of keys by turns", "groups", [](ReferenceOps& ops, DeltaRuleCall& call) {
    const std::size_t share = call.value_heads / call.key_heads;
    call.q = by_turns(ops, call.q, call.key_heads, share);
    call.k = by_turns(ops, call.k, call.key_heads, share);
    call.key_heads = call.value_heads;
  });
  add_of_states(all);
  all.push_back(states_in_bf16<DeltaRuleCall>());
  all.push_back(last_state_for_all<DeltaRuleCall>());
  all.push_back(scaled_result<DeltaRuleCall>());
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
  add("steps of any size", "formula", [](ReferenceOps&, StateSpaceCall& call) {
    call.least_step = 0;
    call.most_step = std::numeric_limits<double>::infinity();
  });
  all.push_back({.name = "the skip left out",
                 .family = "formula",
                 .run = [](ReferenceOps& ops, const StateSpaceCall& call, double) {
                   Matrix y = run_reference(ops, call);
                   const std::vector<double> skip = decode_vector(call.skip);
                   for (std::size_t r = 0; r < y.rows(); ++r) {
                     for (std::size_t c = 0; c < y.columns(); ++c)
                       y.row<float>(r)[c] -=
                           static_cast<float>(skip[c / call.head_dim]) * call.x.row<float>(r)[c];
                   }
                   return y;
                 }});
  add("groups by turns", "groups", [](ReferenceOps& ops, StateSpaceCall& call) {
    const std::size_t share = call.heads / call.groups;
    call.b = by_turns(ops, call.b, call.groups, share);
    call.c = by_turns(ops, call.c, call.groups, share);
    call.groups = call.heads;
  });
  add_of_states(all);
  all.push_back(states_in_bf16<StateSpaceCall>());
  all.push_back(last_state_for_all<StateSpaceCall>());
  all.push_back(scaled_result<StateSpaceCall>());
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
  all.push_back(on_wrong_call<GatedNormCall>("epsilon left out", "norms",
                                             [](ReferenceOps&, GatedNormCall& call) { call.epsilon = 0; }));
  all.push_back(scaled_result<GatedNormCall>());
  all.push_back(without_last_piece<GatedNormCall>(cpu::kWorthAThread));
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
  all.push_back(scaled_result<OutputGateCall>());
  all.push_back(without_last_piece<OutputGateCall>(cpu::kWorthAThread));
  return all;
}

}  // namespace assay
