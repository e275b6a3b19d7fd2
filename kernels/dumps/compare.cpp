#include "kernels/dumps/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/dumps/cross_check.h"
#include "kernels/dumps/reading.h"

namespace assay::dumps {
namespace {

constexpr std::uint64_t kMemory = 4ull << 30;  // that the taps in work may take together, about
constexpr std::uint64_t kCopies = 8;           // of a tap's values, while it is compared
constexpr std::size_t kVotes = 12;             // taps read to learn a dump's precision

class Comparer {
 public:
  explicit Comparer(const CompareRequest& request)
      : request_(request),
        map_(request.map.empty() ? NameMap{} : read_name_map(request.map)),
        ref_(request.ref, map_.ref),
        test_(request.test, map_.test),
        filter_(request.include, request.exclude) {
    if (!request.yardstick.empty()) plain_.emplace(request.yardstick, map_.ref);
  }

  DumpComparison run() {
    refuse_itself();
    match_names();
    dumps_.tokens = likely_tokens(dumps_);
    alignment_ = align_tokens(dumps_);
    if (!alignment_.note.empty()) result_.notes.push_back(alignment_.note);
    precision_ = coarser(precision_of(true), precision_of(false));
    result_.precision = precision_;
    if (!alignment_.differ || !alignment_.map->pairs.empty()) {
      compare_taps();
      name_faults();
      heat_tokens();
    }
    if (alignment_.differ || result_.first_divergence() != nullptr) result_.inputs = alignment_.inputs;
    return std::move(result_);
  }

 private:
  // The same file held against itself agrees, and shows nothing; nor does one within twice its own error.
  void refuse_itself() {
    refuse_same(ref_, "REF");
    if (plain_) refuse_same(*plain_, "the yardstick");
  }
  void refuse_same(const Dump& other, std::string_view what) {
    for (const DumpFile& a : other.files().files()) {
      for (const DumpFile& b : test_.files().files()) {
        if (!a.identity || !b.identity || a.identity->device != b.identity->device ||
            a.identity->inode != b.identity->inode)
          continue;
        result_.vacuous =
            fmt::format("{} and TEST are the same file, {}", what, escape_for_terminal(a.path.string()));
        return;
      }
    }
  }

  bool wanted(const Tap& tap) const {
    return filter_.accepts(tap.name) && auxiliary_of(tap.name) == Auxiliary::none;
  }

  void match_names() {
    for (const Dump* dump : {&ref_, &test_}) {
      const std::string_view whose = dump == &ref_ ? "REF" : "TEST";
      for (const std::string& note : dump->files().notes())
        result_.notes.push_back(fmt::format("{}: {}", whose, note));
      if (dump->dropped() > 0)
        result_.notes.push_back(fmt::format("{}: {} tensors dropped by the map", whose, dump->dropped()));
    }
    std::set<std::string> kinds;
    for (const Tap& tap : test_.taps()) {
      if (!wanted(tap)) continue;
      kinds.insert(kind_of(tap.name));
      if (ref_.find(tap.name) == nullptr) result_.extra.push_back(tap.name);
    }
    for (const Tap& tap : ref_.taps()) {
      if (!wanted(tap)) continue;
      if (const Tap* test = test_.find(tap.name); test != nullptr) {
        dumps_.pairs.push_back({&tap, test});
        continue;
      }
      result_.missing.push_back(tap.name);
      const std::string kind = kind_of(tap.name);
      if (kinds.contains(kind) && kind != tap.name) result_.holes.push_back(tap.name);
    }
    if (dumps_.pairs.empty() && result_.vacuous.empty()) result_.vacuous = no_common_name();
  }

  std::string no_common_name() const {
    const auto some = [](const std::vector<std::string>& names) {
      std::string text;
      for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : ", ", escape_for_terminal(names[i]));
      return text.empty() ? std::string("none") : text + (names.size() > 3 ? " …" : "");
    };
    if (result_.missing.empty() && result_.extra.empty() && !(request_.include + request_.exclude).empty())
      return "--include and --exclude leave no tap";
    return fmt::format("no tap has one name in both (REF: {}; TEST: {}); a map file says what is called how",
                       some(result_.missing), some(result_.extra));
  }

  // What most taps within layers were rounded to; embeddings are looked up, and say nothing of a computation.
  ElementType precision_of(bool of_ref) const {
    const Dump& dump = of_ref ? ref_ : test_;
    std::vector<const Tap*> voters;
    for (const bool layers : {true, false}) {
      for (const TapPair& pair : dumps_.pairs) {
        const Tap* tap = of_ref ? pair.ref : pair.test;
        if (tap->is_float() && (!layers || tap->key.stage == kLayerStage)) voters.push_back(tap);
      }
      if (!voters.empty()) break;
    }
    std::map<ElementType, std::size_t> votes;
    const std::size_t step = std::max<std::size_t>(1, voters.size() / kVotes);
    for (std::size_t i = 0; i < voters.size(); i += step) ++votes[precision_of(dump, *voters[i])];
    const auto best = std::max_element(votes.begin(), votes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return best == votes.end() ? ElementType::F32 : best->first;
  }

  // Of one part of it: enough to tell.
  static ElementType precision_of(const Dump& dump, const Tap& tap) {
    Activations part;
    part.values = dump.files().read(dump.files().pieces()[tap.steps.front().front()]);
    part.type = tap.type;
    return held_precision(part);
  }

  // ---- taps

  void compare_taps() {
    const std::size_t count = dumps_.pairs.size();
    result_.taps.resize(count);
    samples_.resize(count);
    std::uint64_t largest = 1;
    for (const TapPair& pair : dumps_.pairs)
      largest = std::max({largest, ref_.bytes(*pair.ref), test_.bytes(*pair.test)});
    const auto fitting = std::max<std::uint64_t>(1, kMemory / (largest * kCopies));
    const auto jobs = static_cast<std::uint64_t>(std::max(1, request_.jobs));
    parallel_for(static_cast<int>(std::min(jobs, fitting)), count, [&](std::size_t i) {
      if (interrupted()) return;
      const TapPair& pair = dumps_.pairs[i];
      TapResult& result = result_.taps[i];
      result.name = samples_[i].name = pair.ref->name;
      result.key = pair.ref->key;
      result.ref_type = pair.ref->type;
      result.test_type = pair.test->type;
      try {
        compare_tap(pair, result, samples_[i]);
      } catch (const Error& error) {
        // Of one tap: ranks that differ, a map that does not fit. A file that cannot be read ends it all.
        if (error.kind() != ErrorKind::input || error.tensor().empty() || !error.file().empty()) throw;
        fail(result, Diagnosis{"unusable", error.message(), error.remedy(), 0});
      }
    });
  }

  static void fail(TapResult& result, Diagnosis diagnosis) {
    result.status = CaseStatus::failed;
    result.diagnosis = std::move(diagnosis);
    result.error.ratio = std::numeric_limits<double>::infinity();
  }

  void compare_tap(const TapPair& pair, TapResult& result, TapSample& kept) const {
    const auto how = find_reading(dumps_, pair);
    Activations ref =
        how ? ref_.load(*pair.ref, how->ref_join, how->ref_axes) : load_plainly(ref_, *pair.ref);
    Activations test =
        how ? test_.load(*pair.test, how->test_join, how->test_axes) : load_plainly(test_, *pair.test);
    if (how) result.note = how_it_was_read(pair, *how);
    const std::size_t ref_rows = ref.rows, test_rows = test.rows;
    result.width = ref.width;
    result.rows = ref.rows;
    if (alignment_.differ &&
        !(ref_rows == alignment_.map->ref_rows && test_rows == alignment_.map->test_rows)) {
      result.note = "not compared: of other tokens";
      return;
    }
    if (!how || !pick_rows(ref, test, result.note)) {
      const std::string shapes =
          fmt::format("REF has {} tokens of {}, TEST {} of {}", ref_rows, ref.width, test_rows, test.width);
      return fail(result,
                  diagnose_shapes(ref, test, 0)
                      .value_or(Diagnosis{"shape", shapes, "say in the map file which axes are what", 0}));
    }
    result.rows = ref.rows;
    result.rows_left_out = ref_rows + test_rows - 2 * ref.rows;
    result.precision = pair.test->is_float() ? precision_ : pair.test->type;
    judge(ref, test, limit_of(pair, ref), result);
    kept = sample(result.name, ref, test);
    kept.failed = result.status == CaseStatus::failed;
    kept.telling = result.status != CaseStatus::mistrusted;
    kept.allowed = result.limit.frobenius;
  }

  static std::string how_it_was_read(const TapPair& pair, const Reading& how) {
    std::vector<std::string> notes;
    if (pair.ref->ranks() > 1) notes.push_back("REF: " + describe(how.ref_join, pair.ref->ranks()));
    if (pair.test->ranks() > 1) notes.push_back("TEST: " + describe(how.test_join, pair.test->ranks()));
    if (pair.test->steps.size() > 1)
      notes.push_back(fmt::format("TEST: {} steps on end", pair.test->steps.size()));
    if (how.ref_axes.swapped) notes.emplace_back("REF read as [heads, tokens, dim]");
    if (how.test_axes.swapped) notes.emplace_back("TEST read as [heads, tokens, dim]");
    return fmt::format("{}", fmt::join(notes, "; "));
  }

  // The tokens that both have, in REF's order. Taps of another token count than most are compared as they
  // stand; one row against many is the last one (logits of what comes next).
  bool pick_rows(Activations& ref, Activations& test, std::string& note) const {
    const auto& map = alignment_.map;
    if (map && ref.rows == map->ref_rows && test.rows == map->test_rows) {
      ref = pick_ref(*map, std::move(ref));
      test = pick_test(*map, std::move(test));
      return true;
    }
    if (ref.rows == test.rows) return true;
    if (test.rows != 1 && ref.rows != 1) return false;
    for (Activations* of : {&ref, &test}) {
      of->values.erase(of->values.begin(), of->values.end() - static_cast<std::ptrdiff_t>(of->width));
      of->rows = 1;
    }
    note += note.empty() ? "the last token alone" : "; the last token alone";
    return true;
  }

  Limit limit_of(const TapPair& pair, const Activations& ref) const {
    if (!pair.ref->is_float() || !pair.test->is_float()) return {};
    if (plain_) {
      if (const Tap* tap = plain_->find(pair.ref->name); tap != nullptr) {
        Activations plain = load_plainly(*plain_, *tap);
        if (alignment_.map && plain.rows == alignment_.map->ref_rows)
          plain = pick_ref(*alignment_.map, std::move(plain));
        if (plain.rows == ref.rows && plain.width == ref.width) return yardstick_limit(ref, plain);
      }
      throw Error::input("the yardstick has no such tap of this size")
          .tensor(pair.ref->name)
          .remedy("dump it from the same prompt, or exclude the tap");
    }
    if (request_.rtol) return given_limit(*request_.rtol);
    return derived_limit(precision_, layers_before(pair.ref->key), ref.width);
  }

  // The layers that errors have passed through.
  std::uint64_t layers_before(const ForwardKey& key) const {
    if (key.stage == 0) return 0;
    if (key.stage == kLayerStage) return key.layer;
    std::uint64_t last = 0;
    for (const TapPair& pair : dumps_.pairs)
      last = std::max(last, pair.ref->key.stage == kLayerStage ? pair.ref->key.layer : 0);
    return last + key.layer;
  }

  void judge(const Activations& ref, const Activations& test, const Limit& limit, TapResult& result) const {
    result.limit = limit;
    result.error = tap_error(ref, test, limit);
    const std::size_t worst = result.error.measure.worst;
    if (worst < ref.values.size()) {
      result.ref_value = ref.values[worst];
      result.test_value = test.values[worst];
    }
    if (ref.rows > 0) {
      for (const auto& [of, whose] : {std::pair(&ref, "REF"), std::pair(&test, "TEST")}) {
        if (auto nothing = vacuous(*of, whose)) {
          result.status = CaseStatus::mistrusted;
          result.diagnosis = std::move(nothing);
          return;
        }
      }
    } else {
      result.status = CaseStatus::mistrusted;
      result.diagnosis = vacuous(ref, "REF");
      return;
    }
    result.status = result.error.ratio <= 1 ? CaseStatus::passed : CaseStatus::failed;
    if (result.status == CaseStatus::passed) return;
    // The norm is that of the finite elements: without one that is no number, nothing is left to explain.
    const double error = result.error.measure.pattern_faults > 0 ? std::numeric_limits<double>::infinity()
                                                                 : result.error.frobenius;
    result.diagnosis = diagnose(ref, test, error, limit.frobenius);
    if (!result.diagnosis) result.diagnosis = lost_precision(test, result);
    if (!result.diagnosis || result.diagnosis->code == "elements") {
      if (auto choice = other_experts(ref, test, result)) result.diagnosis = std::move(choice);
    }
  }

  // Weights of experts, zero for those not chosen: a choice that went another way is no error of arithmetic.
  static std::optional<Diagnosis> other_experts(const Activations& ref, const Activations& test,
                                                const TapResult& result) {
    if (result.name.find("router_weights") == std::string::npos) return std::nullopt;
    std::size_t tokens = 0, first = 0;
    for (std::size_t i = 0; i < ref.rows; ++i) {
      bool same = true;
      for (std::size_t j = 0; j < ref.width; ++j)
        same = same && (ref.row(i)[j] == 0) == (test.row(i)[j] == 0);
      if (!same && tokens++ == 0) first = i;
    }
    if (tokens == 0) return std::nullopt;
    return Diagnosis{"other_experts",
                     fmt::format("{} of {} tokens, the first of them token {}, choose other experts", tokens,
                                 ref.rows, first),
                     "near ties that noise decides, or a router's bias or rounding: see router_logits", 0};
  }

  // A tap that fits in fewer bits than the rest of its dump.
  std::optional<Diagnosis> lost_precision(const Activations& test, const TapResult& result) const {
    const ElementType held = held_precision(test);
    if (coarser(held, precision_) == precision_ || result.error.frobenius > 2 * unit_roundoff(held))
      return std::nullopt;
    return Diagnosis{
        "rounded",
        fmt::format("it was rounded to {}, the rest of the pass to {}", name(held), name(precision_)),
        "a cast too many", 0};
  }

  // ---- all taps together

  void name_faults() {
    const auto found = cross_check(samples_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) continue;
      result_.taps[i].status = CaseStatus::mistrusted;
      result_.taps[i].diagnosis = found[i];
    }
  }

  void heat_tokens() {
    for (const TapResult& tap : result_.taps) {
      if (alignment_.map ? tap.rows != alignment_.map->pairs.size()
                         : dumps_.tokens != 0 && tap.rows != dumps_.tokens)
        continue;
      result_.token_heat.resize(std::max(result_.token_heat.size(), tap.error.row_ratio.size()));
      for (std::size_t i = 0; i < tap.error.row_ratio.size(); ++i)
        result_.token_heat[i] = std::max(result_.token_heat[i], static_cast<double>(tap.error.row_ratio[i]));
    }
    result_.tokens = result_.token_heat.size();
  }

  const CompareRequest& request_;
  NameMap map_;
  Dump ref_, test_;
  std::optional<Dump> plain_;
  NameFilter filter_;
  PairedDumps dumps_{ref_, test_, {}, 0};
  TokenAlignment alignment_;
  ElementType precision_ = ElementType::F32;
  std::vector<TapSample> samples_;
  DumpComparison result_;
};

}  // namespace

double TapResult::share_over() const {
  const ErrorMeasure& m = error.measure;
  return m.elements == 0
             ? 0
             : static_cast<double>(m.over_budget + m.pattern_faults) / static_cast<double>(m.elements);
}

const TapResult* DumpComparison::first_divergence() const {
  const auto it = std::find_if(taps.begin(), taps.end(), [](const TapResult& tap) { return tap.said_no(); });
  return it == taps.end() ? nullptr : &*it;
}

std::size_t DumpComparison::count(CaseStatus status) const {
  return static_cast<std::size_t>(
      std::count_if(taps.begin(), taps.end(), [&](const TapResult& tap) { return tap.status == status; }));
}

bool DumpComparison::good() const {
  return vacuous.empty() && inputs.empty() && holes.empty() && first_divergence() == nullptr;
}

DumpComparison compare_dumps(const CompareRequest& request) {
  return Comparer(request).run();
}

}  // namespace assay::dumps
