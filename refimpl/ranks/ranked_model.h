// A model opened at one rank: its share of the weights, its operations, and how it talks to the others.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "refimpl/ops/kernel_set.h"
#include "refimpl/ranks/rank_cut.h"
#include "refimpl/ranks/rank_group.h"
#include "refimpl/ranks/rank_model.h"
#include "refimpl/ranks/rank_ops.h"

namespace assay {

struct RankedSettings {
  ModelOptions options;
  Arithmetic arithmetic;
  RankGrid grid;
  RankOptions ranks;
  std::optional<KernelSet> kernels = {};  // in place of the reference; of host memory
  std::size_t micro_batches = 2;          // of a pipeline, at most
  int jobs = 1;                           // threads of a rank
};

class RankedModel {
 public:
  // Throws Error::input, with the reason, where the model cannot be cut so.
  RankedModel(const std::filesystem::path& path, const RankedSettings& settings, Transport& transport);

  const RankPlace& place() const { return cut_.place(); }
  const RankCut& cut() const { return cut_; }
  const Weights& weights() const { return weights_; }
  RankGroups& groups() { return groups_; }
  RankOps& ops() { return ops_; }
  const RankModel& model() const { return model_; }

 private:
  RankCut cut_;
  Weights weights_;
  RankGroups groups_;
  RankOps ops_;
  RankModel model_;
};

}  // namespace assay
