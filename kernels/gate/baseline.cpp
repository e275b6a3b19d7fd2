#include "kernels/gate/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <regex>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kSchema = "assay.baseline/1";

// How far a ratio may move before it means anything. A sum of K products taken in another order (vectors of
// 4, 8 or 16) makes other rounding errors of the same size s; the largest of N of them lies near s·√(2 ln N),
// and its own spread is s/√(2 ln N) (extreme values of a normal law). So the largest of a grid's N ≈ 10⁴
// elements moves by some 10 %, 25 % in one of a hundred orders; that of a case of a few elements by any
// factor near its median, threefold in one of a hundred. Twice and four times are those with room for one
// power of two: what is planted as a fault in the accumulation (an operand rounded once more, a K-split lost)
// moves ratios more. Below kFloor the budget is met twenty times over, and a ratio of few roundings is mostly
// chance.
constexpr double kDrift = 2;      // of the largest ratio of a kernel (drift_of_ratio)
constexpr double kCaseDrift = 4;  // of a single case
constexpr double kFloor = 0.05;

std::map<std::string, std::string> properties_of(const Properties& p) {
  return {{"repeatable", std::string(name(p.repeatable))},
          {"layout_invariant", std::string(name(p.layout_invariant))},
          {"thread_invariant", std::string(name(p.thread_invariant))},
          {"batch_invariant", std::string(name(p.batch_invariant))},
          {"chunk_invariant", std::string(name(p.chunk_invariant))},
          {"isolated", std::string(name(p.isolated))}};
}

void merge_property(std::string& known, const std::string& now) {
  if (known == "no" || now == "untested") return;
  known = now;
}

constexpr const char* kWriteAgain = "write it again with 'assay gate --update'";
constexpr const char* kLedgerHelp = "docs/gate.md shows what a ledger holds";

const ParsedJson& member(const ParsedJson& object, const char* key, const std::filesystem::path& file,
                         ParsedJson::value_t type, const char* remedy = kWriteAgain) {
  if (!object.is_object() || !object.contains(key) || object.at(key).type() != type)
    throw Error::input(fmt::format("'{}' is missing or of another type", key)).in(file).remedy(remedy);
  return object.at(key);
}

// A kernel by its name, "cpu.gemv", or as reports write it, "linear cpu.gemv".
bool is_about(const KnownFailure& known, const CaseResult& r) {
  return known.id == r.id && (known.kernel == r.kernel || known.kernel == kernel_key(r));
}

bool is_known(const std::vector<KnownFailure>& ledger, const CaseResult& r, const KnownFailure** which) {
  for (const KnownFailure& known : ledger) {
    if (!is_about(known, r)) continue;
    *which = &known;
    return true;
  }
  return false;
}

class Comparing {
 public:
  Comparing(const Baseline& before, const std::vector<CaseResult>& results,
            const std::vector<MutantResult>& mutants, const std::vector<KnownFailure>& ledger,
            std::string today)
      : before_(before),
        results_(results),
        mutants_(mutants),
        ledger_(ledger),
        today_(std::move(today)),
        now_(baseline_of(results, mutants)) {}

  std::vector<Deviation> run() {
    failures();
    for (const auto& [key, record] : before_.kernels) kernel(key, record);
    for (const std::string& name : before_.mutants) {
      const bool planted = std::any_of(mutants_.begin(), mutants_.end(),
                                       [&](const MutantResult& m) { return m.op + ": " + m.name == name; });
      if (!planted) say("vanished", "", "", "the planted fault '" + name + "' is planted no more");
    }
    for (const MutantResult& m : mutants_) {
      if (!m.caught)
        say("missed_mutant", m.op, "", fmt::format("the planted fault '{}' was not noticed", m.name));
    }
    return std::move(found_);
  }

 private:
  void say(std::string kind, std::string kernel, std::string id, std::string message,
           bool tolerated = false) {
    found_.push_back({std::move(kind), std::move(kernel), std::move(id), std::move(message), tolerated});
  }

  void failures() {
    for (const CaseResult& r : results_) {
      const bool bad = r.status == CaseStatus::failed || r.status == CaseStatus::mistrusted;
      const KnownFailure* known = nullptr;
      const bool listed = is_known(ledger_, r, &known);
      if (bad && listed && today_ <= known->expires)
        say("failed", kernel_key(r), r.id, fmt::format("known until {}: {}", known->expires, known->reason),
            true);
      else if (bad && listed)
        say("expired", kernel_key(r), r.id,
            fmt::format("excused until {}, and fails still: {}", known->expires, r.detail));
      else if (bad)
        say(r.check == kHarnessFault ? "error" : "failed", kernel_key(r), r.id,
            fmt::format("{}: {}: {}", name(r.status), r.check, r.detail));
      else if (listed && r.status == CaseStatus::passed)
        say("unexpected_pass", kernel_key(r), r.id,
            "passes, though the ledger calls it a known failure: strike it out");
    }
    for (const KnownFailure& known : ledger_) {
      const bool there = std::any_of(results_.begin(), results_.end(),
                                     [&](const CaseResult& r) { return is_about(known, r); });
      if (!there)
        say("vanished", known.kernel, known.id, "the ledger excuses a case that is examined no more");
    }
  }

  void kernel(const std::string& key, const KernelRecord& then) {
    const auto it = now_.kernels.find(key);
    if (it == now_.kernels.end()) return say("vanished", key, "", "the kernel is examined no more");
    const KernelRecord& now = it->second;
    KernelRecord still = then;  // a case that fails has been told, and is no part of the largest
    std::erase_if(still.ratios, [&](const auto& entry) { return !now.ratios.contains(entry.first); });
    const double largest = now.largest(), before = still.largest();
    const std::string drift = drift_of_ratio(before, largest);
    if (!drift.empty())
      say(drift, key, "",
          fmt::format("its largest error/budget was {:.3f} and is {:.3f}{}", before, largest,
                      drift == "better" ? ": is it still what it was?" : ""));
    for (const auto& [id, ratio] : then.ratios) {
      const auto at = now.ratios.find(id);
      if (at != now.ratios.end() && at->second > kCaseDrift * ratio && at->second > kFloor)
        say("worse", key, id, fmt::format("error/budget was {:.3f} and is {:.3f}", ratio, at->second));
      if (at == now.ratios.end() && !examined(key, id))
        say("vanished", key, id, "the case is examined no more");
    }
    declared(key, "accumulator_roundoff", then.accumulator_roundoff, now.accumulator_roundoff);
    declared(key, "operand_roundoff", then.operand_roundoff, now.operand_roundoff);
    if (then.promotion_interval && now.promotion_interval &&
        *then.promotion_interval != *now.promotion_interval)
      say("changed", key, "",
          fmt::format("its promotion_interval was {:g} and is {:g} (0: sums are never promoted)",
                      *then.promotion_interval, *now.promotion_interval));
    for (const auto& [property, value] : then.properties) {
      const auto at = now.properties.find(property);
      if (value == "yes" && (at == now.properties.end() || at->second != "yes"))
        say("property", key, "", "it is " + property + " no more");
    }
  }

  // A kernel that declares a coarser roundoff raises its own budget: ratios alone would call that better.
  void declared(const std::string& key, const char* what, std::optional<double> then,
                std::optional<double> now) {
    if (!then || !now || *then == *now) return;
    say("changed", key, "",
        fmt::format("its {} was {:g} and is {:g}: its budgets {}", what, *then, *now,
                    *now > *then ? "grew" : "shrank"));
  }

  bool examined(const std::string& key, const std::string& id) const {
    return std::any_of(results_.begin(), results_.end(), [&](const CaseResult& r) {
      return r.id == id && r.status != CaseStatus::skipped && kernel_key(r) == key;
    });
  }

  const Baseline& before_;
  const std::vector<CaseResult>& results_;
  const std::vector<MutantResult>& mutants_;
  const std::vector<KnownFailure>& ledger_;
  std::string today_;
  Baseline now_;
  std::vector<Deviation> found_;
};

}  // namespace

namespace {
std::string drift_by(double factor, double before, double now) {
  if (!(now <= factor * before) && !(now <= kFloor)) return "worse";
  return now * factor < before && before > kFloor ? "better" : "";
}
}  // namespace

std::string drift_of_ratio(double before, double now) {
  return drift_by(kDrift, before, now);
}
std::string drift_of_case(double before, double now) {
  return drift_by(kCaseDrift, before, now);
}

double KernelRecord::largest() const {
  double largest = 0;
  for (const auto& [id, ratio] : ratios) largest = std::max(largest, ratio);
  return largest;
}

std::string kernel_key(const CaseResult& r) {
  return r.id.substr(0, r.id.find(':')) + " " + r.kernel;
}

Baseline baseline_of(const std::vector<CaseResult>& results, const std::vector<MutantResult>& mutants) {
  Baseline baseline;
  for (const CaseResult& r : results) {
    if (r.status == CaseStatus::skipped || r.status == CaseStatus::unimplemented) continue;
    if (r.check == kHarnessFault) continue;
    KernelRecord& record = baseline.kernels[kernel_key(r)];
    record.accumulator_roundoff = r.roundoffs.accumulator;
    record.promotion_interval = static_cast<double>(r.roundoffs.promoted);
    record.operand_roundoff = r.roundoffs.operands;
    if (r.status == CaseStatus::passed) record.ratios[r.id] = r.measured.ratio;
    for (const auto& [property, value] : properties_of(r.properties)) {
      auto& known = record.properties.try_emplace(property, "untested").first->second;
      merge_property(known, value);
    }
  }
  for (const MutantResult& m : mutants) {
    if (m.caught) baseline.mutants.insert(m.op + ": " + m.name);
  }
  return baseline;
}

Json to_json(const Baseline& baseline) {
  Json kernels = Json::object();
  for (const auto& [key, record] : baseline.kernels) {
    Json ratios = Json::object(), properties = Json::object();
    // Four digits: more would change with every compiler.
    for (const auto& [id, ratio] : record.ratios) ratios[id] = std::round(ratio * 1e4) / 1e4;
    for (const auto& [property, value] : record.properties) properties[property] = value;
    Json& entry = kernels[key] = Json::object();
    if (record.accumulator_roundoff) entry["accumulator_roundoff"] = *record.accumulator_roundoff;
    if (record.promotion_interval) entry["promotion_interval"] = *record.promotion_interval;
    if (record.operand_roundoff) entry["operand_roundoff"] = *record.operand_roundoff;
    entry["properties"] = std::move(properties);
    entry["ratios"] = std::move(ratios);
  }
  Json figures = Json::object();
  for (const auto& [suite, record] : baseline.figures) {
    Json& of_suite = figures[suite] = Json::object();
    for (const auto& [name, value] : record) of_suite[name] = value;
  }
  return {{"schema", kSchema},
          {"kernels", std::move(kernels)},
          {"mutants", baseline.mutants},
          {"figures", std::move(figures)}};
}

namespace {

// Of cases that passed: an error is no less than nothing and no more than its budget.
double read_ratio(const std::string& id, const ParsedJson& ratio, const std::filesystem::path& file) {
  const double value = ratio.is_number() ? ratio.get<double>() : -1;
  if (!(value >= 0 && value <= 1))
    throw Error::input(fmt::format("the ratio of {} is {}, and no number from 0 to 1",
                                   escape_for_terminal(id), ratio.dump().substr(0, 40)))
        .in(file)
        .remedy(kWriteAgain);
  return value;
}

std::optional<double> read_declared(const ParsedJson& kernel, const char* key, double limit,
                                    const std::filesystem::path& file) {
  if (!kernel.contains(key)) return std::nullopt;
  const double value = kernel.at(key).is_number() ? kernel.at(key).get<double>() : -1;
  if (!(value >= 0 && value < limit))
    throw Error::input(fmt::format("'{}' is no number from 0 to {:g}", key, limit))
        .in(file)
        .remedy(kWriteAgain);
  return value;
}

KernelRecord read_kernel(const std::string& key, const ParsedJson& value, const std::filesystem::path& file) {
  using Type = ParsedJson::value_t;
  KernelRecord record;
  for (const auto& [id, ratio] : member(value, "ratios", file, Type::object).items())
    record.ratios[id] = read_ratio(id, ratio, file);
  for (const auto& [property, kept] : member(value, "properties", file, Type::object).items()) {
    const std::string word = kept.is_string() ? kept.get<std::string>() : "";
    if (word != "yes" && word != "no" && word != "untested")
      throw Error::input(fmt::format("the property {} of {} is none of yes, no, untested",
                                     escape_for_terminal(property), escape_for_terminal(key)))
          .in(file)
          .remedy(kWriteAgain);
    record.properties[property] = word;
  }
  record.accumulator_roundoff = read_declared(value, "accumulator_roundoff", 1, file);
  record.promotion_interval = read_declared(value, "promotion_interval", 0x1p32, file);
  record.operand_roundoff = read_declared(value, "operand_roundoff", 1, file);
  return record;
}

}  // namespace

Baseline read_baseline(const std::filesystem::path& file) {
  const ParsedJson document = read_json(file);
  using Type = ParsedJson::value_t;
  if (member(document, "schema", file, Type::string) != kSchema)
    throw Error::input("not a baseline of 'assay gate'")
        .in(file)
        .remedy("write one with 'assay gate --update'");
  Baseline baseline;
  for (const auto& [key, value] : member(document, "kernels", file, Type::object).items())
    baseline.kernels[key] = read_kernel(key, value, file);
  for (const ParsedJson& name : member(document, "mutants", file, Type::array)) {
    if (!name.is_string()) throw Error::input("a mutant without a name").in(file);
    baseline.mutants.insert(name.get<std::string>());
  }
  if (!document.contains("figures")) return baseline;  // as baselines were before there were suites
  for (const auto& [suite, record] : member(document, "figures", file, Type::object).items()) {
    if (!record.is_object()) throw Error::input("the figures of " + suite + " are no object").in(file);
    for (const auto& [name, value] : record.items()) {
      if (!value.is_number() && !value.is_string())
        throw Error::input("the figure " + name + " is neither number nor word").in(file);
      baseline.figures[suite][name] =
          value.is_string() ? Json(value.get<std::string>()) : Json(value.get<double>());
    }
  }
  return baseline;
}

bool is_day(const std::string& text) {
  static const std::regex day(R"(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))");
  return std::regex_match(text, day);
}

std::vector<KnownFailure> read_ledger(const std::filesystem::path& file) {
  const ParsedJson document = read_json(file);
  using Type = ParsedJson::value_t;
  std::vector<KnownFailure> ledger;
  for (const ParsedJson& entry : member(document, "known_failures", file, Type::array, kLedgerHelp)) {
    const auto word = [&](const char* key) {
      return member(entry, key, file, Type::string, kLedgerHelp).get<std::string>();
    };
    KnownFailure known = {word("kernel"), word("case"), word("reason"), word("expires")};
    if (known.reason.empty() || !is_day(known.expires))
      throw Error::input("a known failure needs a reason and a day on which it expires (2026-12-31)")
          .in(file);
    ledger.push_back(std::move(known));
  }
  return ledger;
}

std::vector<Deviation> deviations(const Baseline& before, const std::vector<CaseResult>& results,
                                  const std::vector<MutantResult>& mutants,
                                  const std::vector<KnownFailure>& ledger, const std::string& today) {
  return Comparing(before, results, mutants, ledger, today).run();
}

namespace {

// "12 cases are", "1 case is"
std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? " is" : "s are");
}

// Names of `now` that `before` lacks.
template <class Now, class Before, class Name>
std::vector<std::string> new_names(const Now& now, const Before& before, Name name) {
  std::vector<std::string> names;
  for (const auto& entry : now) {
    if (!before.contains(name(entry))) names.push_back(name(entry));
  }
  return names;
}

std::string not_recorded(const std::vector<std::string>& names, const char* what) {
  return fmt::format(
      "{} not in the baseline and held against nothing, such as {}; "
      "write it again with --update",
      counted(names.size(), what), names.front());
}

constexpr auto kKey = [](const auto& entry) { return entry.first; };

}  // namespace

std::vector<Deviation> unrecorded(const Baseline& before, const Baseline& now) {
  std::vector<Deviation> found;
  const auto say = [&](std::string where, std::string message, bool tolerated = false) {
    found.push_back({"unrecorded", std::move(where), "", std::move(message), tolerated});
  };
  const bool knows_gpu = std::any_of(before.kernels.begin(), before.kernels.end(),
                                     [](const auto& kernel) { return is_of_gpu(kernel.first); });
  for (const auto& [key, record] : now.kernels) {
    const auto known = before.kernels.find(key);
    const bool gpu = is_of_gpu(key);
    if (known == before.kernels.end()) {
      say(key, "the kernel is not in the baseline and held against nothing; write it again with --update",
          gpu && !knows_gpu);
      continue;
    }
    const auto cases = new_names(record.ratios, known->second.ratios, kKey);
    if (!cases.empty()) say(key, not_recorded(cases, "case"));
  }
  const auto mutants = new_names(now.mutants, before.mutants, std::identity{});
  if (!mutants.empty()) say("mutants", not_recorded(mutants, "planted fault"));
  for (const auto& [suite, record] : now.figures) {
    const auto known = before.figures.find(suite);
    const auto figures =
        new_names(record, known == before.figures.end() ? FigureRecord{} : known->second, kKey);
    if (!figures.empty()) say(suite, not_recorded(figures, "figure"));
  }
  return found;
}

bool is_of_gpu(std::string_view kernel) {
  return kernel.starts_with("cuda.") || kernel.find(" cuda.") != std::string_view::npos;
}

}  // namespace assay
