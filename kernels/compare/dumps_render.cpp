// A comparison of dumps as tables and lines, JSON and CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "kernels/compare/dumps.h"
#include "kernels/compare/style.h"
#include "kernels/harness/measure_json.h"

namespace assay {
namespace {

using dumps::DumpComparison;
using dumps::TapResult;

constexpr std::size_t kShowAll = 24;  // taps: a table of so many is read at a glance
constexpr std::size_t kFirst = 6, kWorst = 8, kNamesTold = 5, kRangesTold = 6;

std::string percent(double share) {
  if (share == 0) return "-";
  return share < 0.001 ? "<0.1%" : fmt::format("{:.1f}%", 100 * share);
}

std::string short_number(double value) {
  return value == 0 ? "0" : std::isfinite(value) ? fmt::format("{:.2g}", value) : "inf";
}

using Rows = std::vector<const TapResult*>;

void print_table(const Output& output, const Rows& rows) {
  using Align = Table::Align;
  Table table({"tap", "tokens", "width", "error/limit", "limit", "rel. Frobenius", "max abs", "1-cos",
               "elements over", "tokens over", "", "why"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::right, Align::right, Align::left, Align::left});
  for (const TapResult* tap : rows) {
    const dumps::TapError& e = tap->error;
    table.add({escape_for_terminal(tap->name), std::to_string(tap->rows), std::to_string(tap->width),
               short_number(e.ratio), short_number(tap->limit.element), short_number(e.frobenius),
               short_number(e.measure.max_abs), short_number(e.measure.one_minus_cosine),
               percent(tap->share_over()),
               e.rows_over == 0 ? "-" : fmt::format("{} from {}", e.rows_over, e.first_row),
               std::string(name(tap->status)), tap->diagnosis ? tap->diagnosis->code : ""});
  }
  output.line(table.render());
}

void tell(const Output& output, const TapResult& tap) {
  output.paint(fmt::format("{} {}", name(tap.status), escape_for_terminal(tap.name)), style_of(tap.status));
  if (tap.diagnosis) {
    output.line(fmt::format("  {}: {}", tap.diagnosis->code, escape_for_terminal(tap.diagnosis->detail)));
    if (!tap.diagnosis->remedy.empty())
      output.line(fmt::format("  {}", escape_for_terminal(tap.diagnosis->remedy)));
  }
  const dumps::TapError& e = tap.error;
  if (e.measure.elements > 0 && tap.width > 0) {
    output.line(
        fmt::format("  worst: token {}, column {}: {:.7g} against REF's {:.7g}; {} of the elements and {} of "
                    "{} tokens over",
                    e.measure.worst / tap.width, e.measure.worst % tap.width, tap.test_value, tap.ref_value,
                    percent(tap.share_over()), e.rows_over, tap.rows));
  }
  if (e.measure.pattern_faults > 0)
    output.line(fmt::format("  {} elements are finite in one dump alone", e.measure.pattern_faults));
  if (!tap.note.empty()) output.line("  " + escape_for_terminal(tap.note));
}

// A row for each kind of tap: where it first said no, and how bad it gets.
void print_kinds(const Output& output, const DumpComparison& found) {
  struct Kind {
    std::string name;
    std::size_t taps = 0, no = 0;
    const TapResult *first = nullptr, *worst = nullptr;
  };
  std::vector<Kind> kinds;
  for (const TapResult& tap : found.taps) {
    const std::string own = dumps::kind_of(tap.name);
    auto it = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == own; });
    if (it == kinds.end()) it = kinds.insert(kinds.end(), {own});
    ++it->taps;
    it->no += tap.said_no() ? 1 : 0;
    if (tap.said_no() && it->first == nullptr) it->first = &tap;
    if (it->worst == nullptr || !(tap.error.ratio <= it->worst->error.ratio)) it->worst = &tap;
  }
  using Align = Table::Align;
  Table table(
      {"kind", "taps", "not passed", "first", "largest error/limit", "rel. Frobenius there", "at"},
      {Align::left, Align::right, Align::right, Align::left, Align::right, Align::right, Align::left});
  for (const Kind& k : kinds)
    table.add({escape_for_terminal(k.name), std::to_string(k.taps), k.no == 0 ? "-" : std::to_string(k.no),
               k.first == nullptr ? "" : escape_for_terminal(k.first->name),
               short_number(k.worst->error.ratio), short_number(k.worst->error.frobenius),
               escape_for_terminal(k.worst->name)});
  output.line(table.render());
}

void print_names(const Output& output, std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::string line = fmt::format("{} {}: ", names.size(), what);
  for (std::size_t i = 0; i < std::min(names.size(), kNamesTold); ++i)
    line += fmt::format("{}{}", i == 0 ? "" : ", ", escape_for_terminal(names[i]));
  output.line(line + (names.size() > kNamesTold ? " …" : ""));
}

void print_limits(const Output& output, const CompareDumpsSettings& s, const DumpComparison& found) {
  if (!s.yardstick.empty())
    output.line(fmt::format("limit: twice the error of {}", escape_for_terminal(s.yardstick)));
  else if (s.rtol)
    output.line(fmt::format("limit: {} of the larger of |ref| and its token's size", *s.rtol));
  else {
    const dumps::Growth growth = dumps::measured_growth(found.precision);
    output.line(
        fmt::format("limit: {}·(u + 2^-24·√K)·√(10·(layer + 1)) of the larger of |ref| and its token's size, "
                    "{} in place of {} for the whole; u of {}",
                    growth.element, growth.norm, growth.element, name(found.precision)));
    if (found.count(CaseStatus::failed) > 0)
      output.line(
          "(a rule of thumb, from models that were measured: where roundings may have grown further, "
          "--yardstick tells)");
  }
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

Json tap_json(const TapResult& tap) {
  Json json = {
      {"name", tap.name},
      {"status", name(tap.status)},
      {"layer", tap.key.stage == dumps::kLayerStage ? Json(tap.key.layer) : Json()},
      {"diagnosis", Json()},
      {"types", {name(tap.ref_type), name(tap.test_type)}},
      {"tokens", tap.rows},
      {"tokens_left_out", tap.rows_left_out},
      {"width", tap.width},
      {"limit",
       {{"element", json_number(tap.limit.element)}, {"frobenius", json_number(tap.limit.frobenius)}}},
      {"ratio", json_number(tap.error.ratio)},
      {"frobenius", json_number(tap.error.frobenius)},
      {"share_over", tap.share_over()},
      {"tokens_over", tap.error.rows_over},
      {"first_token_over", tap.error.rows_over == 0 ? Json() : Json(tap.error.first_row)},
      {"metrics", to_json(tap.error.measure)},
      {"note", tap.note}};
  if (tap.diagnosis)
    json["diagnosis"] = {
        {"code", tap.diagnosis->code}, {"detail", tap.diagnosis->detail}, {"remedy", tap.diagnosis->remedy}};
  return json;
}

// Before any number: what other tokens give is no fault of arithmetic.
std::string different_inputs(const DumpComparison& found) {
  const TapResult* first = found.first_divergence();
  const std::string numbers =
      found.taps.empty() ? "no numbers were compared"
      : first == nullptr ? fmt::format("{} taps of {} tokens that both have agree",
                                       found.count(CaseStatus::passed), found.tokens)
                         : fmt::format("the numbers part from {} on", escape_for_terminal(first->name));
  return fmt::format("FAILED: different inputs: {}; {}", found.inputs, numbers);
}

}  // namespace

std::string tokens_over(const std::vector<double>& heat) {
  std::string text;
  std::size_t ranges = 0, untold = 0;
  for (std::size_t i = 0; i < heat.size(); ++i) {
    if (heat[i] <= 1) continue;
    std::size_t end = i;
    while (end + 1 < heat.size() && !(heat[end + 1] <= 1)) ++end;
    if (ranges++ < kRangesTold)
      text += fmt::format("{}{}", text.empty() ? "" : ", ",
                          end == i ? std::to_string(i) : fmt::format("{}-{}", i, end));
    else
      untold += end - i + 1;
    i = end;
  }
  return untold == 0 ? text : fmt::format("{} and {} more", text, untold);
}

std::string verdict_line(const DumpComparison& found) {
  if (!found.vacuous.empty()) return "MISTRUSTED: " + found.vacuous;
  const std::size_t passed = found.count(CaseStatus::passed), failed = found.count(CaseStatus::failed),
                    mistrusted = found.count(CaseStatus::mistrusted);
  if (!found.inputs.empty()) return different_inputs(found);
  if (const TapResult* first = found.first_divergence(); first != nullptr) {
    const std::string why = first->diagnosis ? fmt::format(" ({})", first->diagnosis->code) : "";
    return fmt::format("{}: first divergence {}{}{}; {} passed, {} failed, {} mistrusted",
                       failed > 0 ? "FAILED" : "MISTRUSTED", escape_for_terminal(first->name), why,
                       first->error.rows_over > 0 ? fmt::format(" at token {}", first->error.first_row) : "",
                       passed, failed, mistrusted);
  }
  if (!found.holes.empty())
    return fmt::format("FAILED: {} taps are missing of kinds that TEST has, first {}", found.holes.size(),
                       escape_for_terminal(found.holes.front()));
  return fmt::format("OK: {} taps of {} tokens agree", passed, found.tokens);
}

void print_comparison(const Output& output, const CompareDumpsSettings& s, const DumpComparison& found) {
  if (!found.inputs.empty()) output.paint("different inputs: " + found.inputs, Style::red);
  for (const std::string& note : found.notes) output.line("note: " + note);
  print_names(output, "of REF are not in TEST", found.missing);
  print_names(output, "of TEST are not in REF", found.extra);
  if (found.taps.empty()) return;
  print_limits(output, s, found);
  Rows all, no;
  for (const TapResult& tap : found.taps) {
    all.push_back(&tap);
    if (tap.said_no()) no.push_back(&tap);
  }
  if (s.all || all.size() <= kShowAll) {
    print_table(output, all);
  } else {
    print_kinds(output, found);
    Rows worst = all;
    const std::size_t shown = std::min(worst.size(), kWorst);
    std::partial_sort(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(shown), worst.end(),
                      [](const TapResult* a, const TapResult* b) { return a->error.ratio > b->error.ratio; });
    worst.resize(shown);
    if (!no.empty()) {
      output.paint("first", Style::bold);
      print_table(output,
                  Rows(no.begin(), no.begin() + static_cast<std::ptrdiff_t>(std::min(no.size(), kFirst))));
    }
    output.paint("worst", Style::bold);
    print_table(output, worst);
  }
  for (std::size_t i = 0; i < std::min(no.size(), kFirst); ++i) tell(output, *no[i]);
  if (no.size() > kFirst)
    output.line(fmt::format("… and {} more: --all, --csv or --json list them", no.size() - kFirst));
  if (const std::string over = tokens_over(found.token_heat); !over.empty())
    output.line(fmt::format("tokens with anything over its limit: {} (of {})", over, found.tokens));
}

Json to_json(const CompareDumpsSettings& s, const DumpComparison& found) {
  Json taps = Json::array(), heat = Json::array();
  for (const TapResult& tap : found.taps) taps.push_back(tap_json(tap));
  for (const double ratio : found.token_heat) heat.push_back(json_number(ratio));
  const TapResult* first = found.first_divergence();
  return {{"schema", "assay.compare/1"},
          {"tool", "assay " ASSAY_VERSION},
          {"verdict", !found.vacuous.empty() ? "mistrusted"
                      : found.good()         ? "ok"
                                             : "failed"},
          {"verdict_line", verdict_line(found)},
          {"dumps", {{"ref", s.ref}, {"test", s.test}, {"map", s.map}, {"yardstick", s.yardstick}}},
          {"precision", name(found.precision)},
          {"different_inputs", found.inputs.empty() ? Json() : Json(found.inputs)},
          {"first_divergence", first == nullptr ? Json() : Json(first->name)},
          {"taps", std::move(taps)},
          {"missing", found.missing},
          {"extra", found.extra},
          {"holes", found.holes},
          {"notes", found.notes},
          {"token_heat", std::move(heat)},
          {"summary",
           {{"passed", found.count(CaseStatus::passed)},
            {"failed", found.count(CaseStatus::failed)},
            {"mistrusted", found.count(CaseStatus::mistrusted)},
            {"tokens", found.tokens}}}};
}

std::string to_csv(const DumpComparison& found) {
  std::string csv =
      "tap,layer,status,diagnosis,tokens,width,ref_type,test_type,limit,ratio,frobenius,share_over,tokens_"
      "over,"
      "first_token_over,max_abs,max_rel,nmse,one_minus_cosine";
  for (std::size_t i = 0; i < kUlpClasses; ++i) csv += fmt::format(",ulp_{}", ulp_class_name(i));
  csv += '\n';
  for (const TapResult& tap : found.taps) {
    const ErrorMeasure& m = tap.error.measure;
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(tap.name),
                       tap.key.stage == dumps::kLayerStage ? std::to_string(tap.key.layer) : "",
                       name(tap.status), tap.diagnosis ? tap.diagnosis->code : "", tap.rows, tap.width,
                       name(tap.ref_type), name(tap.test_type), tap.limit.element, tap.error.ratio,
                       tap.error.frobenius, tap.share_over(), tap.error.rows_over,
                       tap.error.rows_over == 0 ? "" : std::to_string(tap.error.first_row), m.max_abs,
                       m.max_rel, m.nmse, m.one_minus_cosine);
    for (const std::uint64_t count : m.ulps) csv += fmt::format(",{}", count);
    csv += '\n';
  }
  return csv;
}

}  // namespace assay
