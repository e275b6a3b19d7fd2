// A text that the serving engine makes, and what it knows of it from step to step. For serving*.cpp alone.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/engine/serving.h"

namespace assay {

// A guess of a tree as a sequence of its own: of the text it sees the sure tokens and its own way alone.
struct ServingEngine::Branch {
  Branch(Ops& ops, const BlockStorage& storage, std::size_t context)
      : cache(ops, storage, rows, context, 1) {}
  std::vector<BlockTable> rows;  // by group, of each token
  SequenceCache cache;
};

// One text that is being made.
struct ServingEngine::Served {
  Served(const ServingEngine& engine, const ServingRequest& asked, std::size_t number_, std::size_t sample_)
      : number(number_),
        sample(sample_),
        request(asked),
        ids(asked.text.prompt),
        cache(engine.ops_, engine.storage_, text.tables, engine.model_.context()),
        sampler(engine.parts_.sampler(asked, sample_)),
        draws(engine.parts_.draws({sampler.params().seed, sampler.params().sample})),
        watch(asked.text.watch_text ? asked.text.watch_text() : TextWatch()) {
    if (!engine.options_.coded_blocks) cache.keep_by(engine.options_.method, 0);
    if (engine.options_.speculation.source) drafter = engine.options_.speculation.source->start();
  }

  static constexpr std::size_t kNoRow = ~std::size_t{0};

  std::size_t number, sample;
  ServingRequest request;
  std::vector<TokenId> ids;  // prompt and text
  ServedText text;
  SequenceCache cache;
  SequenceSampler sampler;
  std::unique_ptr<Draws> draws;
  TextWatch watch;
  std::unique_ptr<Drafter> drafter;
  Generation made;
  std::string regime;  // that the keys' root names
  // Of the step under way: guesses, whose tokens stand behind ids meanwhile; how many were fed, and the first row of the text.
  GuessTree guess;
  std::size_t fed_guesses = 0, first_row = 0;
  std::vector<std::unique_ptr<Branch>> branches;
  std::vector<std::size_t> right;  // guesses, in their order
  // The row that counts next: 0 the newest sure token's, i + 1 guess i's; or kNoRow.
  std::size_t next_row = 0;
  std::optional<FinishReason> end;  // it was told, and is not carried out yet
  std::optional<Error> failure;     // why
  std::vector<double> forked_from;  // logits behind the prompt, whose other samples are due
  std::size_t prompt_rows = 0;      // whose logits were delivered
  std::vector<std::vector<std::vector<double>>> swapped;  // blocks by group, while it is swapped out
  bool handed = false;  // its prompt was read elsewhere, and no step has had it yet
};

// A row of a step whose logits are wanted.
struct ServingEngine::Row {
  Served* served;
  std::size_t row, position;
  std::size_t behind = 0;  // the newest sure token: 0; each of its guesses: 1, 2 …
  bool chooses = false;
};

inline double seconds_from(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace assay
