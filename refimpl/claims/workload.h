// Requests for a model, and what the plain engine says of each by itself: the truth that serving is held against.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "refimpl/claims/noisy_model.h"
#include "refimpl/engine/serving.h"

namespace assay {

using LogitRows = std::vector<std::vector<double>>;

struct AloneRequest {
  ServingRequest request;
  std::vector<Generation> made;  // by sample
  std::vector<LogitRows> chosen_from;
  LogitRows prompt;  // of every position, where they were asked for
};

class ServingWorkload {
 public:
  // Random requests of up to `longest` tokens, of which many begin alike, two are the same, and two differ in two
  // tokens by (+31, -1), which a polynomial hash does not see.
  ServingWorkload(const LanguageModel& model, Ops& ops, std::uint64_t seed, std::size_t longest = 80);

  ServingWorkload(const LanguageModel& model, Ops& ops, const std::vector<ServingRequest>& requests);

  const LanguageModel& model() const { return model_; }
  Ops& ops() const { return ops_; }
  const std::vector<AloneRequest>& requests() const { return requests_; }
  // Who may guess ahead: the text itself, a model that is often right, and the model's own layers where it has such.
  const std::vector<std::shared_ptr<const DraftSource>>& sources() const { return sources_; }

 private:
  void add(const ServingRequest& request);
  void add_sources();

  const LanguageModel& model_;
  Ops& ops_;
  NoisyModel draft_;
  std::vector<AloneRequest> requests_;
  std::vector<std::shared_ptr<const DraftSource>> sources_;
};

}  // namespace assay
