#include "kernels/model_compare/model_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/numeric/largest.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/model_compare/window_compare.h"
#include "refimpl/engine/engine.h"

namespace assay {
namespace {

// Rule 3 of the budgets: what no bound is derived for may be twice as far off as the plain computation.
constexpr double kYardstick = 2;
// Whatever the yardstick says, four roundings are no fault: of what comes in, of a factor that all elements
// of a row share (a norm's, a softmax's sum), of the two products with it.
constexpr double kRoundings = 4;
// What an exponential is allowed beside: 2 ulp of its own, a sum and a quotient (harness/elementwise_cases.cpp).
constexpr double kOfExponential = 8;

double roundoff(const Arithmetic& arithmetic) {
  if (arithmetic.storage() == Real::f64) return unit_roundoff(ElementType::F64);
  return unit_roundoff(arithmetic.bfloat16() ? ElementType::BF16 : ElementType::F32);
}

// The error of one tap in three norms: of all elements, relative; of the worst row, relative to the mean row;
// of the worst column, relative to all columns together. `row_size`: that row, relative to the mean row.
struct Norms {
  double all = 0, row = 0, column = 0, row_size = 0;
  void raise(const Norms& other) {
    all = std::max(all, other.all);
    row = std::max(row, other.row);
    column = std::max(column, other.column);
  }
};
Norms norms_of(const ErrorTotals& e) {
  const auto relative = [&](double squares) {
    if (squares == 0) return 0.0;
    return e.truth_squares == 0 ? std::numeric_limits<double>::infinity()
                                : std::sqrt(squares / e.truth_squares);
  };
  const auto width = static_cast<double>(std::max<std::size_t>(1, e.column_squares.size()));
  const double rows = static_cast<double>(e.elements) / width;
  return {relative(e.error_squares), relative(e.row_squares * rows), relative(e.worst_column_squares()),
          relative(e.row_truth_squares * rows)};
}

class SideBySide final {
 public:
  explicit SideBySide(const ModelCompareRequest& request)
      : request_(request),
        reference_(request.reference, request.options, request.jobs),
        test_(request.test, request.options, request.jobs),
        windows_(request.windows) {
    if (reference_.model->vocabulary() != test_.model->vocabulary())
      throw Error::input(fmt::format("the two sides are not one model: vocabularies of {} and {}",
                                     reference_.model->vocabulary(), test_.model->vocabulary()));
    if (windows_.empty()) windows_.push_back({request.tokens});
    const std::size_t context = std::min(reference_.model->context(), test_.model->context());
    for (const TextWindow& window : windows_) {
      check_tokens(window.tokens, *reference_.model);
      if (window.tokens.size() > context)
        throw Error::input(
            fmt::format("{} tokens are more than the model's context of {}", window.tokens.size(), context))
            .remedy("compare on fewer (--limit), or in windows (--context)");
    }
    drafts_ = both_draft();
  }

  ModelComparison run() {
    if (windows_.front().tokens.empty()) {
      result_.status = CaseStatus::mistrusted;
      result_.reasons.emplace_back("the text has no tokens: nothing was computed");
      return std::move(result_);
    }
    const bool two_checkpoints = request_.reference.weights != request_.test.weights;
    const Segments between = segments(reference_);
    for (const auto& [tap, segment] : between)
      if (segment.bends) bent_.insert(tap);
    const QuantizationNoises noises = two_checkpoints ? compare_storage(between) : QuantizationNoises();
    WindowComparison comparison(request_, reference_, test_, noises, gathered_);
    for (const TextWindow& window : windows_) {
      if (interrupted()) return std::move(result_);
      const std::size_t decode = decoded(window.tokens.size());
      ++result_.windows;
      result_.decode += decode;
      result_.prefill += window.tokens.size() - decode;
      comparison.compare(window, decode, drafts_, &window == &windows_.back());
    }
    if (interrupted()) return std::move(result_);
    report();
    if (request_.greedy > 0 && gathered_.finite) result_.greedy = go_on();
    note_idle_experts();
    judge();
    return std::move(result_);
  }

 private:
  // None where rotary frequencies follow the length: there a token more means reading all anew.
  std::size_t decoded(std::size_t n) {
    const std::size_t wanted = std::min(request_.decode, n / 4);
    for (std::size_t i = n - wanted; i < n; ++i) {
      if (reference_.model->cache_serves(i, n) && test_.model->cache_serves(i, n)) continue;
      const std::string note =
          "rotary frequencies follow the length of the text: all tokens were read at once";
      if (std::find(result_.notes.begin(), result_.notes.end(), note) == result_.notes.end())
        result_.notes.push_back(note);
      return 0;
    }
    return wanted;
  }

  // The layer for multi-token prediction is compared where both sides have it: conversions may leave it out.
  bool both_draft() {
    const bool one = reference_.model->draft_layers() > 0, other = test_.model->draft_layers() > 0;
    if (one != other)
      result_.notes.emplace_back(
          fmt::format("only the {} has a layer for multi-token prediction: it is not compared",
                      one ? "reference" : "test"));
    return one && other;
  }

  Segments segments(const ReadySide& side) const {
    return segments_of(*side.model, *side.ops, windows_.front().tokens, drafts_);
  }

  // How coarsely the test side stores what the reference does.
  QuantizationNoises compare_storage(const Segments& reference) {
    const Segments test = segments(test_);
    QuantizationNoises noises = noises_of(reference, test, request_.test.arithmetic);
    for (const auto& [tap, segment] : reference) {
      double& most = noise_[tap];
      for (const auto* weights : {&segment.matrices, &segment.vectors}) {
        for (const WeightView& w : *weights) most = std::max(most, noises[*w.name].noise);
      }
    }
    const QuantizationNoises backwards = noises_of(test, reference, request_.test.arithmetic);
    const auto coarsest = [](const QuantizationNoises& all) {
      double most = 0;
      for (const auto& [name, noise] : all) most = std::max(most, noise.noise);
      return most;
    };
    coarser_reference_ = coarsest(backwards) > 2 * coarsest(noises);
    result_.requantized = static_cast<std::size_t>(
        std::count_if(noises.begin(), noises.end(), [](const auto& b) { return b.second.noise > 0; }));
    return noises;
  }

  void report() {
    result_.probe_inert = gathered_.same_without_taps;
    result_.bit_equal = gathered_.bit_equal;
    result_.logits = gathered_.main.report();
    if (const LogitsReport draft = gathered_.draft.report(); draft.positions > 0) result_.draft = draft;
    for (const std::string& name : gathered_.names) {
      if (!gathered_.free.contains(name))
        throw Error::input(
            fmt::format("the two sides are not one model: only one has \"{}\"", escape_for_terminal(name)));
      TapReport& tap = result_.taps.emplace_back();
      tap.name = name;
      TapName parts = split_tap_name(name);
      tap.place = std::move(parts.place);
      tap.kind = std::move(parts.kind);
      tap.free = gathered_.free.at(name);
      tap.local = gathered_.local.at(name);
      for (const auto& order : gathered_.plain) tap.plain.push_back(order.at(name));
      if (const auto it = noise_.find(name); it != noise_.end()) tap.noise = it->second;
      const LocalRatio worse =
          local_ratio(tap.local, tap.plain, request_.test.arithmetic, bent_.contains(name));
      tap.ratio = worse.ratio;
      tap.in_decode = worse.in_decode;
      if (!(tap.ratio <= 1) && !result_.first_divergence) result_.first_divergence = result_.taps.size() - 1;
    }
  }

  // A fault in an expert that no token was sent to cannot show.
  void note_idle_experts() {
    std::size_t all = 0, idle = 0;
    for (const auto& [tap, used] : gathered_.used) {
      all += used.size();
      idle += static_cast<std::size_t>(std::count(used.begin(), used.end(), false));
    }
    if (idle > 0)
      result_.notes.push_back(fmt::format(
          "no token of this text was sent to {} of {} experts: what is wrong in these does not show", idle,
          all));
  }

  GreedyReport go_on() {
    const std::size_t room = std::min(reference_.model->context(), test_.model->context());
    const std::vector<TokenId>& text = windows_.back().tokens;
    const std::size_t most = std::min(request_.greedy, room - std::min(room, text.size()));
    GreedyReport report;
    if (most == 0) return report;
    std::vector<double> margins;
    const auto make = [&](const ReadySide& side, const TextEngine::Listener& listener) {
      return TextEngine(*side.model, *side.ops)
          .generate({{.prompt = text, .max_new_tokens = most}}, listener)
          .front()
          .ids;
    };
    report.reference = make(reference_, [&](std::size_t, TokenId id, std::span<const double> logits) {
      double second = -std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < logits.size(); ++i) {
        if (i != id) second = std::max(second, logits[i]);
      }
      margins.push_back(logits[id] - second);
    });
    report.test = make(test_, {});
    for (std::size_t i = 0; i < std::min(report.reference.size(), report.test.size()); ++i) {
      if (report.reference[i] == report.test[i]) continue;
      report.parts_at = i;
      report.margin = margins[i];
      break;
    }
    return report;
  }

  void judge() {
    if (result_.first_divergence) {
      const TapReport& tap = result_.taps[*result_.first_divergence];
      result_.status = CaseStatus::failed;
      result_.reasons.push_back(
          fmt::format("first divergence at {}: local error {:.3g}, {:.3g} × what the plain computation "
                      "explains{}",
                      tap.name, (tap.in_decode ? tap.local.decode : tap.local.prefill).relative(), tap.ratio,
                      tap.in_decode ? ", among the tokens read one by one" : ""));
    }
    if (!result_.probe_inert) {
      result_.status = CaseStatus::failed;
      result_.reasons.emplace_back(
          "the logits change when intermediates are looked at: no figure here can be "
          "trusted, or the kernels do not repeat themselves");
    }
    if (coarser_reference_ && result_.first_divergence)
      result_.notes.emplace_back(
          "the reference's weights are stored more coarsely: if it was made from the other, exchange the "
          "two");
    if (result_.status == CaseStatus::failed) return;
    mistrust();
  }

  void mistrust() {
    const auto doubt = [&](std::string why) {
      result_.status = CaseStatus::mistrusted;
      result_.reasons.push_back(std::move(why));
    };
    for (const TapReport& tap : result_.taps) {
      const ErrorTotals all = tap.free.all();
      if (all.not_finite > 0) return doubt(tap.name + " is not finite in the reference itself");
      if (all.zeros == all.elements) return doubt(tap.name + " is all zeros: what follows it proves nothing");
    }
    if (result_.prefill + result_.decode < 2)
      doubt("one token attends to itself alone: positions, keys and scores had no part in it");
    if (request_.same_program)
      result_.notes.emplace_back(
          "both sides are the same program on the same file: equality shows only that it repeats itself");
    else if (result_.bit_equal)
      result_.notes.emplace_back("the sides agree bit for bit");
  }

  const ModelCompareRequest& request_;
  ReadySide reference_, test_;
  std::vector<TextWindow> windows_;
  GatheredTaps gathered_;
  std::map<std::string, double> noise_;
  std::set<std::string> bent_;  // taps behind an exponential
  bool coarser_reference_ = false, drafts_ = false;
  ModelComparison result_;
};

}  // namespace

double TapReport::plain_prefill() const {
  double most = 0;
  for (const TapErrors& order : plain) most = std::max(most, order.prefill.relative());
  return most;
}

double TapReport::plain_decode() const {
  double most = 0;
  for (const TapErrors& order : plain) most = std::max(most, order.decode.relative());
  return most;
}

double ModelComparison::largest_ratio() const {
  double largest = 0;
  for (const TapReport& tap : taps) largest = larger_or_nan(largest, tap.ratio);
  return largest;
}

// The prediction layer says nothing of one token.
Segments segments_of(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens, bool drafts) {
  WeightWatch watch(ops);
  read_text(model, watch, {tokens.first(std::min<std::size_t>(2, tokens.size())), 0, drafts}, Taps(watch));
  return watch.segments();
}

LocalRatio local_ratio(const TapErrors& local, std::span<const TapErrors> plain, const Arithmetic& arithmetic,
                       bool bends) {
  Norms plainly;
  for (const TapErrors& order : plain) {
    plainly.raise(norms_of(order.prefill));
    plainly.raise(norms_of(order.decode));
  }
  const double floor = (kRoundings + (bends ? kOfExponential : 0)) * roundoff(arithmetic);
  const auto of_phase = [&](const ErrorTotals& error) {
    if (error.pattern_faults > 0) return std::numeric_limits<double>::infinity();
    const Norms found = norms_of(error);
    return std::max({found.all / std::max(kYardstick * plainly.all, floor),
                     found.row / std::max(kYardstick * plainly.row, floor * std::max(1.0, found.row_size)),
                     found.column / std::max(kYardstick * plainly.column, floor)});
  };
  const double prefill = of_phase(local.prefill), decode = of_phase(local.decode);
  const bool in_decode = !(decode <= prefill);
  return {in_decode ? decode : prefill, in_decode};
}

ModelComparison compare_models(const ModelCompareRequest& request) {
  return SideBySide(request).run();
}

}  // namespace assay
