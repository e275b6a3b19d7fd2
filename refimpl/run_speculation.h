// What --speculate asks for: who guesses, how far, by which rule; and what came of it.
#pragma once

#include <memory>
#include <string>

#include "core/system/json.h"
#include "refimpl/engine/speculate.h"
#include "refimpl/run_model.h"

namespace assay {

void add_speculation_options(CLI::App& command, SpeculationSettings& settings);
// Throws Error::usage for options without --speculate, and those that exclude one another.
void check_speculation_options(const SpeculationSettings& settings);

class RunSpeculation {
 public:
  // Throws Error::input where the draft model has another vocabulary, Error::usage where the model has no layers to guess with.
  RunSpeculation(OpenModel& model, const RunSettings& settings);
  // As one rank of a model that is cut: its own layers guess cut as they are, a draft model whole at each rank.
  RunSpeculation(OpenModel& model, const RunSettings& settings, const LanguageModel& own, Ops& ops);

  const SpeculationOptions& options() const { return options_; }
  Json to_json(const Speculation& made) const;
  std::vector<std::string> lines(const Speculation& made) const;

 private:
  const SpeculationSettings& settings_;
  std::unique_ptr<OpenModel> draft_;
  SpeculationOptions options_;
};

}  // namespace assay
