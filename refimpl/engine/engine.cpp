#include "refimpl/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/engine/scoring.h"
#include "refimpl/engine/sequence.h"
#include "refimpl/models/mapped_file.h"
#include "refimpl/sampling/sequence_sampler.h"

namespace assay {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A request under way.
struct Job {
  std::size_t number;
  const GenerationRequest& request;
  Sequence sequence;
  SequenceSampler sampler;
  TextWatch watch;
  Generation made;
  bool done = false;

  void choose(std::span<const double> logits, const TextEngine::Listener& listener) {
    const TokenId id = sampler.sample(logits);
    sampler.push(id);
    sequence.append(id);
    made.ids.push_back(id);
    if (listener) listener(number, id, logits);
    const bool said = watch && watch(id);
    const bool stops = said || sampler.ends(id) || sampler.complete(logits.size());
    if (const auto reason = reason_to_end(stops, made.ids.size(), request.max_new_tokens,
                                          sequence.tokens().size(), sequence.cache().limit()))
      finish(*reason);
  }
  void finish(FinishReason reason) {
    made.finish_reason = reason;
    done = true;
  }
};

}  // namespace

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::length: return "length";
    case FinishReason::stop: return "stop";
    case FinishReason::context: return "context";
    case FinishReason::interrupted: return "interrupted";
  }
  return "";
}

std::optional<FinishReason> reason_to_end(bool stops, std::size_t made, std::size_t most, std::size_t tokens,
                                          std::size_t limit) {
  if (stops) return FinishReason::stop;
  if (made >= most) return FinishReason::length;
  if (tokens > limit) return FinishReason::context;
  return std::nullopt;
}

void check_tokens(std::span<const TokenId> tokens, const LanguageModel& model) {
  for (const TokenId id : tokens) {
    if (id >= model.vocabulary())
      throw Error::input(
          fmt::format("token {} is outside the model's vocabulary of {}", id, model.vocabulary()));
  }
}

void check_prompt(std::span<const TokenId> tokens, const LanguageModel& model) {
  if (tokens.empty())
    throw Error::input("the prompt has no tokens").remedy("give some text; this model begins with nothing");
  check_tokens(tokens, model);
  if (tokens.size() > model.context())
    throw Error::input(
        fmt::format("the prompt has {} tokens, the model's context is {}", tokens.size(), model.context()));
}

std::vector<Generation> TextEngine::generate(const std::vector<GenerationRequest>& requests,
                                             const Listener& listener) {
  std::vector<std::unique_ptr<Job>> jobs;
  for (const GenerationRequest& request : requests) {
    check_prompt(request.prompt, model_);
    jobs.push_back(
        std::make_unique<Job>(Job{jobs.size(),
                                  request,
                                  Sequence(model_, ops_, request.prompt, method_),
                                  SequenceSampler(request.sampling, request.prompt,
                                                  request.constraint ? request.constraint->fork() : nullptr),
                                  request.watch_text ? request.watch_text() : TextWatch(),
                                  {},
                                  request.max_new_tokens == 0}));
  }
  for (;;) {
    Batch batch;
    std::vector<Job*> fed, whole;  // whole: all their tokens are in this step, so that the next one follows
    std::vector<std::size_t> last_rows;  // of the whole ones
    bool reading = false;
    for (const auto& job : jobs) {
      if (job->done) continue;
      if (interrupted()) job->finish(FinishReason::interrupted);
      if (job->done) continue;
      const std::span<const TokenId> next = job->sequence.next(chunk_);
      reading |= job->made.ids.empty();
      batch.add(next, job->sequence.cache());
      fed.push_back(job.get());
      if (next.size() < job->sequence.pending()) continue;
      whole.push_back(job.get());
      last_rows.push_back(batch.tokens.size() - 1);
    }
    if (fed.empty()) break;

    const auto start = std::chrono::steady_clock::now();
    batch.may_stop = true;
    Matrix hidden;  // [tokens, hidden]
    taps_.step(batch.tokens);
    try {
      hidden = model_.hidden(batch, ops_, taps_);
    } catch (const Batch::Interrupted&) {
      continue;  // and all jobs end
    }
    std::vector<double> logits;  // [whole ones, vocabulary]
    if (!whole.empty()) logits = ops_.download(model_.logits(ops_.gather(hidden, last_rows), ops_, taps_));
    require_mapped();
    for (std::size_t i = 0; i < fed.size(); ++i) {
      fed[i]->sequence.cache().advance(batch.sequences[i].count);
      if (cache_watch_) cache_watch_(fed[i]->number, fed[i]->sequence.cache());
    }
    (reading ? timing_.prefill_seconds : timing_.decode_seconds) += seconds_since(start);
    (reading ? timing_.prefill_tokens : timing_.decode_tokens) += batch.tokens.size();
    ++timing_.steps;
    for (std::size_t i = 0; i < whole.size(); ++i)
      whole[i]->choose(std::span(logits).subspan(i * model_.vocabulary(), model_.vocabulary()), listener);
  }
  std::vector<Generation> made;
  for (const auto& job : jobs) made.push_back(std::move(job->made));
  return made;
}

void TextEngine::score(std::span<const TokenId> tokens, const Scorer& scorer) {
  TextScorer text(model_, ops_, tokens, taps_, chunk_, method_);
  const std::size_t vocabulary = model_.vocabulary(), at_once = rows_at_once(vocabulary);
  auto start = std::chrono::steady_clock::now();
  while (text.read()) {
    timing_.prefill_tokens += text.end() - text.first();
    ++timing_.steps;
    for (std::size_t at = text.first(); at < text.end() && !interrupted(); at += at_once) {
      const std::size_t count = std::min(at_once, text.end() - at);
      const std::vector<double> rows = text.logits(at, count);
      timing_.prefill_seconds += seconds_since(start);
      for (std::size_t i = 0; i < count; ++i)
        scorer(at + i, std::span(rows).subspan(i * vocabulary, vocabulary));
      start = std::chrono::steady_clock::now();
    }
  }
}

}  // namespace assay
