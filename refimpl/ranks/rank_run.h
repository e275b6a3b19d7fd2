// Texts computed by all ranks of a grid, as threads: what is held against one process that has the whole model.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "refimpl/ranks/ranked_model.h"

namespace assay {

struct RankRunRequest {
  std::filesystem::path path;
  RankedSettings settings;
  std::vector<std::vector<TokenId>> texts;  // dealt out to the copies in turn; read at once
  std::size_t decode = 0;                   // and so many tokens more, greedily, all texts of a copy together
  bool taps = false;
  std::chrono::milliseconds limit{10'000};  // of waiting for another rank
};

struct RankTap {
  std::string name;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
};
struct RankReport {
  RankPlace place;
  std::uint64_t held_bytes = 0;   // of weights
  std::uint64_t cache_bytes = 0;  // of keys, values and latents of a token, as they lie in memory
  std::uint64_t doubles_sent = 0;
  double worst_ratio = 0;  // RankOps::worst_ratio
  std::size_t idle_passes = 0;
  std::vector<RankTap> taps;  // in the order of computation, of all steps
};
struct RankRun {
  std::vector<std::vector<double>> logits;  // of each text: [tokens, vocabulary], those decoded included
  std::vector<RankReport> ranks;
};
// Throws what a rank threw.
RankRun run_ranks(const RankRunRequest& request);

}  // namespace assay
