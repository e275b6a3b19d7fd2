// The engine: prompts in, tokens out. Reads its prompts (prefill), then goes on a token a step (decode), all
// sequences of a call together, however long each is.
//
//   TextEngine engine(model, ops);
//   auto done = engine.generate({{.prompt = ids, .max_new_tokens = 64, .sampling = {.stop_tokens = {eos}}}}, show);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/sampling/constraint.h"
#include "refimpl/sampling/sampling_params.h"
#include "refimpl/step/taps.h"

namespace assay {

// Shown every token of a text that is made, in order: has a stop string come?
using TextWatch = std::function<bool(TokenId)>;

struct GenerationRequest {
  std::vector<TokenId> prompt;
  std::size_t max_new_tokens = 64;
  SamplingParams sampling;
  std::shared_ptr<const TokenConstraint> constraint;  // a grammar, for one: each text has a fork of its own
  std::function<TextWatch()> watch_text;              // stop strings: a watch of its own for each text
};

// max_new_tokens were made, a stop token came, the context is full, or Ctrl-C.
enum class FinishReason : std::uint8_t { length, stop, context, interrupted };
std::string_view name(FinishReason reason);  // "stop"

struct Generation {
  std::vector<TokenId> ids;
  FinishReason finish_reason = FinishReason::length;
};

// Whether a text goes no further, of which `made` tokens were made and which has `tokens` with its prompt; `stops`: the
// last of them ends it. `limit`: the most a cache can hold.
std::optional<FinishReason> reason_to_end(bool stops, std::size_t made, std::size_t most, std::size_t tokens,
                                          std::size_t limit);

struct EngineTiming {
  std::size_t prefill_tokens = 0, decode_tokens = 0, steps = 0;
  double prefill_seconds = 0, decode_seconds = 0;
};

class TextEngine {
 public:
  TextEngine(const LanguageModel& model, Ops& ops, const Taps& taps = {})
      : model_(model), ops_(ops), taps_(taps) {}

  // A token was chosen from these logits.
  using Listener = std::function<void(std::size_t sequence, TokenId id, std::span<const double> logits)>;
  // Throws Error::input where a prompt is empty, longer than the context, or holds an id beyond the
  // vocabulary.
  std::vector<Generation> generate(const std::vector<GenerationRequest>& requests,
                                   const Listener& listener = {});

  // The logits of every position of one text, in order.
  using Scorer = std::function<void(std::size_t position, std::span<const double> logits)>;
  void score(std::span<const TokenId> tokens, const Scorer& scorer);

  void set_chunk(std::size_t tokens) { chunk_ = tokens; }  // of a prompt, read at once
  // Caches of all texts from now on are kept as the method says; none: in full.
  void keep_by(std::shared_ptr<const CacheMethod> method) { method_ = std::move(method); }
  // Shown the caches of all texts behind every step.
  using CacheWatch = std::function<void(std::size_t sequence, const SequenceCache& cache)>;
  void watch_caches(CacheWatch watch) { cache_watch_ = std::move(watch); }
  const EngineTiming& timing() const { return timing_; }

 private:
  const LanguageModel& model_;
  Ops& ops_;
  Taps taps_;
  std::size_t chunk_ = 512;
  std::shared_ptr<const CacheMethod> method_;
  CacheWatch cache_watch_;
  EngineTiming timing_;
};

// Throws Error::input where a prompt is empty, longer than the context, or holds an id beyond the vocabulary.
void check_prompt(std::span<const TokenId> tokens, const LanguageModel& model);
// Throws Error::input naming the first id beyond the vocabulary.
void check_tokens(std::span<const TokenId> tokens, const LanguageModel& model);

}  // namespace assay
