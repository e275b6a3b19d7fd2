// What a server's log-probabilities tell of the model behind it: its hidden size.
#pragma once

#include "core/system/progress.h"
#include "refimpl/fingerprint/hidden_size.h"
#include "refimpl/fingerprint/logit_collector.h"
#include "refimpl/fingerprint/logit_rank.h"
#include "refimpl/fingerprint/published_sizes.h"

namespace assay {

struct FingerprintWishes {
  EndpointUrl url;
  EndpointOptions endpoint;
  EndpointKind kind = EndpointKind::completions;
  std::string model;        // as the server calls it; empty: the first that it names
  std::size_t most = 8192;  // vectors
  std::uint64_t seed = 0;   // of the prompts
  int jobs = 1;
  ProgressMode progress = ProgressMode::automatic;
};

struct Fingerprint {
  std::string url, route, model, prompts;
  std::optional<LogitWay> way;
  std::optional<std::size_t> vocabulary;
  std::size_t requests = 0;
  double asked_again = 0;        // the largest difference
  Spectrum logits, differences;  // the second with the mean over the contexts subtracted
  RankFound rank, rank_of_differences;
  std::optional<double> soft_cap;  // behind which the ranks are found
  std::optional<HiddenSize> hidden;
  std::string cannot;  // why there is none
  std::optional<std::size_t> at_least;
  bool interrupted = false;
};

// Throws Error::io where nobody answers, Error::input where the server refuses what it took before.
Fingerprint take_fingerprint(const FingerprintWishes& wishes);

// Published models of this hidden size, those with the vocabulary, too, first.
std::vector<PublishedSize> published_like(const Fingerprint& found);

}  // namespace assay
