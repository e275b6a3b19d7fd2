#include "kernels/model_compare/model_mutants.h"

#include <algorithm>
#include <any>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "kernels/harness/mutants.h"
#include "kernels/model_compare/plain_ops.h"
#include "kernels/registry/calling_ops.h"

namespace assay {
namespace {

// A call's result may differ by this much, relative, for no other reason than rounding: local_ratio allows a
// tap twice its plain error and 4 u at the least, or 12, and short sums come to several u. An epsilon of 1e-6 left
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
double relative_change(ReferenceOps&, const KeyChoice& right, const KeyChoice& wrong) {
  return right.keys != wrong.keys ? 1 : 0;
}
double relative_change(ReferenceOps& ops, const QuantizedMatrix& right, const QuantizedMatrix& wrong) {
  return relative_change(ops, run_reference(ops, DequantizeCall{right}),
                         run_reference(ops, DequantizeCall{wrong}));
}

// What blocks are put together with, and what of it may be forgotten.
struct GlueFault {
  std::string_view op, name;
};
constexpr GlueFault kGlueFaults[] = {
    {"add", "the second addend left out"}, {"multiply", "the factor left out"},
    {"soft_cap", "the cap left out"},      {"scale", "the factors left out"},
    {"clamp", "the limit ignored"},        {"concatenate", "the second part is zeros"},
    {"of_each", "begins a column off"}};

// The reference, but for one call of one operation; and a witness of which tap follows which call.
class PlantingOps final : public CallingOps<PlantingOps>, public TapListener {
 public:
  using CallingOps::CallingOps;

  template <class Call>
  void plant(const Mutant<Call>& mutant, std::size_t call) {
    planted_ = &mutant;
    target_ = call;
  }
  // The fault of that operation in kGlueFaults.
  void plant(std::string_view glue, std::size_t call) {
    glue_ = glue;
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

  Matrix add(const Matrix& a, const Matrix& b) override {
    return glued("add", ReferenceOps::add(a, b), [&] { return as_it_is(a); });
  }
  Matrix multiply(const Matrix& x, double factor) override {
    return glued("multiply", ReferenceOps::multiply(x, factor), [&] { return as_it_is(x); });
  }
  Matrix soft_cap(const Matrix& x, double cap) override {
    return glued("soft_cap", ReferenceOps::soft_cap(x, cap), [&] { return as_it_is(x); });
  }
  Matrix scale(const Matrix& x, const Matrix& factors) override {
    return glued("scale", ReferenceOps::scale(x, factors), [&] { return as_it_is(x); });
  }
  Matrix clamp(const Matrix& x, double limit) override {
    return glued("clamp", ReferenceOps::clamp(x, limit), [&] { return as_it_is(x); });
  }
  Matrix concatenate(const Matrix& a, const Matrix& b) override {
    return glued("concatenate", ReferenceOps::concatenate(a, b),
                 [&] { return ReferenceOps::concatenate(a, ReferenceOps::multiply(b, 0)); });
  }
  Matrix of_each(const Matrix& x, std::size_t width, std::size_t first, std::size_t count) override {
    const std::size_t off = first + count < width ? first + 1 : first - std::min<std::size_t>(first, 1);
    return glued("of_each", ReferenceOps::of_each(x, width, first, count),
                 [&] { return ReferenceOps::of_each(x, width, off, count); });
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
  Matrix as_it_is(const Matrix& x) { return ReferenceOps::multiply(x, 1); }
  template <class Wrong>
  Matrix glued(std::string_view op, const Matrix& right, const Wrong& wrong) {
    std::deque<std::string>& behind = taps_[op];
    const std::size_t number = behind.size();
    open_.push_back(&behind.emplace_back());
    if (glue_ != op || number != target_) return right;
    glue_ = {};
    const Matrix made = wrong();
    change_ = relative_change(*this, right, made);
    return made;
  }

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
  std::string_view glue_;
  std::size_t target_ = 0;
  double change_ = 0;
  std::map<std::string_view, std::deque<std::string>> taps_;
  std::vector<std::string*> open_;
};

// Which tap first has other numbers than it had without the fault, and by how much, relative.
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
    if (!same && tap == tap_)
      size_ = std::max(
          size_,
          compare_rows(values, std::span(right_.find(tap)->values).subspan(seen * kept.width, values.size()),
                       std::max<std::size_t>(1, kept.width), 0, ops_.arithmetic())
              .relative());
    seen += value.rows();
  }
  struct Found {
    std::string tap;
    double size = 0;
  };
  Found found() const { return {tap_, size_}; }

 private:
  Ops& ops_;
  const KeptTaps& right_;
  std::map<std::string, std::size_t> seen_;
  std::string tap_;
  double size_ = 0;
};

using TapErrorMap = std::map<std::string, TapErrors>;

// A call of an operation that a fault may be planted in: its number while the text is read up to the heads and, if
// it is a head's, while those rows, and no others, go through it.
struct PlantedAt {
  std::size_t call = 0;
  std::optional<RowsOfHead> rows;
};

// Logits are not kept, as in window_compare.h: a row is as wide as the vocabulary. What the head is given is, and
// who is to see what the head says goes through it a few rows at a time, truth and clean run beside.
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
    truth_states_ = read_states(*model_, truth_, text(), Taps(kept_));
    TapErrorMap unused;
    clean_states_ = forced(clean_ops_, text(), &clean_, unused);
    between_ = segments_of(*model_, truth_, request.tokens, model_->draft_layers() > 0);
    measure_plain();
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
    plant_all<ConvolutionCall>();
    plant_all<DeltaRuleCall>();
    plant_all<StateSpaceCall>();
    plant_all<GatedNormCall>();
    plant_all<OutputGateCall>();
    plant_all<IndexCall>();
    for (const GlueFault& fault : kGlueFaults) plant_in_each_place(fault);
    return std::move(results_);
  }

 private:
  TextReading text(std::size_t count, std::size_t decode) const {
    return {std::span(request_.tokens).first(count), decode, model_->draft_layers() > 0};
  }
  TextReading text() const { return text(request_.tokens.size(), decode_); }

  // Reads the text up to the heads, each tap set to the truth once it has been looked at.
  TextStates forced(Ops& ops, const TextReading& text, TapListener* witness, TapErrorMap& errors) const {
    ComparedTaps taps(ops, kept_, {.forced = true, .prefill = prefill_, .orders = {}, .also = witness});
    TextStates states = read_states(*model_, ops, text, Taps(taps));
    errors = taps.errors();
    return states;
  }

  // Some rows of `states` through the head, held against the truth's.
  void through_head(Ops& ops, const TextStates& states, const RowsOfHead& rows, TapListener* witness,
                    TapErrorMap& errors) {
    KeptTaps truth(truth_, request_.most_kept);
    head_logits(*model_, truth_, truth_states_, rows, Taps(truth));
    ComparedTaps taps(
        ops, truth, {.forced = true, .prefill = prefill_, .first = rows.row, .orders = {}, .also = witness});
    head_logits(*model_, ops, states, rows, Taps(taps));
    for (const auto& [tap, found] : taps.errors()) {
      errors[tap].prefill.add(found.prefill);
      errors[tap].decode.add(found.decode);
    }
  }
  std::vector<RowsOfHead> heads() const {
    return head_rows(truth_states_, rows_compared(model_->vocabulary()));
  }

  // By tap, the local errors of the plain computation in each of its orders; and the order of all taps: those of
  // the prediction layer come after the main model, its head.
  void measure_plain() {
    names_ = kept_.names();
    for (const RowsOfHead& rows : heads()) {
      if (rows.row > 0) continue;  // the same names again
      KeptTaps of_head(truth_, request_.most_kept);
      head_logits(*model_, truth_, truth_states_, rows, Taps(of_head));
      names_.insert(names_.end(), of_head.names().begin(), of_head.names().end());
    }
    for (int order = 0; order < PlainOps::kOrders; ++order) {
      const QuantizationNoises none;
      PlainOps ops(request_.test.arithmetic, request_.jobs, order, none);
      TapErrorMap errors;
      const TextStates states = forced(ops, text(), nullptr, errors);
      for (const RowsOfHead& rows : heads()) through_head(ops, states, rows, nullptr, errors);
      for (const auto& [tap, found] : errors) plain_[tap].push_back(found);
    }
    std::stable_partition(names_.begin(), names_.end(),
                          [](const std::string& name) { return first_token_of(name) == 0; });
  }

  // Where a fault may show: before each kind of tap once, in the middle of the model, while the text is read
  // at once and while it is read token by token.
  std::vector<PlantedAt> places(std::string_view op) {
    TapErrorMap unused;
    PlantingOps at_once(request_.test.arithmetic, request_.jobs),
        ops(request_.test.arithmetic, request_.jobs);
    forced(at_once, text(prefill_, 0), &at_once, unused);
    const std::size_t prefill = at_once.behind(op).size();
    const TextStates states = forced(ops, text(), &ops, unused);
    const std::deque<std::string>& behind = ops.behind(op);
    const std::size_t before_heads = behind.size();
    std::map<std::string, std::vector<PlantedAt>> by_kind;
    const auto note = [&](std::size_t i, bool decoding, const PlantedAt& place) {
      by_kind[(decoding ? "1" : "0") + split_tap_name(behind[i]).kind].push_back(place);
    };
    const std::vector<RowsOfHead> all_rows = heads();
    for (const RowsOfHead& rows : all_rows) {
      const std::size_t first = behind.size();
      through_head(ops, states, rows, &ops, unused);
      for (std::size_t i = first; i < behind.size(); ++i)
        note(i, rows.step > 0, {before_heads + (i - first), rows});
    }
    for (std::size_t i = 0; i < before_heads; ++i) {
      const bool seen_in_head = kept_.find(behind[i]) == nullptr;
      note(i, i >= prefill, {i, seen_in_head ? std::optional(all_rows.front()) : std::nullopt});
    }
    std::vector<PlantedAt> places;
    for (const auto& [kind, all] : by_kind) places.push_back(all[all.size() / 2]);
    return places;
  }

  template <class Call>
  void plant_all() {
    const std::vector<PlantedAt> all = places(Call::kOp);
    if (all.empty()) return;
    for (const Mutant<Call>& mutant : mutants_of<Call>()) {
      if (mutant.bits || interrupted()) continue;  // shows in bits alone, which no tap tells
      const ModelMutantResult fault = {.op = std::string(Call::kOp),
                                       .name = std::string(mutant.name),
                                       .family = std::string(mutant.family),
                                       .expected = {},
                                       .named = {}};
      ModelMutantResult result;
      for (std::size_t i = 0; i < all.size() && result.fate == MutantFate::idle; ++i)
        result = hunt(fault, all[i], [&](PlantingOps& ops) { ops.plant(mutant, all[i].call); });
      results_.push_back(std::move(result));
    }
  }

  // Each block has glue of its own.
  void plant_in_each_place(const GlueFault& fault) {
    for (const PlantedAt& place : places(fault.op)) {
      if (interrupted()) return;
      const ModelMutantResult blank = {.op = std::string(fault.op),
                                       .name = std::string(fault.name),
                                       .family = "glue",
                                       .expected = {},
                                       .named = {}};
      results_.push_back(hunt(blank, place, [&](PlantingOps& ops) { ops.plant(fault.op, place.call); }));
    }
  }

  // The errors of all taps that a fault planted there can change, and the first tap that it did: behind that, the
  // truth was put in place.
  FirstChange::Found watch(PlantingOps& ops, const PlantedAt& place, TapErrorMap& errors) {
    FirstChange change(ops, clean_);
    const TextStates states = forced(ops, text(), &change, errors);
    if (!place.rows || !change.found().tap.empty()) return change.found();
    KeptTaps clean(clean_ops_, request_.most_kept);
    head_logits(*model_, clean_ops_, clean_states_, *place.rows, Taps(clean));
    FirstChange in_head(ops, clean);
    through_head(ops, states, *place.rows, &in_head, errors);
    return in_head.found();
  }

  ModelMutantResult hunt(ModelMutantResult r, const PlantedAt& place,
                         const std::function<void(PlantingOps&)>& plant) {
    PlantingOps ops(request_.test.arithmetic, request_.jobs);
    plant(ops);
    TapErrorMap errors;
    double size = 0;
    try {
      const auto [tap, changed] = watch(ops, place, errors);
      r.expected = tap;
      size = changed;
    } catch (const Error&) {
      return r;  // the fault is none that such a call can have
    }
    for (const std::string& tap : names_) {
      const auto of_tap = errors.find(tap);
      if (of_tap == errors.end()) continue;  // of a head that was not looked at
      const LocalRatio found = local_ratio(of_tap->second, plain_.at(tap), request_.test.arithmetic,
                                           between_.contains(tap) && between_.at(tap).bends);
      if (tap == r.expected) r.ratio = found.ratio;
      if (found.ratio <= 1) continue;
      r.named = tap;
      r.ratio = found.ratio;
      break;
    }
    if (!r.named.empty())
      r.fate = r.named == r.expected ? MutantFate::named : MutantFate::misnamed;
    else
      r.fate =
          r.expected.empty() || std::min(ops.change(), size) <= kIdle ? MutantFate::idle : MutantFate::missed;
    return r;
  }

  const ModelCompareRequest& request_;
  std::unique_ptr<LanguageModel> model_;
  ReferenceOps truth_;
  KeptTaps kept_;
  ReferenceOps clean_ops_;
  KeptTaps clean_;  // what the reference computes in the test's arithmetic, forced
  std::size_t decode_, prefill_;
  TextStates truth_states_, clean_states_;
  std::vector<std::string> names_;  // of all taps, in the order of computation
  Segments between_;
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
