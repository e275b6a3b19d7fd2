#include "refimpl/bench_url/latency.h"

#include <algorithm>
#include <numeric>

#include "core/numeric/quantile.h"

namespace assay {
namespace {

std::optional<std::vector<double>> token_gaps_of(const RequestRecord& record) {
  // A server that tells nothing of chunks, and as many tokens as they are: one each.
  const bool one_each = !record.told_by_chunks() && record.output_tokens() == record.chunks.size();
  if (!one_each && !record.told_by_chunks()) return std::nullopt;
  std::vector<double> gaps;
  for (std::size_t i = 0; i < record.chunks.size(); ++i) {
    const std::size_t tokens = one_each ? 1 : *record.chunks[i].tokens;
    if (i == 0) {
      gaps.resize(tokens - 1, 0.0);
      continue;
    }
    const double gap = record.chunks[i].at - record.chunks[i - 1].at;
    gaps.insert(gaps.end(), tokens, gap / static_cast<double>(tokens));
  }
  return gaps;
}

double mean_in_flight(const std::vector<InFlightChange>& changes, std::size_t& most) {
  double integral = 0;
  long now = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i > 0) integral += static_cast<double>(now) * (changes[i].at - changes[i - 1].at);
    now += changes[i].by;
    most = std::max(most, static_cast<std::size_t>(std::max(0l, now)));
  }
  const double seconds = changes.empty() ? 0 : changes.back().at - changes.front().at;
  return seconds > 0 ? integral / seconds : 0;
}

}  // namespace

RequestLatency latency_of(const RequestRecord& record) {
  RequestLatency latency;
  latency.first_token = record.chunks.front().at - record.sent;
  latency.whole = record.chunks.back().at - record.sent;
  latency.tokens = record.output_tokens();
  if (latency.tokens > 1)
    latency.per_token = (latency.whole - latency.first_token) / static_cast<double>(latency.tokens - 1);
  for (std::size_t i = 1; i < record.chunks.size(); ++i)
    latency.chunk_gaps.push_back(record.chunks[i].at - record.chunks[i - 1].at);
  latency.token_gaps = token_gaps_of(record);
  return latency;
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const auto at = [&](double share) { return linear_quantile(values, share); };
  return {values.size(),  sum / static_cast<double>(values.size()),
          values.front(), at(0.5),
          at(0.9),        at(0.95),
          at(0.99),       values.back()};
}

bool keeps(const RequestLatency& latency, const ServiceLevel& level) {
  constexpr double kMs = 1000;
  if (level.first_token_ms && !(latency.first_token * kMs <= *level.first_token_ms)) return false;
  if (level.token_ms && latency.per_token && !(*latency.per_token * kMs <= *level.token_ms)) return false;
  return !level.gap_ms || std::all_of(latency.chunk_gaps.begin(), latency.chunk_gaps.end(),
                                      [&](double gap) { return gap * kMs <= *level.gap_ms; });
}

std::optional<std::size_t> context_of(const LoadRecords& load) {
  if (load.context) return load.context;
  const RequestRecord* first = nullptr;
  std::size_t longest = 0;
  bool of_two_lengths = false;
  for (const RequestRecord& record : load.requests) {
    if (record.end == RequestEnd::whole) longest = std::max(longest, record.all_tokens());
    if (!record.cut_short()) continue;
    if (first == nullptr) first = &record;
    if (record.all_tokens() != first->all_tokens()) return std::nullopt;
    of_two_lengths = of_two_lengths || record.prompt_wanted != first->prompt_wanted;
  }
  return of_two_lengths && longest == first->all_tokens() ? std::optional(longest) : std::nullopt;
}

bool ends_at_context(const RequestRecord& record, std::optional<std::size_t> context) {
  return context && record.cut_short() &&
         (record.all_tokens() == *context || record.all_tokens() + 1 == *context);
}

std::vector<RequestLatency> latencies_of(const LoadRecords& load) {
  std::vector<RequestLatency> latencies;
  for (const RequestRecord& record : load.requests)
    if (record.end == RequestEnd::whole && !record.chunks.empty()) latencies.push_back(latency_of(record));
  return latencies;
}

LoadFigures figures_of(const LoadRecords& load, const std::vector<RequestLatency>& latencies,
                       const ServiceLevel& level) {
  LoadFigures f;
  std::vector<double> delays;
  double begin = 0, end = 0;
  const std::optional<std::size_t> context = context_of(load);
  for (const RequestRecord& record : load.requests) {
    f.whole += record.end == RequestEnd::whole ? 1 : 0;
    f.failed += record.end == RequestEnd::failed ? 1 : 0;
    f.cut += record.end == RequestEnd::cut ? 1 : 0;
    begin = &record == &load.requests.front() ? record.sent : std::min(begin, record.sent);
    end = std::max(end, record.ended);
    delays.push_back(record.sent - record.due);
    if (record.end != RequestEnd::whole) continue;
    f.input_tokens += record.usage ? record.usage->prompt_tokens : record.prompt_wanted;
    f.output_tokens += record.output_tokens();
    f.at_context += ends_at_context(record, context) ? 1 : 0;
  }
  std::vector<double> first, whole, per_token, chunk_gaps, token_gaps;
  for (const RequestLatency& latency : latencies) {
    first.push_back(latency.first_token);
    whole.push_back(latency.whole);
    if (latency.per_token) per_token.push_back(*latency.per_token);
    chunk_gaps.insert(chunk_gaps.end(), latency.chunk_gaps.begin(), latency.chunk_gaps.end());
    f.token_gaps_known = f.token_gaps_known && latency.token_gaps.has_value();
    if (latency.token_gaps)
      token_gaps.insert(token_gaps.end(), latency.token_gaps->begin(), latency.token_gaps->end());
    f.in_time += keeps(latency, level) ? 1 : 0;
  }
  if (!f.token_gaps_known) token_gaps.clear();
  f.seconds = end - begin;
  const auto a_second = [&](double value) { return f.seconds > 0 ? value / f.seconds : 0; };
  f.requests_per_second = a_second(static_cast<double>(f.whole));
  f.output_per_second = a_second(static_cast<double>(f.output_tokens));
  f.input_per_second = a_second(static_cast<double>(f.input_tokens));
  f.goodput = a_second(static_cast<double>(f.in_time));
  f.e2e_concurrency = a_second(std::accumulate(whole.begin(), whole.end(), 0.0));
  f.concurrency = mean_in_flight(load.changes, f.most_in_flight);
  f.first_token = spread_of(std::move(first));
  f.whole_answer = spread_of(std::move(whole));
  f.per_token = spread_of(std::move(per_token));
  f.chunk_gap = spread_of(std::move(chunk_gaps));
  f.token_gap = spread_of(std::move(token_gaps));
  f.delay = spread_of(std::move(delays));
  return f;
}

}  // namespace assay
