// Results of kernels as tables, lines, JSON and CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "kernels/compare/kernels.h"
#include "kernels/compare/style.h"
#include "kernels/harness/measure_json.h"

namespace assay {
namespace {

std::string_view op_of(std::string_view id) {
  return id.substr(0, id.find(':'));
}

Kept worse(Kept a, Kept b) {
  if (a == Kept::no || b == Kept::no) return Kept::no;
  return a == Kept::yes || b == Kept::yes ? Kept::yes : Kept::untested;
}

Json properties_json(const Properties& p) {
  return {{"repeatable", name(p.repeatable)},
          {"layout_invariant", name(p.layout_invariant)},
          {"thread_invariant", name(p.thread_invariant)},
          {"batch_invariant", name(p.batch_invariant)},
          {"chunk_invariant", name(p.chunk_invariant)},
          {"isolated", name(p.isolated)}};
}

std::string mark(Kept kept) {
  return kept == Kept::yes ? "yes" : kept == Kept::no ? "NO" : "-";
}

// What the budget rests on: "2^-24" of sums, "2^-14/128" of sums promoted every 128 terms, and of operands
// where these are rounded first.
std::string roundoff_of(const KernelSummary& s) {
  const auto power = [](double u) { return fmt::format("2^{:.3g}", std::log2(u)); };
  std::string text = power(s.roundoffs.accumulator);
  if (s.roundoffs.promoted > 0) text += fmt::format("/{}", s.roundoffs.promoted);
  return s.roundoffs.operands > 0 ? text + ", " + power(s.roundoffs.operands) : text;
}

void add_roundoffs(Json& to, const Roundoffs& u) {
  to["accumulator_roundoff"] = u.accumulator;
  to["promotion_interval"] = u.promoted;
  to["operand_roundoff"] = u.operands;
}

std::string count(const KernelSummary& s, CaseStatus status) {
  const auto it = s.counts.find(status);
  return it == s.counts.end() ? "-" : std::to_string(it->second);
}

}  // namespace

std::vector<KernelSummary> summarize(const std::vector<CaseResult>& results) {
  std::vector<KernelSummary> summaries;
  for (const CaseResult& r : results) {
    const std::string op(op_of(r.id));
    auto it = std::find_if(summaries.begin(), summaries.end(),
                           [&](const KernelSummary& s) { return s.op == op && s.kernel == r.kernel; });
    if (it == summaries.end())
      it = summaries.insert(summaries.end(), {.op = op, .kernel = r.kernel, .device = r.device});
    ++it->counts[r.status];
    it->unavailable = r.check == kUnavailable;
    it->roundoffs = r.roundoffs;
    if (!(r.measured.ratio <= it->ratio)) {
      it->ratio = r.measured.ratio;
      it->ratio_at = r.id;
    }
    it->properties = {worse(it->properties.repeatable, r.properties.repeatable),
                      worse(it->properties.layout_invariant, r.properties.layout_invariant),
                      worse(it->properties.thread_invariant, r.properties.thread_invariant),
                      worse(it->properties.batch_invariant, r.properties.batch_invariant),
                      worse(it->properties.chunk_invariant, r.properties.chunk_invariant),
                      worse(it->properties.isolated, r.properties.isolated)};
  }
  return summaries;
}

namespace {

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace

std::string reproducer(const CaseResult& r) {
  if (r.status == CaseStatus::unimplemented) return "";
  const std::string plugin = r.plugin.empty() ? "" : fmt::format("--plugin {} ", shell_quoted(r.plugin));
  return fmt::format("assay compare kernels {}--kernel '^{}$' --case '{}'", plugin, r.kernel, r.id);
}

Json to_json(const CaseResult& r) {
  Json json = {{"id", r.id},
               {"op", op_of(r.id)},
               {"kernel", r.kernel},
               {"device", name(r.device)},
               {"plugin", r.plugin},
               {"status", name(r.status)},
               {"check", r.check},
               {"detail", r.detail},
               {"ratio", json_number(r.measured.ratio)},
               {"metrics", to_json(r.measured)},
               {"properties", properties_json(r.properties)},
               {"reproducer", reproducer(r)}};
  add_roundoffs(json, r.roundoffs);
  return json;
}

Json to_json(const KernelSummary& s) {
  Json counts = Json::object();
  for (const auto& [status, n] : s.counts) counts[std::string(name(status))] = n;
  Json json = {{"op", s.op},
               {"kernel", s.kernel},
               {"device", name(s.device)},
               {"counts", std::move(counts)},
               {"ratio", json_number(s.ratio)},
               {"ratio_at", s.ratio_at},
               {"properties", properties_json(s.properties)}};
  add_roundoffs(json, s.roundoffs);
  return json;
}

void print_list(const Output& output, const std::vector<KernelLabel>& kernels) {
  Table table({"op", "kernel", "device", "what it is"}, std::vector(4, Table::Align::left));
  for (const KernelLabel& k : kernels) {
    const std::string here = k.unavailable.empty() ? "" : " (SKIPPED: " + k.unavailable + ")";
    table.add({k.op, k.name, std::string(name(k.device)), escape_for_terminal(k.about) + here});
  }
  output.line(table.render());
}

// "SKIPPED: no CUDA device: …" once, with the number of kernels it holds for.
static void print_unavailable(const Output& output, const std::vector<CaseResult>& results) {
  std::map<std::string, std::size_t> reasons;
  for (const CaseResult& r : results) {
    if (r.check == kUnavailable) ++reasons[r.detail];
  }
  for (const auto& [reason, kernels] : reasons)
    output.line(fmt::format("SKIPPED: {} ({} kernel{})", reason, kernels, kernels == 1 ? "" : "s"));
}

void print_results(const Output& output, const std::vector<CaseResult>& results, bool all_cases) {
  using Align = Table::Align;
  Table table({"op", "kernel", "passed", "failed", "mistrusted", "skipped", "error/budget", "roundoff",
               "repeat", "layout", "threads", "batch", "chunk"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::left, Align::left, Align::left, Align::left, Align::left});
  for (const KernelSummary& s : summarize(results)) {
    if (s.counts.contains(CaseStatus::unimplemented) || s.unavailable) continue;
    table.add({s.op, s.kernel, count(s, CaseStatus::passed), count(s, CaseStatus::failed),
               count(s, CaseStatus::mistrusted), count(s, CaseStatus::skipped),
               fmt::format("{:.3f}", s.ratio), roundoff_of(s), mark(s.properties.repeatable),
               mark(s.properties.layout_invariant), mark(s.properties.thread_invariant),
               mark(s.properties.batch_invariant), mark(s.properties.chunk_invariant)});
  }
  const bool any_ran = std::any_of(results.begin(), results.end(), [](const CaseResult& r) {
    return r.check != kUnavailable && r.status != CaseStatus::unimplemented;
  });
  if (any_ran) output.line(table.render());
  print_unavailable(output, results);
  for (const CaseResult& r : results) {
    const bool telling = r.status == CaseStatus::failed || r.status == CaseStatus::mistrusted;
    if (!telling && !(all_cases && r.status != CaseStatus::skipped)) continue;
    output.paint(fmt::format("{} {} {}", name(r.status), r.kernel, r.id), style_of(r.status));
    if (r.status == CaseStatus::unimplemented) continue;
    const ErrorMeasure& m = r.measured;
    std::string ulps;
    for (std::size_t i = 0; i < kUlpClasses; ++i) {
      if (m.ulps[i] != 0) ulps += fmt::format("  {}: {}", ulp_class_name(i), m.ulps[i]);
    }
    if (m.ratio != 0 || !ulps.empty())  // a kernel that crashed yields nothing to measure
      output.line(
          fmt::format("  error/budget {:.3f}  max abs {:.3g}  max rel {:.3g}  NMSE {:.3g}  1-cos {:.3g}",
                      m.ratio, m.max_abs, m.max_rel, m.nmse, m.one_minus_cosine));
    if (!ulps.empty()) output.line("  ulps" + ulps);
    if (!r.check.empty()) output.line(fmt::format("  {}: {}", r.check, escape_for_terminal(r.detail)));
    if (telling) output.line("  " + escape_for_terminal(reproducer(r)));
  }
}

Json to_json(const MutantResult& r) {
  return {{"name", r.name},
          {"op", r.op},
          {"family", r.family},
          {"caught", r.caught},
          {"by", r.caught ? Json{{"case", r.by_case}, {"check", r.by_check}, {"detail", r.detail}} : Json()},
          {"smallest", r.smallest},
          {"smaller_missed", r.smallest_missed && r.caught}};
}

void print_mutants(const Output& output, const std::vector<MutantResult>& results) {
  Table table({"op", "planted fault", "family", "caught by", "in", "down to"},
              std::vector(6, Table::Align::left));
  for (const MutantResult& r : results)
    table.add({r.op, r.name, r.family, r.caught ? r.by_check : "NOT CAUGHT", r.caught ? r.by_case : "",
               r.smallest.empty() ? "" : r.smallest + (r.smallest_missed ? "" : " (the smallest tried)")});
  output.line(table.render());
}

std::string to_csv(const std::vector<CaseResult>& results) {
  std::string csv =
      "id,kernel,device,status,check,ratio,max_abs,max_rel,nmse,one_minus_cosine,repeatable,"
      "thread_invariant,batch_invariant\n";
  for (const CaseResult& r : results) {
    const ErrorMeasure& m = r.measured;
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", r.id, r.kernel, name(r.device),
                       name(r.status), r.check, m.ratio, m.max_abs, m.max_rel, m.nmse, m.one_minus_cosine,
                       name(r.properties.repeatable), name(r.properties.thread_invariant),
                       name(r.properties.batch_invariant));
  }
  return csv;
}

}  // namespace assay
