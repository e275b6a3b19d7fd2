// Figures of a load, made of records alone: no clock is asked here.
//
//   TTFT   first chunk that bears a token − sent
//   E2E    last chunk that bears a token − sent
//   ITL a chunk   between two chunks that bear tokens
//   ITL a token   the same, where a chunk of k tokens ends k gaps of a k-th each; the tokens that came with the first one: 0.
//                 A request of n tokens has n − 1, and their mean is its TPOT
//   TPOT   (E2E − TTFT) / (n − 1)
//
// Published tables give the one ITL or the other, and do not say which (vllm#42661, sglang#12064).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/bench_url/request_record.h"

namespace assay {

// Seconds, of one request that bore a token.
struct RequestLatency {
  double first_token = 0, whole = 0;
  std::optional<double> per_token;  // TPOT; none of one token
  std::vector<double> chunk_gaps;
  std::optional<std::vector<double>> token_gaps;  // none where it is not known how many tokens a chunk bore
  std::size_t tokens = 0;
};
RequestLatency latency_of(const RequestRecord& record);

// Percentiles as NumPy's (core/numeric/quantile.h).
struct Spread {
  std::size_t count = 0;
  double mean = 0, least = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, most = 0;
};
Spread spread_of(std::vector<double> values);

// Milliseconds that are wanted; a request is in time where it keeps all that are given.
struct ServiceLevel {
  std::optional<double> first_token_ms, token_ms, gap_ms;  // TTFT; TPOT; every gap between chunks
  bool any() const { return first_token_ms || token_ms || gap_ms; }
};
bool keeps(const RequestLatency& latency, const ServiceLevel& level);

// A request was begun (+1), or was over (−1): written down by who sends, beside the records.
struct InFlightChange {
  double at = 0;
  int by = 0;
};

struct LoadRecords {
  std::vector<RequestRecord> requests;
  std::vector<InFlightChange> changes;  // by time
  std::size_t planned = 0;
  std::optional<std::size_t> concurrency;  // of a closed loop
  std::optional<std::size_t> context;      // of the server, where it tells
};

// The server's context as it tells; else the one place where all that were cut short ended, if two prompts of different lengths
// did, and no text is longer.
std::optional<std::size_t> context_of(const LoadRecords& load);
// The last token that a context has room for may be made, or not.
bool ends_at_context(const RequestRecord& record, std::optional<std::size_t> context);

struct LoadFigures {
  std::size_t whole = 0, failed = 0, cut = 0;
  double seconds = 0;                               // from the first request's sending to the last one's end
  std::size_t input_tokens = 0, output_tokens = 0;  // of whole requests
  double requests_per_second = 0, output_per_second = 0, input_per_second = 0;
  double concurrency = 0;  // mean of requests in flight: the integral of the changes by time, by the duration
  std::size_t most_in_flight = 0;
  double e2e_concurrency = 0;  // ΣE2E / duration
  Spread first_token, whole_answer, per_token, chunk_gap, token_gap, delay;
  bool token_gaps_known = true;
  std::size_t in_time = 0;
  double goodput = 0;          // requests in time a second
  std::size_t at_context = 0;  // answers that ended where the server's context does
};
LoadFigures figures_of(const LoadRecords& load, const std::vector<RequestLatency>& latencies,
                       const ServiceLevel& level);
// Of those that are whole and bore a token, in their order.
std::vector<RequestLatency> latencies_of(const LoadRecords& load);

}  // namespace assay
