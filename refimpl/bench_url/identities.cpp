#include "refimpl/bench_url/identities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace assay {
namespace {

// Sums of times of the same clock: differences are of rounding alone. A millisecond would be seen.
bool equal_sums(double a, double b) {
  return std::abs(a - b) <= 1e-6 + 1e-9 * std::max(std::abs(a), std::abs(b));
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<const RequestRecord*> measured(const LoadRecords& load) {
  std::vector<const RequestRecord*> records;
  for (const RequestRecord& record : load.requests)
    if (record.end == RequestEnd::whole && !record.chunks.empty()) records.push_back(&record);
  return records;
}

// Of each request that is whole: "" where it holds, nullopt where there is nothing to ask, or what is wrong.
using Question = std::function<std::optional<std::string>(const RequestRecord&)>;

Identity of_each(const std::string& name, const LoadRecords& load, const Question& question) {
  Identity identity{.name = name, .proved = false, .wrong = {}};
  std::size_t wrong = 0;
  for (const RequestRecord& record : load.requests) {
    if (record.end != RequestEnd::whole) continue;
    const std::optional<std::string> answer = question(record);
    if (!answer) continue;
    identity.proved = true;
    if (answer->empty()) continue;
    if (++wrong == 1) identity.wrong = fmt::format("request {}: {}", record.index, *answer);
  }
  identity.holds = wrong == 0;
  if (wrong > 1) identity.wrong += fmt::format(", and {} others", wrong - 1);
  return identity;
}

using LatencyQuestion =
    std::function<std::optional<std::string>(const RequestRecord&, const RequestLatency&)>;

Identity of_latencies(const std::string& name, const LoadRecords& load,
                      const std::vector<RequestLatency>& latencies, const LatencyQuestion& question) {
  const std::vector<const RequestRecord*> records = measured(load);
  if (records.size() != latencies.size())
    return {.name = name,
            .holds = false,
            .wrong = fmt::format("{} requests, {} of them measured", records.size(), latencies.size())};
  std::size_t at = 0;
  return of_each(name, load, [&](const RequestRecord& record) -> std::optional<std::string> {
    if (record.chunks.empty()) return std::nullopt;
    return question(record, latencies[at++]);
  });
}

std::string unless_equal(double a, double b) {
  return equal_sums(a, b) ? "" : fmt::format("{:.6f} s and {:.6f} s", a, b);
}

// Between the first chunk that bears a token and the last one.
double writing_time(const RequestRecord& record) {
  return record.chunks.back().at - record.chunks.front().at;
}

// vllm#7242: a TTFT among the ITLs. vllm#15106: a first token that is none.
Identity gaps_add_up(const LoadRecords& load, const std::vector<RequestLatency>& latencies) {
  return of_latencies("ΣITL = E2E − TTFT", load, latencies,
                      [](const RequestRecord& record, const RequestLatency& l) -> std::optional<std::string> {
                        if (l.chunk_gaps.size() + 1 != record.chunks.size())
                          return fmt::format("{} gaps between {} chunks", l.chunk_gaps.size(),
                                             record.chunks.size());
                        if (!equal_sums(l.whole - l.first_token, writing_time(record)))
                          return unless_equal(l.whole - l.first_token, writing_time(record));
                        return unless_equal(sum_of(l.chunk_gaps), l.whole - l.first_token);
                      });
}

// sglang#12064, vllm#42661: gaps between chunks given as those between tokens have the sum, and not the number.
Identity token_gaps_are_of_tokens(const LoadRecords& load, const std::vector<RequestLatency>& latencies) {
  return of_latencies("mean ITL a token = TPOT", load, latencies,
                      [](const RequestRecord&, const RequestLatency& l) -> std::optional<std::string> {
                        if (!l.token_gaps) return std::nullopt;
                        if (l.token_gaps->size() + 1 != l.tokens)
                          return fmt::format("{} gaps between {} tokens", l.token_gaps->size(), l.tokens);
                        const double tpot = l.per_token.value_or(0);
                        return unless_equal(sum_of(*l.token_gaps), tpot * static_cast<double>(l.tokens - 1));
                      });
}

Identity requests_are_counted(const LoadRecords& load, const LoadFigures& f) {
  long begun = 0, over = 0;
  for (const InFlightChange& change : load.changes) (change.by > 0 ? begun : over) += 1;
  const auto told = static_cast<long>(f.whole + f.failed + f.cut);
  Identity identity{.name = "requests sent = whole + failed + cut off", .wrong = {}};
  identity.holds = begun == told && over == told;
  if (!identity.holds) identity.wrong = fmt::format("{} begun, {} over, {} told", begun, over, told);
  return identity;
}

// Little's law over the records, against the count of those in flight.
Identity concurrency_is_the_integral(const LoadRecords& load, const LoadFigures& f) {
  Identity identity{.name = "mean concurrency = Σ(end − sent) / duration", .wrong = {}};
  double sum = 0;
  for (const RequestRecord& record : load.requests) sum += record.ended - record.sent;
  const double mean = f.seconds > 0 ? sum / f.seconds : 0;
  identity.holds = std::abs(mean - f.concurrency) <= 1e-6 * std::max(1.0, mean);
  if (!identity.holds) identity.wrong = fmt::format("{:.4f} and {:.4f}", f.concurrency, mean);
  return identity;
}

Identity e2e_lies_within(const LoadRecords& load, const LoadFigures& f) {
  double rest = 0;  // what is in flight and no E2E: failures, and what comes behind the last token
  for (const RequestRecord& record : load.requests) {
    const bool counted = record.end == RequestEnd::whole && !record.chunks.empty();
    rest += record.ended - (counted ? record.chunks.back().at : record.sent);
  }
  Identity identity{.name = "mean concurrency = ΣE2E / duration, and what is no E2E", .wrong = {}};
  const double mean = f.e2e_concurrency + (f.seconds > 0 ? rest / f.seconds : 0);
  identity.holds = std::abs(mean - f.concurrency) <= 1e-6 * std::max(1.0, mean);
  if (!identity.holds) identity.wrong = fmt::format("{:.4f} and {:.4f}", f.concurrency, mean);
  return identity;
}

Identity loop_is_closed(const LoadRecords& load, const LoadFigures& f) {
  Identity identity{
      .name = "in flight ≤ concurrency asked", .proved = load.concurrency.has_value(), .wrong = {}};
  identity.holds = !load.concurrency || f.most_in_flight <= *load.concurrency;
  if (!identity.holds) identity.wrong = fmt::format("{} in flight", f.most_in_flight);
  return identity;
}

// vllm#56101, sglang#39826: usage counts what was thrown away. sglang#30188: logprobs of fewer tokens than came.
Identity usage_is_what_came(const LoadRecords& load) {
  return of_each("usage = tokens that came", load, [](const RequestRecord& r) -> std::optional<std::string> {
    const auto told = r.told_by_chunks();
    if (!told || !r.usage) return std::nullopt;
    if (*told == r.usage->completion_tokens) return "";
    return fmt::format("usage says {} tokens, the chunks bore {}", r.usage->completion_tokens, *told);
  });
}

Identity no_more_than_asked(const LoadRecords& load) {
  return of_each("tokens ≤ max_tokens; = where it ended by length", load,
                 [context = context_of(load)](const RequestRecord& r) -> std::optional<std::string> {
                   const std::size_t made = r.output_tokens();
                   const bool right =
                       made <= r.output_wanted && (!r.cut_short() || ends_at_context(r, context));
                   if (!r.usage && !r.told_by_chunks()) return std::nullopt;
                   return right ? "" : fmt::format("{} tokens, {} were asked", made, r.output_wanted);
                 });
}

// inference-perf#649: a text that is split into other tokens than it was made of.
Identity prompts_are_exact(const LoadRecords& load) {
  return of_each("prompt tokens = those asked", load,
                 [](const RequestRecord& r) -> std::optional<std::string> {
                   if (!r.usage) return std::nullopt;
                   if (r.usage->prompt_tokens == r.prompt_wanted) return "";
                   return fmt::format("{} tokens, {} were meant", r.usage->prompt_tokens, r.prompt_wanted);
                 });
}

Identity pieces_are_the_text(const LoadRecords& load) {
  return of_each("tokens that logprobs name = text that came", load,
                 [](const RequestRecord& r) -> std::optional<std::string> {
                   return r.pieces_differ ? "they spell another text" : "";
                 });
}

}  // namespace

std::vector<Identity> check_identities(const LoadRecords& load, const std::vector<RequestLatency>& latencies,
                                       const LoadFigures& figures) {
  return {requests_are_counted(load, figures),
          concurrency_is_the_integral(load, figures),
          e2e_lies_within(load, figures),
          loop_is_closed(load, figures),
          gaps_add_up(load, latencies),
          token_gaps_are_of_tokens(load, latencies),
          usage_is_what_came(load),
          no_more_than_asked(load),
          prompts_are_exact(load),
          pieces_are_the_text(load)};
}

}  // namespace assay
