#include "kernels/model_compare/model_mutants.h"

#include <any>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "kernels/harness/mutants.h"
#include "kernels/registry/calling_ops.h"

namespace assay {
namespace {

// A call's result may differ by this much, relative, for no other reason than rounding: local_ratio allows a
// tap twice its plain error and 4 u at the least, and short sums come to several u. An epsilon of 1e-6 left
// out of a mean square near 1 is such a fault: it cannot be told from rounding, and need not be.
constexpr double kIdle = 16 * 0x1p-24;

double relative_change(ReferenceOps& ops, const Matrix& right, const Matrix& wrong) {
  if (right.rows() != wrong.rows() || right.columns() != wrong.columns()) return HUGE_VAL;
  return compare_rows(ops.download(wrong), ops.download(right), std::max<std::size_t>(1, right.columns()), 0,
                      ops.arithmetic())
      .relative();
}
double relative_change(ReferenceOps& ops, const Routing& right, const Routing& wrong) {
  return right.experts != wrong.experts ? 1 : relative_change(ops, right.weights, wrong.weights);
}
double relative_change(ReferenceOps& ops, const QuantizedMatrix& right, const QuantizedMatrix& wrong) {
  return relative_change(ops, run_reference(ops, DequantizeCall{right}),
                         run_reference(ops, DequantizeCall{wrong}));
}

// The reference, but for one call of one operation; and a witness of which tap follows which call.
class PlantingOps final : public CallingOps<PlantingOps>, public TapListener {
 public:
  using CallingOps::CallingOps;

  template <class Call>
  void plant(const Mutant<Call>& mutant, std::size_t call) {
    planted_ = &mutant;
    target_ = call;
  }
  // The tap behind each call of an operation, in the order of the calls.
  const std::deque<std::string>& behind(std::string_view op) { return taps_[op]; }
  double change() const { return change_; }  // of the planted call's result, relative

  // A fault may write behind the last row, or read before the first: there is room.
  Matrix allocate(std::size_t rows, std::size_t columns) override {
    return ReferenceOps::allocate(rows + 2, columns).row_range(1, rows);
  }

  void see(const std::string& tap, const Matrix&) override {
    for (std::string* open : open_) *open = tap;
    open_.clear();
  }

  using CallingOps::run;
  Matrix run(const RotaryCall& rotary) override {
    store({.base = rotary.x}, 0, call(rotary));
    return rotary.x;
  }

  template <class Call>
  ResultOf<Call> call(const Call& call) {
    std::deque<std::string>& behind = taps_[Call::kOp];
    const std::size_t number = behind.size();
    open_.push_back(&behind.emplace_back());
    const auto* found = std::any_cast<const Mutant<Call>*>(&planted_);
    const Mutant<Call>* mutant = found == nullptr ? nullptr : *found;
    ResultOf<Call> right = run_reference(*this, own(call));
    if (mutant == nullptr || number != target_) return right;
    planted_.reset();  // what the fault itself calls is right
    ResultOf<Call> wrong = mutant->run(*this, own(call), mutant->sizes.front());
    change_ = relative_change(*this, right, wrong);
    return wrong;
  }

 private:
  // Rope changes its argument: both ways of computing it get one of their own.
  template <class Call>
  Call own(const Call& call) {
    return call;
  }
  RotaryCall own(const RotaryCall& call) {
    RotaryCall copy = call;
    copy.x = upload(download(call.x), call.x.rows(), call.x.columns());
    return copy;
  }

  std::any planted_;
  std::size_t target_ = 0;
  double change_ = 0;
  std::map<std::string_view, std::deque<std::string>> taps_;
  std::vector<std::string*> open_;
};

// Which tap first has other numbers than it had without the fault.
class FirstChange final : public TapListener {
 public:
  FirstChange(Ops& ops, const KeptTaps& right) : ops_(ops), right_(right) {}
  void see(const std::string& tap, const Matrix& value) override {
    std::size_t& seen = seen_[tap];
    const KeptTaps::Taken& kept = *right_.find(tap);
    const std::vector<double> values = ops_.download(value);
    const bool same =
        std::memcmp(values.data(), &kept.values[seen * kept.width], values.size() * sizeof(double)) == 0;
    if (!same && tap_.empty()) tap_ = tap;
    seen += value.rows();
  }
  const std::string& tap() const { return tap_; }

 private:
  Ops& ops_;
  const KeptTaps& right_;
  std::map<std::string, std::size_t> seen_;
  std::string tap_;
};

class Planter {
 public:
  explicit Planter(const ModelCompareRequest& request)
      : request_(request),
        model_(make_model(*request.reference.weights, request.options)),
        truth_(request.reference.arithmetic, request.jobs),
        kept_(truth_, request.most_kept),
        clean_ops_(request.test.arithmetic, request.jobs),
        clean_(clean_ops_, request.most_kept),
        decode_(std::min(request.decode, request.tokens.size() / 4)),
        prefill_(request.tokens.size() - decode_) {
    read(truth_, Taps(kept_));
    plain_ = measure_plain(*model_, request.test.arithmetic, kept_, text(), {}, request.jobs);
    forced(clean_ops_, &clean_);
  }

  std::vector<ModelMutantResult> run() {
    plant_all<EmbeddingCall>();
    plant_all<RmsNormCall>();
    plant_all<LayerNormCall>();
    plant_all<LinearCall>();
    plant_all<RotaryCall>();
    plant_all<AttentionCall>();
    plant_all<MlaCall>();
    plant_all<GatedActivationCall>();
    plant_all<MoeGateCall>();
    plant_all<FusedMoeCall>();
    return std::move(results_);
  }

 private:
  TextReading text(std::size_t count, std::size_t decode) const {
    return {std::span(request_.tokens).first(count), decode, model_->draft_layers() > 0};
  }
  TextReading text() const { return text(request_.tokens.size(), decode_); }
  void read(Ops& ops, const Taps& taps) const { read_text(*model_, ops, text(), taps); }

  std::map<std::string, TapErrors> forced(Ops& ops, TapListener* witness) const {
    ComparedTaps taps(ops, kept_, {.forced = true, .prefill = prefill_, .orders = {}, .also = witness});
    read(ops, Taps(taps));
    return taps.errors();
  }

  // The taps behind the calls of one operation, while the first `count` tokens are read.
  template <class Call>
  std::vector<std::string> calls(std::size_t count, std::size_t decode) const {
    PlantingOps ops(request_.test.arithmetic, request_.jobs);
    ComparedTaps taps(ops, kept_, {.forced = true, .prefill = prefill_, .orders = {}, .also = &ops});
    read_text(*model_, ops, text(count, decode), Taps(taps));
    const std::deque<std::string>& behind = ops.behind(Call::kOp);
    return {behind.begin(), behind.end()};
  }

  // Where a fault may show: before each kind of tap once, in the middle of the model, while the text is read
  // at once and while it is read token by token.
  template <class Call>
  std::vector<std::size_t> places() const {
    const std::vector<std::string> behind = calls<Call>(request_.tokens.size(), decode_);
    const std::size_t at_once = calls<Call>(prefill_, 0).size();
    std::map<std::string, std::vector<std::size_t>> by_kind;
    for (std::size_t i = 0; i < behind.size(); ++i) {
      const TapName tap = split_tap_name(behind[i]);
      by_kind[(i < at_once ? "0" : "1") + tap.kind].push_back(i);
    }
    std::vector<std::size_t> places;
    for (const auto& [kind, all] : by_kind) places.push_back(all[all.size() / 2]);
    return places;
  }

  template <class Call>
  void plant_all() {
    const std::vector<std::size_t> all = places<Call>();
    if (all.empty()) return;
    for (const Mutant<Call>& mutant : mutants_of<Call>()) {
      if (mutant.bits || interrupted()) continue;  // shows in bits alone, which no tap tells
      ModelMutantResult result;
      for (std::size_t i = 0; i < all.size() && result.fate == MutantFate::idle; ++i)
        result = hunt(mutant, all[i]);
      results_.push_back(std::move(result));
    }
  }

  template <class Call>
  ModelMutantResult hunt(const Mutant<Call>& mutant, std::size_t call) const {
    ModelMutantResult r = {.op = std::string(Call::kOp),
                           .name = std::string(mutant.name),
                           .family = std::string(mutant.family),
                           .expected = {},
                           .named = {}};
    PlantingOps ops(request_.test.arithmetic, request_.jobs);
    ops.plant(mutant, call);
    FirstChange change(ops, clean_);
    std::map<std::string, TapErrors> errors;
    try {
      errors = forced(ops, &change);
    } catch (const Error&) {
      return r;  // the fault is none that such a call can have
    }
    r.expected = change.tap();
    for (const std::string& tap : kept_.names()) {
      const LocalRatio found = local_ratio(errors.at(tap), plain_.at(tap), request_.test.arithmetic);
      if (tap == r.expected) r.ratio = found.ratio;
      if (found.ratio <= 1) continue;
      r.named = tap;
      r.ratio = found.ratio;
      break;
    }
    if (!r.named.empty())
      r.fate = r.named == r.expected ? MutantFate::named : MutantFate::misnamed;
    else
      r.fate = r.expected.empty() || ops.change() <= kIdle ? MutantFate::idle : MutantFate::missed;
    return r;
  }

  const ModelCompareRequest& request_;
  std::unique_ptr<LanguageModel> model_;
  ReferenceOps truth_;
  KeptTaps kept_;
  ReferenceOps clean_ops_;
  KeptTaps clean_;  // what the reference computes in the test's arithmetic, forced
  std::size_t decode_, prefill_;
  std::map<std::string, std::vector<TapErrors>> plain_;
  std::vector<ModelMutantResult> results_;
};

}  // namespace

std::string_view name(MutantFate fate) {
  switch (fate) {
    case MutantFate::named: return "named";
    case MutantFate::misnamed: return "misnamed";
    case MutantFate::missed: return "missed";
    case MutantFate::idle: return "idle";
  }
  return "";
}

std::vector<ModelMutantResult> run_model_mutants(const ModelCompareRequest& request) {
  if (request.test.arithmetic.precision != Precision::f32)
    throw Error::usage("faults are planted in float32 computations").remedy("leave --precision at f32");
  if (request.tokens.size() < 2) throw Error::usage("faults are planted on a text of two tokens or more");
  if (request.reference.weights != request.test.weights) throw Error::usage("--mutants takes one checkpoint");
  return Planter(request).run();
}

}  // namespace assay
