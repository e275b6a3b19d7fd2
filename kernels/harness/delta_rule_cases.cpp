// delta_rule, token by token or over chunks of them: what rounding may do to a recurrence.
//
// Of each value head, each column i of the state is a recurrence of its own, s ← D s; u = β (v - kᵀs); s ← s + k u, with
// D = diag(exp g). An error e of s becomes (I - β k kᵀ) D e, no longer than ν max(D) ‖e‖ with ν = max(1, |1 - β‖k‖²|), and
// each token adds one of its own. Those of different tokens are independent, and so add up as their squares do:
//
//   E² ← (ν max(D) E)² + L²
//
// Of the sizes that are summed, M ← D M + |k| |u| (from |S| on), a chunk's sums over j < i as much as kᵀS: both forms
// have the same budget. λ is that of a sum of key_dim terms (measure.h), Λ that of a chunk's; roundings by themselves
// count fourfold, as in λ. Unit: u.
//
//   g = -A softplus(z) is off by (9 + |z|) |g|: D s by 4 + |g| (9 + |z|) of each element
//   exponents within a chunk are differences, rounded:  N ← D (N + |g| M)
//   q and k of length 1 are off by (λ/2 + 5) each, β by 8
//   u     ℓ = β ((3/2 λ + Λ + 64) |k|ᵀM + |k|ᵀN + 8 |v|) + 48 |u|
//   L     = 4 ‖(4 + |g| (9 + |z|)) D M‖ + ‖k‖ ℓ + 8 ‖M‖
//   state   E + 16 M + N
//   o       ‖q‖ E + (3/2 λ + Λ + 16) |q|ᵀM + |q|ᵀN
//
// E is the length of a whole column's error, which a single element seldom has: error/budget is smaller here than in
// plain sums, by the root of key_dim at the most. What exponentials flush is 2^-126 of every term.
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/made_states.h"
#include "kernels/harness/made_weight.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

constexpr double kNoLength = 0;  // norm_epsilon: q and k have length 1 already

// The recurrence of one value head in float64, with what its numbers may be off by.
class DeltaErrors {
 public:
  DeltaErrors(const DeltaRuleCall& call, std::size_t head, double rate, std::span<const double> bias)
      : call_(call),
        head_(head),
        rate_(rate),
        bias_(bias),
        keys_(call.key_dim),
        values_(call.value_dim),
        lambda_(1.5 * accumulation_factor(call.key_dim) + accumulation_factor(kScanChunk)) {}

  void begin(const SequenceState& sequence) {
    s_.assign(keys_ * values_, 0);
    for (std::size_t c = 0; c < keys_ && !sequence.before.empty(); ++c)
      std::copy_n(sequence.before.row<double>(head_ * keys_ + c), values_, &s_[c * values_]);
    m_ = s_;
    for (double& m : m_) m = std::fabs(m);
    n_.assign(keys_ * values_, 0);
    e2_.assign(values_, 0);
    terms_ = m_.empty() ? 0 : *std::max_element(m_.begin(), m_.end());
  }

  // What o of row t may be off by, in units of u.
  void step(std::size_t t, double* error) {
    read(t);
    std::vector<double> local(values_);  // squares of what D s is off by
    double most = 0, length = 0;
    for (std::size_t c = 0; c < keys_; ++c) {
      const std::size_t g = g_.size() == 1 ? 0 : c;
      const double kept = std::exp(g_[g]), off = 4 + std::fabs(g_[g]) * (9 + std::fabs(z_[g]));
      most = std::max(most, kept);
      length += k_[c] * k_[c];
      for (std::size_t i = c * values_; i < (c + 1) * values_; ++i) {
        s_[i] *= kept;
        n_[i] = kept * (n_[i] + std::fabs(g_[g]) * m_[i]);
        m_[i] *= kept;
        local[i - c * values_] += off * m_[i] * off * m_[i];
      }
    }
    const double grown = most * std::max(1.0, std::fabs(1 - beta_ * length));
    double largest = 0;
    for (std::size_t i = 0; i < values_; ++i) {
      const Sums seen = sums(k_, i);
      const double u = beta_ * (v_[i] - seen.s);
      largest = std::max(largest, std::fabs(u));
      const double of_u =
          beta_ * ((lambda_ + 64) * seen.m + seen.n + 8 * std::fabs(v_[i])) + 48 * std::fabs(u);
      double stored = 0;
      for (std::size_t c = 0; c < keys_; ++c) {
        s_[c * values_ + i] += k_[c] * u;
        double& m = m_[c * values_ + i];
        m += std::fabs(k_[c] * u);
        stored += m * m;
      }
      const double own = 4 * std::sqrt(local[i]) + std::sqrt(length) * of_u + 8 * std::sqrt(stored);
      e2_[i] = grown * grown * e2_[i] + own * own;
      const Sums given = sums(q_, i);
      error[i] = std::sqrt(given.length * e2_[i]) + (lambda_ + 16) * given.m + given.n;
    }
    terms_ += largest;
  }
  double state_error(std::size_t c, std::size_t i) const {
    return std::sqrt(e2_[i]) + 16 * m_[c * values_ + i] + n_[c * values_ + i];
  }
  double flushed() const { return kFlushed * static_cast<double>(keys_) * (1 + terms_); }

 private:
  struct Sums {
    double s = 0, m = 0, n = 0, length = 0;  // Σ x s, Σ |x| m, Σ |x| n, Σ x²
  };
  Sums sums(const std::vector<double>& x, std::size_t i) const {
    Sums sums;
    for (std::size_t c = 0; c < keys_; ++c) {
      sums.s += x[c] * s_[c * values_ + i];
      sums.m += std::fabs(x[c]) * m_[c * values_ + i];
      sums.n += std::fabs(x[c]) * n_[c * values_ + i];
      sums.length += x[c] * x[c];
    }
    return sums;
  }
  std::vector<double> unit(const Matrix& x, std::size_t t, double scale) const {
    const double* row = x.row<double>(t) + head_ / (call_.value_heads / call_.key_heads) * keys_;
    std::vector<double> values(row, row + keys_);
    double square = call_.norm_epsilon;
    for (const double value : values) square += value * value;
    const double length = call_.norm_epsilon == kNoLength ? 1 : std::sqrt(square);
    for (double& value : values) value *= scale / length;
    return values;
  }
  void read(std::size_t t) {
    q_ = unit(call_.q, t, call_.scale);
    k_ = unit(call_.k, t, 1);
    const double* v = call_.v.row<double>(t) + head_ * values_;
    v_.assign(v, v + values_);
    beta_ = call_.beta_scale * logistic(call_.beta.row<double>(t)[head_]);
    g_.clear();
    z_.clear();
    for (std::size_t c = 0; c < bias_.size(); ++c) {
      const double z = call_.decay.row<double>(t)[head_ * bias_.size() + c] + bias_[c];
      const bool floored = call_.decay_floor != 0;
      z_.push_back(floored ? rate_ * z : z);
      g_.push_back(floored ? call_.decay_floor * logistic(rate_ * z) : -rate_ * softplus(z));
    }
  }

  const DeltaRuleCall& call_;
  std::size_t head_;
  double rate_;
  std::span<const double> bias_;
  std::size_t keys_, values_;
  double lambda_, beta_ = 0, terms_ = 0;
  std::vector<double> q_, k_, v_, g_, z_;
  std::vector<double> s_, m_, n_;  // [keys, values]
  std::vector<double> e2_;         // [values]
};

struct DeltaSizes {
  std::size_t key_heads, value_heads, key_dim, value_dim;
  bool by_channel;
  std::size_t decays() const { return value_heads * (by_channel ? key_dim : 1); }
};

class DeltaRuleOperands final : public Operands<DeltaRuleCall> {
 public:
  explicit DeltaRuleOperands(const CaseId& id)
      : sizes_{id.number("heads", 1), id.number("heads", 1) * id.number("share", 1), id.number("k", 16),
               id.number("v", 16), id.word("decay", "head") == "channel"},
        floor_(-static_cast<double>(id.number("floor", 0))),
        beta_scale_(static_cast<double>(id.number("beta", 1))),
        unit_(id.number("unit", 1) != 0),
        form_(id.word("form", "recurrent") == "chunked" ? ScanForm::chunked : ScanForm::recurrent),
        fine_(id.input() == InputKind::zero_mean),
        states_(id, arithmetic, sizes_.value_heads * sizes_.key_dim, sizes_.value_dim) {
    std::uint64_t seed = id.seed();
    const auto made = [&](InputKind kind, std::size_t columns) {
      return filled(arithmetic, kind, {.rows = states_.tokens(), .columns = columns, .seed = seed++});
    };
    q_ = made(id.input(), sizes_.key_heads * sizes_.key_dim);
    k_ = made(id.input(), sizes_.key_heads * sizes_.key_dim);
    v_ = made(id.input(), sizes_.value_heads * sizes_.value_dim);
    decay_ = made(InputKind::zero_mean, sizes_.decays());
    beta_ = made(InputKind::zero_mean, sizes_.value_heads);
    const double shorter = 1 / std::sqrt(static_cast<double>(sizes_.key_dim));
    for (Filled* x : {&q_, &k_}) {
      for (double& value : x->values) value = unit_ ? value : arithmetic.round(value * shorter);
    }
    // As models begin: A from 1 to 16, a step of 0.001 to 0.1; shifted, so that some heads forget at once.
    for (double& value : decay_.values) value = arithmetic.round(value * 2 - 3);
    const auto vector = [&](std::size_t columns) {
      return std::make_shared<MadeWeight>(weight_form(id.form()), InputKind::zero_mean,
                                          FillOptions{.rows = 1, .columns = columns, .seed = seed++});
    };
    decay_log_ = vector(sizes_.value_heads);
    decay_bias_ = vector(sizes_.decays());
  }

  DeltaRuleCall call(Ops& ops) const override {
    return {.q = upload(ops, q_),
            .k = upload(ops, k_),
            .v = upload(ops, v_),
            .decay = upload(ops, decay_),
            .beta = upload(ops, beta_),
            .decay_log = decay_log_->view(),
            .decay_bias = decay_bias_->view(),
            .decay_floor = floor_,
            .beta_scale = beta_scale_,
            .key_heads = sizes_.key_heads,
            .value_heads = sizes_.value_heads,
            .key_dim = sizes_.key_dim,
            .value_dim = sizes_.value_dim,
            .norm_epsilon = unit_ ? 1e-6 : kNoLength,
            .scale = 1 / std::sqrt(static_cast<double>(sizes_.key_dim)),
            .form = form_,
            .sequences = states_.states(ops)};
  }

  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    const DeltaRuleCall right = call(wide);
    TruthPart y = {.rows = v_.rows, .columns = v_.columns, .fine_digits = fine_};
    y.values = wide.download(run_reference(wide, right));
    y.per_roundoff.resize(y.values.size());
    y.absolute.resize(y.values.size());
    TruthPart states = {.name = "states", .columns = sizes_.value_dim, .fine_digits = fine_};
    for (const Matrix& state : states_after(right)) {
      const std::vector<double> values = wide.download(state);
      states.rows += state.rows();
      states.values.insert(states.values.end(), values.begin(), values.end());
    }
    states.per_roundoff.resize(states.values.size());
    states.absolute.resize(states.values.size());
    for (std::size_t head = 0; head < sizes_.value_heads; ++head) errors_of_head(right, head, y, states);
    Truth truth = {std::move(y)};
    if (states.rows != 0) truth.push_back(std::move(states));
    return truth;
  }

  std::optional<DeltaRuleCall> first_token(const DeltaRuleCall& call) const override {
    return first_sequence_of(call);
  }
  std::optional<DeltaRuleCall> first_chunk(const DeltaRuleCall& call) const override {
    return first_tokens_of(call, 1);
  }
  bool spoil_last_token(DeltaRuleCall& call) const override {
    if (v_.rows < 2) return false;
    fill_row_with_nan(call.v, v_.rows - 1);
    return true;
  }
  double flops() const override { return 7.0 * static_cast<double>(v_.values.size() * sizes_.key_dim); }
  double bytes() const override {
    const std::size_t inputs = q_.values.size() + k_.values.size() + 2 * v_.values.size() +
                               decay_.values.size() + beta_.values.size();
    return 4.0 * (static_cast<double>(inputs) + states_.elements());
  }

 private:
  void errors_of_head(const DeltaRuleCall& call, std::size_t head, TruthPart& y, TruthPart& states) const {
    const std::vector<float> log = decay_log_->values(), all_biases = decay_bias_->values();
    const std::size_t decays = sizes_.decays() / sizes_.value_heads;
    const std::vector<double> bias(all_biases.begin() + static_cast<std::ptrdiff_t>(head * decays),
                                   all_biases.begin() + static_cast<std::ptrdiff_t>((head + 1) * decays));
    DeltaErrors errors(call, head, std::exp(static_cast<double>(log[head])), bias);
    std::size_t state_row = head * sizes_.key_dim;
    for (const SequenceState& sequence : call.sequences) {
      errors.begin(sequence);
      for (std::size_t t = 0; t < sequence.tokens; ++t) {
        const std::size_t at = (sequence.first + t) * y.columns + head * sizes_.value_dim;
        errors.step(sequence.first + t, &y.per_roundoff[at]);
        std::fill_n(&y.absolute[at], sizes_.value_dim, errors.flushed());
        if (t + sequence.after.size() < sequence.tokens) continue;
        for (std::size_t c = 0; c < sizes_.key_dim; ++c) {
          for (std::size_t i = 0; i < sizes_.value_dim; ++i) {
            const std::size_t element = (state_row + c) * sizes_.value_dim + i;
            states.per_roundoff[element] = errors.state_error(c, i);
            states.absolute[element] = errors.flushed();
          }
        }
        state_row += sizes_.value_heads * sizes_.key_dim;
      }
    }
  }

  DeltaSizes sizes_;
  double floor_, beta_scale_;
  bool unit_;
  ScanForm form_;
  bool fine_;
  MadeStates states_;
  Filled q_, k_, v_, decay_, beta_;
  MadeWeightPtr decay_log_, decay_bias_;
};

class DeltaRuleCases final : public OpCases<DeltaRuleCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Shape {
      std::uint64_t m, seqs, heads, share, k, v, kept;
      bool past;
    };
    // Nothing, decoding, a prompt, one that goes on, some at once, states behind several tokens; more than a chunk.
    for (const Shape& s : {Shape{0, 1, 1, 1, 8, 8, 1, false},
                           {1, 1, 2, 2, 16, 24, 1, true},
                           {7, 1, 1, 3, 12, 7, 1, false},
                           {5, 4, 2, 1, 16, 16, 1, true},
                           {6, 1, 1, 2, 9, 33, 4, true},
                           {70, 2, 1, 2, 16, 20, 1, true},
                           {131, 1, 1, 1, 32, 35, 3, false}}) {
      for (const std::string_view decay : {"head", "channel"}) {
        for (const std::string_view form : {"recurrent", "chunked"}) {
          for (const InputKind kind :
               {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed})
            cases.push_back(stateful_case("delta_rule", s.m, s.seqs, s.past, s.kept)
                                .with("heads", s.heads)
                                .with("share", s.share)
                                .with("k", s.k)
                                .with("v", s.v)
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
      // Kimi Linear's decay has a floor; OLMo Hybrid's β is doubled; q and k whose lengths are 1 already; Qwen3-Next's head.
      cases.push_back(sized(67, 16, 16, form).with("decay", "channel").with("floor", 5));
      cases.push_back(sized(67, 12, 24, form).with("beta", 2));
      cases.push_back(sized(67, 16, 16, form).with("unit", 0));
      cases.push_back(sized(40, 128, 128, form));
    }
    for (CaseId& id : cases) id.with(InputKind::zero_mean);
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    std::vector<CaseId> cases;
    for (const std::string_view decay : {"head", "channel"}) {
      std::optional<CaseId> id;
      for (const std::string_view form : {"recurrent", "chunked"}) {
        if (size == "tokens")
          cases.push_back(sized(value, 16, 16, form).with("decay", decay).with(InputKind::zero_mean));
      }
      if (size == "v") id = sized(5, 16, value, "recurrent");
      if (size == "chunked v") id = sized(5, 16, value, "chunked");
      if (size == "k") id = sized(5, value, 16, "chunked");
      if (id) cases.push_back(id->with("decay", decay).with(InputKind::zero_mean));
    }
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    std::vector<CaseId> cases;
    for (const std::uint64_t m : {1, 512})
      cases.push_back(stateful_case("delta_rule", m, 1, true)
                          .with("heads", 16)
                          .with("share", 2)
                          .with("k", 128)
                          .with("v", 128)
                          .with(InputKind::zero_mean));
    return cases;
  }
  std::unique_ptr<Operands<DeltaRuleCall>> make(const CaseId& id) const override {
    for (const std::string_view size : {"heads", "share", "k", "v"}) {
      if (id.number(size, 1) == 0) throw Error::usage("a delta rule of nothing");
    }
    return std::make_unique<DeltaRuleOperands>(id);
  }

 private:
  static CaseId sized(std::uint64_t tokens, std::uint64_t keys, std::uint64_t values, std::string_view form) {
    return stateful_case("delta_rule", tokens, 1, true)
        .with("heads", 1)
        .with("share", 2)
        .with("k", keys)
        .with("v", values)
        .with("form", form);
  }
};

}  // namespace

template <>
const OpCases<DeltaRuleCall>& cases_of<DeltaRuleCall>() {
  static const DeltaRuleCases cases;
  return cases;
}

}  // namespace assay
