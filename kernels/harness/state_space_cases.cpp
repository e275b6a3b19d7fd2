// state_space, token by token or over chunks of them: what rounding may do to a recurrence.
//
// Every element of a state is a recurrence of its own, h ← κ h + Δ x B with κ = exp(-a Δ) ≤ 1, which forgets its errors
// as it forgets all else. Of the sizes that are summed, M ← κ M + |Δ x B|. With Δ = softplus(z) off by (8 + |z|) u and a
// by one, exponents are off by (10 + |z|) a Δ u each, all of them to one side at the worst; other errors are independent
// from token to token, and so add up as their squares do, roundings by themselves fourfold, as in λ (measure.h; of a
// sum over the state's columns, Λ of one over a chunk's tokens). Unit: u.
//
//   N ← κ (N + (10 + |z|) a Δ M)
//   E² ← (κ E)² + (24 M + (12 + |z|) |Δ x B|)²
//   state   E + N + Λ M
//   y       Σ |C| (E + N) + (λ + Λ + 8) Σ |C| M + 2 |D x|
//
// What exponentials flush is 2^-126 of every term.
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/made_states.h"
#include "kernels/harness/made_weight.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

// The recurrence of one head in float64, with what its numbers may be off by.
class SpaceErrors {
 public:
  // `rates`: exp(A_log), one or one a column of the state.
  SpaceErrors(const StateSpaceCall& call, std::size_t head, std::span<const double> rates, double skip,
              double bias)
      : call_(call),
        head_(head),
        rates_(rates),
        skip_(skip),
        bias_(bias),
        chunk_(accumulation_factor(kScanChunk)),
        lambda_(accumulation_factor(call.state) + chunk_ + 8) {}

  void begin(const SequenceState& sequence) {
    const std::size_t count = call_.head_dim * call_.state;
    m_.assign(count, 0);
    for (std::size_t p = 0; p < call_.head_dim && !sequence.before.empty(); ++p) {
      const double* h = sequence.before.row<double>(head_ * call_.head_dim + p);
      for (std::size_t n = 0; n < call_.state; ++n) m_[p * call_.state + n] = std::fabs(h[n]);
    }
    n_.assign(count, 0);
    e2_.assign(count, 0);
    terms_ = count == 0 ? 0 : *std::max_element(m_.begin(), m_.end());
  }

  // What y of row t may be off by, in units of u.
  void step(std::size_t t, double* error) {
    const double z = std::fabs(call_.step.row<double>(t)[head_] + bias_);
    const double size =
        std::clamp(softplus(call_.step.row<double>(t)[head_] + bias_), call_.least_step, call_.most_step);
    const std::size_t group = head_ / (call_.heads / call_.groups) * call_.state;
    const double *b = call_.b.row<double>(t) + group, *c = call_.c.row<double>(t) + group;
    double largest = 0;
    for (std::size_t p = 0; p < call_.head_dim; ++p) {
      const double x = call_.x.row<double>(t)[head_ * call_.head_dim + p];
      error[p] = 2 * std::fabs(skip_ * x);
      for (std::size_t n = 0; n < call_.state; ++n) {
        const std::size_t i = p * call_.state + n;
        const double exponent = rates_[rates_.size() == 1 ? 0 : n] * size, kept = std::exp(-exponent);
        const double in = std::fabs(size * x * b[n]);
        n_[i] = kept * (n_[i] + (10 + z) * exponent * m_[i]);
        m_[i] = kept * m_[i] + in;
        const double own = 24 * m_[i] + (12 + z) * in;
        e2_[i] = kept * kept * e2_[i] + own * own;
        error[p] += std::fabs(c[n]) * (std::sqrt(e2_[i]) + n_[i] + lambda_ * m_[i]);
        largest = std::max(largest, in * (1 + std::fabs(c[n])));
      }
    }
    terms_ += largest;
  }
  double state_error(std::size_t p, std::size_t n) const {
    const std::size_t i = p * call_.state + n;
    return std::sqrt(e2_[i]) + n_[i] + chunk_ * m_[i];
  }
  double flushed() const { return kFlushed * static_cast<double>(call_.state) * (1 + terms_); }

 private:
  const StateSpaceCall& call_;
  std::size_t head_;
  std::span<const double> rates_;
  double skip_, bias_, chunk_, lambda_, terms_ = 0;
  std::vector<double> m_, n_, e2_;  // [head_dim, state]
};

class StateSpaceOperands final : public Operands<StateSpaceCall> {
 public:
  explicit StateSpaceOperands(const CaseId& id)
      : groups_(id.number("groups", 1)),
        heads_(groups_ * id.number("share", 1)),
        dim_(id.number("p", 8)),
        state_(id.number("n", 16)),
        by_column_(id.word("decay", "head") == "column"),
        limited_(id.number("limits", 0) != 0),
        form_(id.word("form", "recurrent") == "chunked" ? ScanForm::chunked : ScanForm::recurrent),
        fine_(id.input() == InputKind::zero_mean),
        states_(id, arithmetic, heads_ * dim_, state_) {
    std::uint64_t seed = id.seed();
    const auto made = [&](InputKind kind, std::size_t columns) {
      return filled(arithmetic, kind, {.rows = states_.tokens(), .columns = columns, .seed = seed++});
    };
    x_ = made(id.input(), heads_ * dim_);
    b_ = made(id.input(), groups_ * state_);
    c_ = made(id.input(), groups_ * state_);
    step_ = made(InputKind::zero_mean, heads_);
    for (double& value : step_.values) value = arithmetic.round(value * 2 - 3);
    const auto vector = [&](std::size_t rows, std::size_t columns) {
      return std::make_shared<MadeWeight>(weight_form(id.form()), InputKind::zero_mean,
                                          FillOptions{.rows = rows, .columns = columns, .seed = seed++});
    };
    decay_log_ = vector(heads_, by_column_ ? state_ : 1);
    skip_ = vector(1, heads_);
    step_bias_ = vector(1, heads_);
  }

  StateSpaceCall call(Ops& ops) const override {
    StateSpaceCall call = {.x = upload(ops, x_),
                           .b = upload(ops, b_),
                           .c = upload(ops, c_),
                           .step = upload(ops, step_),
                           .decay_log = decay_log_->view(),
                           .skip = skip_->view(),
                           .step_bias = step_bias_->view(),
                           .heads = heads_,
                           .head_dim = dim_,
                           .groups = groups_,
                           .state = state_,
                           .form = form_,
                           .sequences = states_.states(ops)};
    if (limited_) {
      call.least_step = 0.03125;
      call.most_step = 0.125;
    }
    return call;
  }

  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    const StateSpaceCall right = call(wide);
    TruthPart y = {.rows = x_.rows, .columns = x_.columns, .fine_digits = fine_};
    y.values = wide.download(run_reference(wide, right));
    y.per_roundoff.resize(y.values.size());
    y.absolute.resize(y.values.size());
    TruthPart states = {.name = "states", .columns = state_, .fine_digits = fine_};
    for (const Matrix& state : states_after(right)) {
      const std::vector<double> values = wide.download(state);
      states.rows += state.rows();
      states.values.insert(states.values.end(), values.begin(), values.end());
    }
    states.per_roundoff.resize(states.values.size());
    states.absolute.resize(states.values.size());
    for (std::size_t head = 0; head < heads_; ++head) errors_of_head(right, head, y, states);
    Truth truth = {std::move(y)};
    if (states.rows != 0) truth.push_back(std::move(states));
    return truth;
  }

  std::optional<StateSpaceCall> first_token(const StateSpaceCall& call) const override {
    return first_sequence_of(call);
  }
  std::optional<StateSpaceCall> first_chunk(const StateSpaceCall& call) const override {
    return first_tokens_of(call, 1);
  }
  bool spoil_last_token(StateSpaceCall& call) const override {
    if (x_.rows < 2) return false;
    fill_row_with_nan(call.x, x_.rows - 1);
    return true;
  }
  double flops() const override { return 5.0 * static_cast<double>(x_.values.size() * state_); }
  double bytes() const override {
    const std::size_t inputs =
        2 * x_.values.size() + b_.values.size() + c_.values.size() + step_.values.size();
    return 4.0 * (static_cast<double>(inputs) + states_.elements());
  }

 private:
  void errors_of_head(const StateSpaceCall& call, std::size_t head, TruthPart& y, TruthPart& states) const {
    const std::vector<float> log = decay_log_->values();
    const std::size_t each = log.size() / heads_;
    std::vector<double> rates;
    for (std::size_t i = 0; i < each; ++i)
      rates.push_back(std::exp(static_cast<double>(log[head * each + i])));
    SpaceErrors errors(call, head, rates, skip_->values()[head], step_bias_->values()[head]);
    std::size_t state_row = head * dim_;
    for (const SequenceState& sequence : call.sequences) {
      errors.begin(sequence);
      for (std::size_t t = 0; t < sequence.tokens; ++t) {
        const std::size_t at = (sequence.first + t) * y.columns + head * dim_;
        errors.step(sequence.first + t, &y.per_roundoff[at]);
        std::fill_n(&y.absolute[at], dim_, errors.flushed());
        if (t + sequence.after.size() < sequence.tokens) continue;
        for (std::size_t p = 0; p < dim_; ++p) {
          for (std::size_t n = 0; n < state_; ++n) {
            states.per_roundoff[(state_row + p) * state_ + n] = errors.state_error(p, n);
            states.absolute[(state_row + p) * state_ + n] = errors.flushed();
          }
        }
        state_row += heads_ * dim_;
      }
    }
  }

  std::size_t groups_, heads_, dim_, state_;
  bool by_column_, limited_;
  ScanForm form_;
  bool fine_;
  MadeStates states_;
  Filled x_, b_, c_, step_;
  MadeWeightPtr decay_log_, skip_, step_bias_;
};

class StateSpaceCases final : public OpCases<StateSpaceCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Shape {
      std::uint64_t m, seqs, groups, share, p, n, kept;
      bool past;
    };
    // Nothing, decoding, a prompt, one that goes on, some at once, states behind several tokens; more than a chunk;
    // Mamba's channels of their own.
    for (const Shape& s : {Shape{0, 1, 1, 1, 8, 8, 1, false},
                           {1, 1, 2, 2, 8, 24, 1, true},
                           {7, 1, 1, 3, 12, 7, 1, false},
                           {5, 4, 2, 1, 16, 16, 1, true},
                           {6, 1, 1, 2, 33, 9, 4, true},
                           {9, 1, 1, 21, 1, 16, 1, true},
                           {70, 2, 1, 2, 20, 16, 1, true},
                           {131, 1, 1, 1, 35, 32, 3, false}}) {
      for (const std::string_view decay : {"head", "column"}) {
        for (const std::string_view form : {"recurrent", "chunked"}) {
          for (const InputKind kind :
               {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed})
            cases.push_back(stateful_case("state_space", s.m, s.seqs, s.past, s.kept)
                                .with("groups", s.groups)
                                .with("share", s.share)
                                .with("p", s.p)
                                .with("n", s.n)
                                .with("decay", decay)
                                .with("form", form)
                                .with(kind));
        }
      }
    }
    return cases;
  }
  std::vector<CaseId> always() const override {
    std::vector<CaseId> cases;
    for (const std::string_view form : {"recurrent", "chunked"}) {
      cases.push_back(sized(67, 16, 16, form).with("limits", 1));
      cases.push_back(sized(40, 64, 128, form));  // Mamba-2's head
    }
    for (CaseId& id : cases) id.with(InputKind::zero_mean);
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    std::vector<CaseId> cases;
    for (const std::string_view decay : {"head", "column"}) {
      std::optional<CaseId> id;
      for (const std::string_view form : {"recurrent", "chunked"}) {
        if (size == "tokens")
          cases.push_back(sized(value, 16, 16, form).with("decay", decay).with(InputKind::zero_mean));
      }
      if (size == "p") id = sized(5, value, 16, "chunked");
      if (size == "n") id = sized(5, 16, value, "recurrent");
      if (id) cases.push_back(id->with("decay", decay).with(InputKind::zero_mean));
    }
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    std::vector<CaseId> cases;
    for (const std::uint64_t m : {1, 512})
      cases.push_back(stateful_case("state_space", m, 1, true)
                          .with("groups", 1)
                          .with("share", 64)
                          .with("p", 64)
                          .with("n", 128)
                          .with(InputKind::zero_mean));
    return cases;
  }
  std::unique_ptr<Operands<StateSpaceCall>> make(const CaseId& id) const override {
    for (const std::string_view size : {"groups", "share", "p", "n"}) {
      if (id.number(size, 1) == 0) throw Error::usage("a state space of nothing");
    }
    return std::make_unique<StateSpaceOperands>(id);
  }

 private:
  static CaseId sized(std::uint64_t tokens, std::uint64_t dim, std::uint64_t state, std::string_view form) {
    return stateful_case("state_space", tokens, 1, true)
        .with("groups", 1)
        .with("share", 2)
        .with("p", dim)
        .with("n", state)
        .with("form", form);
  }
};

}  // namespace

template <>
const OpCases<StateSpaceCall>& cases_of<StateSpaceCall>() {
  static const StateSpaceCases cases;
  return cases;
}

}  // namespace assay
