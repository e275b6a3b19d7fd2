// convolution: y = act(Σᵢ w[c, i] x[t - kernel + 1 + i, c] + b[c]).
//
// u is the roundoff of accumulators, λ that of a sum of kernel + 1 terms (measure.h). With z the sum and |z| that of
// its terms' sizes, z is off by λ u |z|; SiLU's slope is 1.1 at the most, and itself it is good to 8 u (elementwise):
//
//   λ |z|   or, activated,   1.1 λ |z| + 8 |y|
//
// States are copies of inputs: equality.
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/made_states.h"
#include "kernels/harness/made_weight.h"

namespace assay {
namespace {

class ConvolutionOperands final : public Operands<ConvolutionCall> {
 public:
  explicit ConvolutionOperands(const CaseId& id)
      : channels_(id.number("n", 1)),
        kernel_(id.number("k", 4)),
        silu_(id.word("act", "silu") == "silu"),
        exact_(id.input() == InputKind::exact),
        fine_(id.input() == InputKind::zero_mean && silu_),
        states_(id, arithmetic, kernel_ - 1, channels_) {
    x_ = filled(arithmetic, id.input(),
                {.rows = states_.tokens(), .columns = channels_, .terms = kernel_ + 1, .seed = id.seed()});
    const FillOptions options = {
        .rows = channels_, .columns = kernel_, .terms = kernel_ + 1, .seed = id.seed() + 100};
    const InputKind kind = exact_ ? InputKind::exact : InputKind::zero_mean;
    weight_ = std::make_shared<MadeWeight>(weight_form(id.form()), kind, options);
    if (id.number("bias", 0) != 0)
      bias_ = std::make_shared<MadeWeight>(
          weight_form(id.form()), kind,
          FillOptions{.rows = 1, .columns = channels_, .terms = kernel_ + 1, .seed = id.seed() + 200});
  }
  ConvolutionCall call(Ops& ops) const override {
    return {upload(ops, x_), weight_->view(), bias_ ? bias_->view() : WeightView{}, silu_,
            states_.states(ops)};
  }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    const ConvolutionCall right = call(wide);
    TruthPart y = {.rows = x_.rows, .columns = channels_, .fine_digits = fine_};
    y.values = wide.download(run_reference(wide, right));
    const std::vector<double> sizes = sizes_of_sums();
    const double lambda = accumulation_factor(kernel_ + 1);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      y.per_roundoff.push_back(silu_ ? 1.1 * lambda * sizes[i] + 8 * std::fabs(y.values[i])
                                     : lambda * sizes[i]);
      y.absolute.push_back(silu_ ? kFlushed * (1 + sizes[i]) : 0);
    }
    if (exact_ && !silu_) demand_equality(y);
    Truth truth = {std::move(y)};
    if (states_.sequences().empty()) return truth;
    TruthPart states = {.name = "states", .columns = channels_};
    for (const Matrix& state : states_after(right)) {
      const std::vector<double> values = wide.download(state);
      states.rows += state.rows();
      states.values.insert(states.values.end(), values.begin(), values.end());
    }
    demand_equality(states);
    truth.push_back(std::move(states));
    return truth;
  }
  std::optional<ConvolutionCall> first_token(const ConvolutionCall& call) const override {
    return first_sequence_of(call);
  }
  std::optional<ConvolutionCall> first_chunk(const ConvolutionCall& call) const override {
    return first_tokens_of(call, 1);
  }
  bool spoil_last_token(ConvolutionCall& call) const override {
    if (x_.rows < 2) return false;
    fill_row_with_nan(call.x, x_.rows - 1);
    return true;
  }
  double flops() const override {
    return static_cast<double>(x_.values.size()) * (2.0 * static_cast<double>(kernel_) + (silu_ ? 10 : 0));
  }
  double bytes() const override {
    return 8.0 * static_cast<double>(x_.values.size()) + 4.0 * states_.elements();
  }

 private:
  // |b| + Σ |w x|: the convolution itself, of sizes.
  std::vector<double> sizes_of_sums() const {
    const std::vector<float> w = weight_->values(),
                             b = bias_ ? bias_->values() : std::vector<float>(channels_);
    std::vector<double> sizes;
    for (const MadeStates::Sequence& s : states_.sequences()) {
      for (std::size_t t = 0; t < s.tokens; ++t) {
        for (std::size_t c = 0; c < channels_; ++c) {
          double sum = std::fabs(b[c]);
          for (std::size_t i = 0; i < kernel_; ++i) sum += std::fabs(w[c * kernel_ + i] * input(s, t + i, c));
          sizes.push_back(sum);
        }
      }
    }
    return sizes;
  }
  // Place 0 is the oldest of the state.
  double input(const MadeStates::Sequence& s, std::size_t place, std::size_t channel) const {
    if (place + 1 >= kernel_) return x_.values[(s.first + place + 1 - kernel_) * channels_ + channel];
    return s.before ? s.before->values[place * channels_ + channel] : 0;
  }

  std::size_t channels_, kernel_;
  bool silu_, exact_, fine_;
  MadeStates states_;
  Filled x_;
  MadeWeightPtr weight_, bias_;
};

class ConvolutionCases final : public OpCases<ConvolutionCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Shape {
      std::uint64_t m, seqs, n, k, kept;
      bool past;
    };
    // Nothing, decoding, a prompt, one that goes on, some at once; states behind several tokens; LFM2's kernel of 3,
    // one wider than the text.
    for (const Shape& s : {Shape{0, 1, 16, 4, 1, false},
                           {1, 1, 33, 4, 1, true},
                           {9, 1, 77, 4, 1, false},
                           {7, 3, 40, 4, 1, true},
                           {6, 1, 19, 4, 5, true},
                           {5, 2, 96, 3, 1, true},
                           {2, 1, 17, 8, 2, false},
                           {3, 1, 24, 1, 1, false}}) {
      for (const std::string_view act : {"silu", "none"}) {
        for (const std::uint64_t bias : {0, 1}) {
          for (const InputKind kind : {InputKind::zero_mean, InputKind::heavy_tailed,
                                       act == "silu" ? InputKind::large : InputKind::exact}) {
            if (s.k == 1 && s.past) continue;
            cases.push_back(stateful_case("convolution", s.m, s.seqs, s.past, s.kept)
                                .with("n", s.n)
                                .with("k", s.k)
                                .with("act", act)
                                .with("bias", bias)
                                .with(kind));
          }
        }
      }
    }
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    if (size == "n") return {sized(3, value)};
    if (size == "elements") return {sized((value + 63) / 64, 64)};
    return {};
  }
  std::vector<CaseId> perf_grid() const override { return {sized(1, 8192), sized(512, 8192)}; }
  std::unique_ptr<Operands<ConvolutionCall>> make(const CaseId& id) const override {
    if (id.number("n", 1) == 0 || id.number("k", 4) == 0) throw Error::usage("a convolution of nothing");
    return std::make_unique<ConvolutionOperands>(id);
  }

 private:
  static CaseId sized(std::uint64_t tokens, std::uint64_t channels) {
    return stateful_case("convolution", tokens, 1, true)
        .with("n", channels)
        .with("k", 4)
        .with("bias", 1)
        .with(InputKind::zero_mean);
  }
};

}  // namespace

template <>
const OpCases<ConvolutionCall>& cases_of<ConvolutionCall>() {
  static const ConvolutionCases cases;
  return cases;
}

}  // namespace assay
