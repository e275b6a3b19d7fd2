#include "refimpl/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/engine/sequence.h"

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
  SampleStream stream;
  Generation made;
  bool done = false;

  void choose(std::span<const double> logits, const TextEngine::Listener& listener) {
    const TokenId id = sample(logits, request.rule, sequence.tokens(), stream);
    sequence.append(id);
    made.ids.push_back(id);
    if (listener) listener(number, id, logits);
    const bool stops = std::find(request.stop.begin(), request.stop.end(), id) != request.stop.end();
    if (stops)
      finish(Ending::stop_token);
    else if (made.ids.size() >= request.most)
      finish(Ending::length);
    else if (sequence.tokens().size() > sequence.cache().limit())
      finish(Ending::context);
  }
  void finish(Ending ending) {
    made.ending = ending;
    done = true;
  }
};

void check_request(const GenerationRequest& request, const LanguageModel& model) {
  if (request.prompt.empty())
    throw Error::input("the prompt has no tokens").remedy("give some text; this model begins with nothing");
  check_tokens(request.prompt, model);
  if (request.prompt.size() > model.context())
    throw Error::input(fmt::format("the prompt has {} tokens, the model's context is {}",
                                   request.prompt.size(), model.context()));
}

}  // namespace

std::string_view name(Ending ending) {
  switch (ending) {
    case Ending::length: return "length";
    case Ending::stop_token: return "stop_token";
    case Ending::context: return "context";
    case Ending::interrupted: return "interrupted";
  }
  return "";
}

void check_tokens(std::span<const TokenId> tokens, const LanguageModel& model) {
  for (const TokenId id : tokens) {
    if (id >= model.vocabulary())
      throw Error::input(
          fmt::format("token {} is outside the model's vocabulary of {}", id, model.vocabulary()));
  }
}

std::vector<Generation> TextEngine::generate(const std::vector<GenerationRequest>& requests,
                                             const Listener& listener) {
  std::vector<std::unique_ptr<Job>> jobs;
  for (const GenerationRequest& request : requests) {
    check_request(request, model_);
    jobs.push_back(std::make_unique<Job>(Job{jobs.size(),
                                             request,
                                             Sequence(model_, ops_, request.prompt),
                                             SampleStream(request.seed),
                                             {},
                                             request.most == 0}));
  }
  for (;;) {
    Batch batch;
    std::vector<Job*> fed, whole;  // whole: all their tokens are in this step, so that the next one follows
    std::vector<std::size_t> last_rows;  // of the whole ones
    bool reading = false;
    for (const auto& job : jobs) {
      if (job->done) continue;
      if (interrupted()) job->finish(Ending::interrupted);
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
    const Matrix hidden = model_.hidden(batch, ops_, taps_);  // [tokens, hidden]
    std::vector<double> logits;                               // [whole ones, vocabulary]
    if (!whole.empty()) logits = ops_.download(model_.logits(ops_.gather(hidden, last_rows), ops_, taps_));
    for (std::size_t i = 0; i < fed.size(); ++i) fed[i]->sequence.cache().advance(batch.sequences[i].count);
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
  check_request({.prompt = {tokens.begin(), tokens.end()}}, model_);
  Sequence sequence(model_, ops_, {tokens.begin(), tokens.end()});
  while (sequence.pending() > 0 && !interrupted()) {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t first = sequence.cache().length();
    Batch batch;
    batch.add(sequence.next(chunk_), sequence.cache());
    const Matrix logits =
        model_.logits(model_.hidden(batch, ops_, taps_), ops_, taps_);  // [tokens, vocabulary]
    sequence.cache().advance(batch.tokens.size());
    const std::vector<double> values = ops_.download(logits);
    timing_.prefill_seconds += seconds_since(start);
    timing_.prefill_tokens += batch.tokens.size();
    ++timing_.steps;
    for (std::size_t i = 0; i < batch.tokens.size(); ++i)
      scorer(first + i, std::span(values).subspan(i * model_.vocabulary(), model_.vocabulary()));
  }
}

}  // namespace assay
