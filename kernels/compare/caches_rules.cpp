// `compare caches --truth`: each method against its authors' rule, computed by others; with --mutants faults planted in
// them, each of which has to be seen.
#include <fmt/format.h>

#include <algorithm>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/compare/caches.h"
#include "refimpl/claims/cache_faults.h"

namespace assay {
namespace {

using Align = Table::Align;

Json rules_json(const std::vector<RuleVerdict>& rules) {
  Json list = Json::array();
  for (const RuleVerdict& rule : rules)
    list.push_back({{"cache", rule.of},
                    {"error", rule.found.error},
                    {"holds", rule.found.holds()},
                    {"wrong", rule.found.wrong()}});
  return list;
}

Json faults_json(const std::vector<PlantedCacheFault>& faults) {
  Json list = Json::array();
  for (const PlantedCacheFault& planted : faults)
    list.push_back({{"number", planted.fault.number},
                    {"shipped_in", planted.fault.shipped_in},
                    {"fault", planted.fault.what},
                    {"of", planted.fault.of},
                    {"caught", !planted.seen.empty()},
                    {"by", planted.seen}});
  return list;
}

std::string rules_table(const std::vector<RuleVerdict>& rules) {
  Table table({"cache", "", "logits off, of the largest", ""},
              {Align::left, Align::left, Align::right, Align::left});
  for (const RuleVerdict& rule : rules)
    table.add({escape_for_terminal(rule.of), rule.found.holds() ? "as its rule" : "OTHERWISE",
               fmt::format("{:.3g}", std::max(0.0, rule.found.error)), rule.found.wrong()});
  return table.render();
}

std::string faults_table(const std::vector<PlantedCacheFault>& faults) {
  Table table({"", "shipped in", "fault", "of", "", "seen"},
              {Align::right, Align::left, Align::left, Align::left, Align::left, Align::left});
  for (const auto& [fault, seen] : faults)
    table.add({fault.number == 0 ? "" : std::to_string(fault.number), fault.shipped_in, fault.what,
               escape_for_terminal(fault.of), seen.empty() ? "MISSED" : "caught", seen});
  return table.render();
}

template <class List, class Good>
std::size_t bad_of(const List& list, const Good& good) {
  return list.size() - static_cast<std::size_t>(std::count_if(list.begin(), list.end(), good));
}

}  // namespace

int run_cache_rules(const CompareCachesSettings& s, const Output& output) {
  CacheRuleChecks checks(s.model, s.truth, s.common.jobs);
  const std::vector<RuleVerdict> rules = checks.as_it_is();
  const std::size_t wrong = bad_of(rules, [](const RuleVerdict& rule) { return rule.found.holds(); });
  Json document = {{"schema", "assay.compare.caches/1"}, {"truth", s.truth}, {"rules", rules_json(rules)}};
  bool good = wrong == 0 && !rules.empty();
  std::string shown = rules_table(rules),
              verdict = good
                            ? fmt::format("{} caches kept and read as their authors' rules say", rules.size())
                            : fmt::format("{} of {} caches are not as their rules say", wrong, rules.size());
  if (s.mutants && good) {  // a fault is told from what is right without it
    const std::vector<PlantedCacheFault> faults = checks.planted();
    const std::size_t missed = bad_of(faults, [](const auto& planted) { return !planted.seen.empty(); });
    good = missed == 0 && !faults.empty();
    document["mutants"] = faults_json(faults);
    shown = faults_table(faults);
    verdict = good ? fmt::format("{} planted faults caught; without them {}", faults.size(), verdict)
                   : fmt::format("{} of {} planted faults were missed", missed, faults.size());
  }
  if (interrupted()) return kExitInterrupted;
  output.json(document);
  output.line(shown);
  output.paint(fmt::format("{}: {}", good ? "OK" : "FAILED", verdict), good ? Style::green : Style::red);
  return good ? kExitOk : kExitCheckFailed;
}

}  // namespace assay
