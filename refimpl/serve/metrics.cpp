#include "refimpl/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

std::string head(const std::string& name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

std::string one(const std::string& name, std::string_view type, std::string_view help, std::size_t value) {
  return head(name, type, help) + fmt::format("{} {}\n", name, value);
}

}  // namespace

void SecondsHistogram::add(double seconds) {
  const std::lock_guard lock(mutex_);
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += seconds;
}

std::string SecondsHistogram::text(const std::string& name, const std::string& help) const {
  const std::lock_guard lock(mutex_);
  std::string out = head(name, "histogram", help);
  std::size_t below = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], below);
  }
  const std::size_t all = below + counts_.back();
  return out + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, all, sum_);
}

void ServerMetrics::answered(const std::string& route, int status) {
  const std::lock_guard lock(mutex_);
  ++answers_[{route, status}];
}

std::string ServerMetrics::text(const EngineState& engine) const {
  std::string out = head("assay_http_responses_total", "counter", "Answers, by route and status.");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : answers_)
      out += fmt::format("assay_http_responses_total{{route=\"{}\",code=\"{}\"}} {}\n", key.first, key.second,
                         count);
  }
  const ServingCounts& counts = engine.counts;
  out += one("assay_clients_gone_total", "counter", "Clients that left before their answer's end.",
             clients_gone);
  out += one("assay_requests_cancelled_total", "counter", "Prompts whose texts were given up.",
             engine.cancelled);
  out += one("assay_requests_failed_total", "counter", "Prompts whose texts could not go on.", engine.failed);
  out += one("assay_prompt_tokens_total", "counter", "Tokens of prompts, computed.", counts.prompt_tokens);
  out += one("assay_prompt_tokens_cached_total", "counter", "Tokens of prompts, found in the cache.",
             counts.hit_tokens);
  out += one("assay_generation_tokens_total", "counter", "Tokens made.", generated_tokens);
  out += one("assay_steps_total", "counter", "Steps of the engine.", counts.steps);
  out += one("assay_preemptions_total", "counter", "Texts that gave up their blocks.", counts.preemptions);
  out += one("assay_evictions_total", "counter", "Blocks whose text was forgotten for another one.",
             engine.evictions);
  out += one("assay_prompts_under_way", "gauge", "Prompts computed and waiting, at most --queue.",
             engine.prompts);
  out += one("assay_texts_running", "gauge", "Texts being computed.", engine.running);
  out += one("assay_texts_waiting", "gauge", "Texts waiting for room.", engine.waiting);
  out += one("assay_cache_blocks", "gauge", "Blocks of the cache.", engine.blocks);
  out += one("assay_cache_blocks_held", "gauge", "Blocks that texts hold.", engine.held_blocks);
  out += first_token.text("assay_time_to_first_token_seconds", "From the request to its first token.");
  out += whole_answer.text("assay_request_seconds", "From the request to the end of its answer.");
  return out;
}

}  // namespace assay
