#include "refimpl/bench_url/report.h"

#include <fmt/format.h>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr auto kOnTheLeft = Table::Align::left, kOnTheRight = Table::Align::right;
constexpr double kMs = 1000;

std::string ms_of(double seconds) {
  return fmt::format("{:.2f}", seconds * kMs);
}

std::string level_in_words(const ServiceLevel& level) {
  std::string text;
  const auto add = [&](std::string_view name, const std::optional<double>& ms) {
    if (ms) text += fmt::format("{}{} ≤ {:g} ms", text.empty() ? "" : ", ", name, *ms);
  };
  add("TTFT", level.first_token_ms);
  add("TPOT", level.token_ms);
  add("every ITL a chunk", level.gap_ms);
  return text;
}

Json spread_json(const Spread& s) {
  if (s.count == 0) return {{"count", 0}};
  return {{"count", s.count},   {"mean", s.mean * kMs}, {"min", s.least * kMs}, {"p50", s.p50 * kMs},
          {"p90", s.p90 * kMs}, {"p95", s.p95 * kMs},   {"p99", s.p99 * kMs},   {"max", s.most * kMs}};
}

Json request_json(const RequestRecord& r) {
  Json chunks = Json::array();
  for (const ChunkArrival& chunk : r.chunks)
    chunks.push_back(Json::array({chunk.at * kMs, chunk.tokens ? Json(*chunk.tokens) : Json(nullptr)}));
  Json one = {{"index", r.index},
              {"end", r.end == RequestEnd::whole ? "whole"
                      : r.end == RequestEnd::cut ? "cut"
                                                 : "failed"},
              {"due_ms", r.due * kMs},
              {"sent_ms", r.sent * kMs},
              {"ended_ms", r.ended * kMs},
              {"prompt_wanted", r.prompt_wanted},
              {"output_wanted", r.output_wanted},
              {"prompt_tokens", r.usage ? Json(r.usage->prompt_tokens) : Json(nullptr)},
              {"output_tokens", r.output_tokens()},
              {"finish_reason", r.finish_reason},
              {"chunks", std::move(chunks)}};
  if (!r.error.empty()) one["error"] = r.error;
  return one;
}

}  // namespace

std::map<std::string, std::size_t> LoadReport::failures() const {
  std::map<std::string, std::size_t> counts;
  for (const RequestRecord& record : records.requests)
    if (record.end == RequestEnd::failed) ++counts[record.error];
  return counts;
}

std::vector<std::string> LoadReport::distrust() const {
  std::vector<std::string> reasons;
  for (const Identity& identity : identities)
    if (!identity.holds) reasons.push_back(fmt::format("{}: {}", identity.name, identity.wrong));
  if (latencies.empty()) reasons.emplace_back("no answer bore a token: nothing was measured");
  return reasons;
}

bool LoadReport::good() const {
  return distrust().empty() && figures.failed == 0;
}

std::string LoadReport::verdict() const {
  const std::vector<std::string> reasons = distrust();
  if (!reasons.empty()) return fmt::format("MISTRUSTED: {}", reasons.front());
  std::size_t proved = 0;
  for (const Identity& identity : identities) proved += identity.proved ? 1 : 0;
  const std::string held =
      fmt::format("{} of {} identities could be held, and do", proved, identities.size());
  if (figures.failed > 0) return fmt::format("FAILED: {} requests; of the others {}", figures.failed, held);
  return fmt::format("MEASURED: {}", held);
}

std::vector<ToldSpread> spreads_of(const LoadFigures& f) {
  return {{"ttft_ms", "TTFT", "first chunk that bears a token − sent", &f.first_token},
          {"itl_token_ms", "ITL a token",
           "a chunk of k tokens: k gaps of a k-th of its gap each; n − 1 a request", &f.token_gap,
           f.token_gaps_known},
          {"itl_chunk_ms", "ITL a chunk", "between chunks that bear tokens", &f.chunk_gap},
          {"tpot_ms", "TPOT", "(E2E − TTFT) / (n − 1), of each request", &f.per_token},
          {"e2e_ms", "E2E", "last chunk that bears a token − sent", &f.whole_answer},
          {"delay_ms", "delay", "sent − when it should have been", &f.delay}};
}

std::vector<ToldFigure> single_figures_of(const LoadReport& report) {
  const LoadFigures& f = report.figures;
  std::vector<ToldFigure> all = {
      {"output_tokens_per_second", "output tokens/s", "tokens made, of whole requests, by the duration",
       f.output_per_second},
      {"input_tokens_per_second", "input tokens/s", "tokens of their prompts, by the duration",
       f.input_per_second},
      {"requests_per_second", "requests/s", "whole requests by the duration", f.requests_per_second},
      {"concurrency", "mean concurrency", "requests in flight, over time", f.concurrency},
      {"e2e_concurrency", "ΣE2E / duration", "the same, less failures and what comes behind the last token",
       f.e2e_concurrency}};
  if (report.level.any())
    all.push_back({"goodput", "goodput, requests/s",
                   "whole requests that kept the service level, by the duration", f.goodput});
  return all;
}

void render_text(const LoadReport& report, const Output& output) {
  const LoadFigures& f = report.figures;
  output.line(fmt::format(
      "{}{}, {}: {}", escape_for_terminal(report.url), report.route,
      report.model.empty() ? "no model named" : "model " + escape_for_terminal(report.model), report.load));
  output.line(
      fmt::format("prompts: {}; tokens of a chunk: {}", report.prompts,
                  report.counted_by.empty() ? "the server does not tell" : "told by " + report.counted_by));
  output.line(
      fmt::format("{} requests: {} whole, {} failed, {} cut off, {} never sent; {:.2f} s from the first sent "
                  "to the last over\n",
                  report.records.planned, f.whole, f.failed, f.cut,
                  report.records.planned - f.whole - f.failed - f.cut, f.seconds));
  Table spreads(
      {"ms", "mean", "p50", "p90", "p95", "p99", "max", "is"},
      {kOnTheLeft, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheLeft});
  for (const ToldSpread& told : spreads_of(f)) {
    const Spread& s = *told.spread;
    if (!told.known || s.count == 0) {
      spreads.add(
          {std::string(told.name), "–", "–", "–", "–", "–", "–",
           fmt::format("{}{}", told.meaning, told.known ? "" : ": not known, the server does not tell")});
      continue;
    }
    spreads.add({std::string(told.name), ms_of(s.mean), ms_of(s.p50), ms_of(s.p90), ms_of(s.p95),
                 ms_of(s.p99), ms_of(s.most), std::string(told.meaning)});
  }
  output.line(spreads.render());
  Table figures({"", "", "is"}, {kOnTheLeft, kOnTheRight, kOnTheLeft});
  for (const ToldFigure& told : single_figures_of(report))
    figures.add({std::string(told.name), fmt::format("{:.2f}", told.value), std::string(told.meaning)});
  output.line(figures.render());
  if (report.level.any())
    output.line(
        fmt::format("{} of {} whole requests kept {}", f.in_time, f.whole, level_in_words(report.level)));
  if (f.at_context > 0)
    output.line(
        fmt::format("{} answers ended where the server's context does, after {} tokens: shorter than asked",
                    f.at_context, context_of(report.records).value_or(0)));
  for (const auto& [what, count] : report.failures())
    output.line(fmt::format("failed, {} times: {}", count, escape_for_terminal(what)));
  for (const Identity& identity : report.identities)
    output.line(fmt::format("  {} {}{}",
                            !identity.holds   ? "NOT TRUE"
                            : identity.proved ? "true    "
                                              : "not seen",
                            identity.name, identity.holds ? "" : ": " + escape_for_terminal(identity.wrong)));
  output.paint(escape_for_terminal(report.verdict()), report.good() ? Style::green : Style::red);
}

Json render_json(const LoadReport& report) {
  const LoadFigures& f = report.figures;
  Json document = {{"schema", "assay.bench/1"},
                   {"url", report.url},
                   {"route", report.route},
                   {"model", report.model},
                   {"load", report.load},
                   {"prompts", report.prompts},
                   {"tokens_counted_by", report.counted_by},
                   {"planned", report.records.planned},
                   {"whole", f.whole},
                   {"failed", f.failed},
                   {"cut", f.cut},
                   {"interrupted", report.interrupted},
                   {"seconds", f.seconds},
                   {"input_tokens", f.input_tokens},
                   {"output_tokens", f.output_tokens},
                   {"most_in_flight", f.most_in_flight},
                   {"ended_at_context", f.at_context}};
  Json definitions = Json::object();
  for (const ToldFigure& told : single_figures_of(report)) {
    document[std::string(told.key)] = told.value;
    definitions[std::string(told.key)] = told.meaning;
  }
  for (const ToldSpread& told : spreads_of(f)) {
    document[std::string(told.key)] = told.known ? spread_json(*told.spread) : Json(nullptr);
    definitions[std::string(told.key)] = told.meaning;
  }
  document["definitions"] = std::move(definitions);
  if (report.level.any()) document["slo"] = {{"level", level_in_words(report.level)}, {"in_time", f.in_time}};
  document["failures"] = Json::array();
  for (const auto& [what, count] : report.failures())
    document["failures"].push_back({{"error", what}, {"count", count}});
  document["identities"] = Json::array();
  for (const Identity& identity : report.identities)
    document["identities"].push_back({{"name", identity.name},
                                      {"holds", identity.holds},
                                      {"proved", identity.proved},
                                      {"wrong", identity.wrong}});
  document["verdict"] = report.verdict();
  document["requests"] = Json::array();
  for (const RequestRecord& record : report.records.requests)
    document["requests"].push_back(request_json(record));
  return document;
}

}  // namespace assay
