#include "kernels/gate/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/json.h"
#include "kernels/gate/baseline.h"

namespace assay {
namespace {

constexpr double kDecibels = 0.01;

// "worse", "better", or nothing.
std::string drift_of(const GateFigure& now, double before) {
  if (now.drift == Drift::decibels) {
    if (now.value < before - kDecibels) return "worse";
    return now.value > before + kDecibels ? "better" : "";
  }
  return now.drift == Drift::one_case ? drift_of_case(before, now.value) : drift_of_ratio(before, now.value);
}

std::string shown(const Json& value) {
  return value.is_string() ? value.get<std::string>() : fmt::format("{:.4g}", value.get<double>());
}

class ComparingFigures {
 public:
  ComparingFigures(const std::string& suite, const std::vector<KnownFailure>& ledger,
                   const std::string& today)
      : suite_(suite), ledger_(ledger), today_(today) {}

  void held(const GateFigure& figure) {
    const auto known = std::find_if(ledger_.begin(), ledger_.end(), [&](const KnownFailure& k) {
      return k.kernel == suite_ && k.id == figure.name;
    });
    const bool listed = known != ledger_.end();
    if (!figure.holds && listed && today_ <= known->expires)
      say("failed", figure.name, fmt::format("known until {}: {}", known->expires, known->reason), true);
    else if (!figure.holds && listed)
      say("expired", figure.name,
          fmt::format("excused until {}, and fails still: {}", known->expires, figure.detail));
    else if (!figure.holds)
      say("failed", figure.name, figure.detail);
    else if (listed)
      say("unexpected_pass", figure.name,
          "passes, though the ledger calls it a known failure: strike it out");
  }

  void moved(const GateFigure& now, const Json& before) {
    const Json is = record_of(now);
    // Errors are no less than nothing: a remembered number that is was never measured.
    const bool impossible = now.drift != Drift::decibels && before.is_number() && before.get<double>() < 0;
    if (now.drift == Drift::exact || before.is_string() || impossible) {
      if (is != before) say("changed", now.name, fmt::format("was {} and is {}", shown(before), shown(is)));
      return;
    }
    const std::string kind = drift_of(now, before.get<double>());
    if (kind.empty()) return;
    const char* unit = now.drift == Drift::decibels ? " dB" : "";
    say(kind, now.name,
        fmt::format("was {}{} and is {}{}{}", shown(before), unit, shown(is), unit,
                    kind == "better" ? ": is it still what it was?" : ""));
  }

  void say(std::string kind, std::string id, std::string message, bool tolerated = false) {
    found.push_back({std::move(kind), suite_, std::move(id), std::move(message), tolerated});
  }

  static Json record_of(const GateFigure& figure) {
    if (figure.drift == Drift::exact) return figure.word;
    // Four digits: more would change with every compiler.
    return std::isfinite(figure.value) ? Json(std::round(figure.value * 1e4) / 1e4)
                                       : Json(fmt::format("{}", figure.value));
  }

  std::vector<Deviation> found;

 private:
  const std::string& suite_;
  const std::vector<KnownFailure>& ledger_;
  const std::string& today_;
};

}  // namespace

GateFigure broken_figure(std::string name, const std::exception& error) {
  return {.name = std::move(name),
          .drift = Drift::exact,
          .word = "no",
          .holds = false,
          .detail = fmt::format("could not be run: {}", error.what()),
          .measured = false};
}

FigureRecords records_of(const SuiteResults& results) {
  FigureRecords records;
  for (const auto& [suite, figures] : results) {
    for (const GateFigure& figure : figures) {
      if (figure.measured) records[suite][figure.name] = ComparingFigures::record_of(figure);
    }
  }
  return records;
}

std::vector<Deviation> figure_deviations(const FigureRecords& before, const SuiteResults& now,
                                         const std::vector<KnownFailure>& ledger, const std::string& today) {
  std::vector<Deviation> all;
  for (const auto& [suite, figures] : now) {
    const auto measured = [&figures = figures](const std::string& figure) {
      return std::any_of(figures.begin(), figures.end(),
                         [&](const GateFigure& f) { return f.name == figure; });
    };
    ComparingFigures comparing(suite, ledger, today);
    const auto record = before.find(suite);
    for (const GateFigure& figure : figures) {
      comparing.held(figure);
      if (record == before.end() || !record->second.contains(figure.name)) continue;
      if (figure.holds) comparing.moved(figure, record->second.at(figure.name));
    }
    if (record != before.end()) {
      for (const auto& [name, value] : record->second) {
        if (!measured(name)) comparing.say("vanished", name, "the figure is measured no more");
      }
    }
    for (const KnownFailure& known : ledger) {
      if (known.kernel == suite && !measured(known.id))
        comparing.say("vanished", known.id, "the ledger excuses a figure that is measured no more");
    }
    all.insert(all.end(), comparing.found.begin(), comparing.found.end());
  }
  return all;
}

}  // namespace assay
