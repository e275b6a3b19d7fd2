// With tokens t₀ … tₙ, of which all but tₙ are in the cache, and h the main model's hidden states:
//
//   draft:   from (t₍ᵢ₊₁₎, hᵢ) for i < n, the guess d of t₍ₙ₊₁₎
//   verify:  one step on [tₙ, d]; its first logits say what t₍ₙ₊₁₎ is. Equal to d: its second say t₍ₙ₊₂₎.
//            Otherwise d is taken back from the cache.
#include "refimpl/engine/speculate.h"

#include <algorithm>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/models/mapped_file.h"

namespace assay {
namespace {

class Speculator {
 public:
  Speculator(const LanguageModel& model, Ops& ops, const GenerationRequest& request)
      : model_(model),
        ops_(ops),
        request_(request),
        cache_(ops, model.cache_widths(), model.context()),
        draft_cache_(ops, model.cache_widths(), model.context()) {}

  Speculation run(const std::function<void(TokenId, std::span<const double>)>& listener) {
    listener_ = listener;
    try {
      go();
    } catch (const Batch::Interrupted&) {
      result_.made.finish_reason = FinishReason::interrupted;
    }
    return std::move(result_);
  }

 private:
  void go() {
    const std::vector<double> first = step(request_.prompt);
    // The draft layer's own past: each token of the prompt with what the model said of the one before.
    due_ = {request_.prompt.begin() + 1, request_.prompt.end()};
    emit(last_of(first));
    while (!done_) {
      if (interrupted()) {
        result_.made.finish_reason = FinishReason::interrupted;
        break;
      }
      const bool room = cache_.length() + 2 <= cache_.limit();
      room ? speculative_step() : plain_step();
    }
  }

  std::span<const double> last_of(const std::vector<double>& logits) const {
    return std::span(logits).last(model_.vocabulary());
  }

  // Feeds the main model; keeps its hidden states for the draft.
  std::vector<double> step(std::span<const TokenId> tokens) {
    Batch batch;
    batch.add(tokens, cache_);
    batch.may_stop = true;
    const Matrix hidden = model_.hidden(batch, ops_, {});
    cache_.advance(tokens.size());
    hidden_ = hidden;
    ++result_.steps;
    std::vector<double> logits = ops_.download(model_.logits(hidden, ops_, {}));  // [tokens, vocabulary]
    require_mapped();
    return logits;
  }

  // The guess of what follows the newest token: feeds what is due, of which it is the last.
  TokenId draft() {
    Batch batch;
    batch.add(due_, draft_cache_);
    const Matrix states = model_.draft(batch, hidden_.row_range(0, due_.size()), ops_, {});
    draft_cache_.advance(due_.size());
    const std::size_t last[] = {due_.size() - 1};
    const std::vector<double> logits =
        ops_.download(model_.draft_logits(ops_.gather(states, last), ops_, {}));
    return static_cast<TokenId>(argmax(logits));
  }

  void speculative_step() {
    const TokenId newest = result_.made.ids.back();
    const TokenId guess = draft();
    due_.clear();
    ++result_.drafted;
    const TokenId pair[] = {newest, guess};
    const std::vector<double> logits = step(pair);
    const auto first = std::span(logits).first(model_.vocabulary());
    if (argmax(first) != guess) {
      cache_.truncate(cache_.length() - 1);
      return emit(first);
    }
    ++result_.accepted;
    emit(first);
    if (!done_) emit(last_of(logits));
  }

  void plain_step() {
    const TokenId newest[] = {result_.made.ids.back()};
    const std::vector<double> logits = step(newest);
    due_.clear();
    emit(last_of(logits));
  }

  void emit(std::span<const double> logits) {
    const auto id = static_cast<TokenId>(argmax(logits));
    result_.made.ids.push_back(id);
    due_.push_back(id);
    if (listener_) listener_(id, logits);
    const bool stops = std::find(request_.stop.begin(), request_.stop.end(), id) != request_.stop.end();
    const std::size_t length = request_.prompt.size() + result_.made.ids.size();
    done_ = stops || result_.made.ids.size() >= request_.max_new_tokens || length > cache_.limit();
    if (stops)
      result_.made.finish_reason = FinishReason::stop;
    else if (result_.made.ids.size() < request_.max_new_tokens)
      result_.made.finish_reason = done_ ? FinishReason::context : FinishReason::length;
    else
      result_.made.finish_reason = FinishReason::length;
  }

  const LanguageModel& model_;
  Ops& ops_;
  const GenerationRequest& request_;
  SequenceCache cache_, draft_cache_;
  Matrix hidden_;             // of the newest step
  std::vector<TokenId> due_;  // tokens the draft layer has yet to see, one for each row of hidden_
  std::function<void(TokenId, std::span<const double>)> listener_;
  Speculation result_;
  bool done_ = false;
};

}  // namespace

Speculation speculate(const LanguageModel& model, Ops& ops, const GenerationRequest& request,
                      const std::function<void(TokenId, std::span<const double> logits)>& listener) {
  if (model.draft_layers() == 0)
    throw Error::usage("the model has no layer for multi-token prediction").remedy("leave out --speculate");
  if (request.rule.temperature != 0 || request.rule.repetition_penalty != 1)
    throw Error::usage("--speculate goes with greedy decoding")
        .remedy("leave out --temperature and --repetition-penalty");
  if (request.prompt.empty()) throw Error::input("the prompt has no tokens");
  check_tokens(request.prompt, model);
  if (request.max_new_tokens == 0) return {};
  return Speculator(model, ops, request).run(listener);
}

}  // namespace assay
