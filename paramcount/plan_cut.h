// How one tensor is cut over the ranks of a layout, and layers over its stages.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/parallel_cut.h"
#include "paramcount/engine_rules.h"
#include "paramcount/plan.h"
#include "paramcount/tower_cut.h"

namespace assay {

// The ranks that cut `spec`: tp, or for a routed expert the ranks of one expert group.
std::uint64_t cut_group(const TensorSpec& spec, const Layout& layout);
// The widest rank's part of the tensor, nothing padded and no block of codes looked at.
std::vector<std::uint64_t> rank_shape(const TensorSpec& spec, const Layout& layout);

// Whether `format` quantizes the matrix in this model.
bool in_format(const ModuleTree& tree, const WeightFormat& format, const TensorSpec& spec);

// As an engine cuts a model in this format.
class EngineCut {
 public:
  EngineCut(const ModuleTree& tree, const Layout& layout, const EngineAt& engine, const WeightFormat& format,
            bool towers_whole = false)
      : tree_(tree),
        layout_(layout),
        engine_(engine),
        format_(format),
        towers_(tree, layout, engine, towers_whole) {}
  bool whole_blocks(const TensorSpec& spec) const;  // MXFP4 experts in whole blocks of 32
  // The widest rank's part; with `place`, that rank's.
  std::vector<std::uint64_t> rank_shape(const TensorSpec& spec, const RankPlace* place = nullptr) const;
  // Of so many experts, those of the fullest rank, or of `place`.
  std::uint64_t experts_here(std::uint64_t experts, const RankPlace* place = nullptr) const;

 private:
  const ModuleTree& tree_;
  const Layout& layout_;
  const EngineAt& engine_;
  const WeightFormat& format_;
  const TowerCut towers_;
};

// The layers of each stage.
std::vector<IndexRange> pipeline_stages(std::uint64_t layers, std::uint64_t stages, const EngineAt& engine);

}  // namespace assay
