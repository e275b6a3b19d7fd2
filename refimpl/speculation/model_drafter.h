// Another model guesses: a smaller one with the same vocabulary. Its cache is its own and holds the sure text alone; what it
// computed of guesses is forgotten, and of those that were right computed again with the next.
#pragma once

#include "refimpl/models/model.h"
#include "refimpl/speculation/drafter.h"

namespace assay {

class ModelDrafts : public DraftSource {
 public:
  // Both outlive the drafters.
  ModelDrafts(const LanguageModel& model, Ops& ops) : model_(model), ops_(ops) {}
  std::unique_ptr<Drafter> start() const override;

 private:
  const LanguageModel& model_;
  Ops& ops_;
};

}  // namespace assay
