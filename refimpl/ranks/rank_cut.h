// The weights that one rank holds: every tensor's share by the module tree's own rules (core/model/parallel_cut.h, as
// `convert --tp` uses them), copied into the rank's memory when its model first asks for it.
//
//   columns, vocabulary   rows of [out, in]; the result is a share of the outputs
//   rows                  inputs; the result is a part of a sum, which the group adds up
//   replicated            whole: norms, routers, latents of attention, key heads where there are fewer than ranks
//
// What other ranks hold (experts, layers of other stages) is a view with a shape and without numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/model/rank_grid.h"
#include "refimpl/models/weights.h"
#include "refimpl/ranks/rank_faults.h"

namespace assay {

// What is to be done with the result of a product with this weight.
struct WeightCut {
  Partition partition = Partition::replicated;
  bool of_expert = false;   // cut over the ranks of an expert, not of a copy
  std::uint64_t size = 0;   // of the cut dimension, of the whole weight
  std::uint64_t first = 0;  // vocabulary: where the rank's rows begin
  std::uint64_t each = 0;   // vocabulary: rows of a rank, padding included
  std::uint64_t units = 1;  // rows: places where the inputs may be cut, in the whole
};

class RankCut final : public WeightShares {
 public:
  explicit RankCut(const RankPlace& place, RankFault fault = RankFault::none)
      : place_(place), fault_(fault) {}

  ModuleTree tree_of_rank(const ModuleTree& whole) override;
  WeightView share_of(const WeightView& whole, const TensorSpec& spec, const WeightKey& key) override;
  std::size_t stored_layer(std::size_t layer) const override;

  const RankPlace& place() const { return place_; }
  IndexRange layers() const { return place_.layers(whole_->layers); }
  const ModuleTree& whole_tree() const { return *whole_; }
  // Of a view that share_of() gave. A weight that it knows nothing of is held whole.
  const WeightCut& cut_of(const WeightView& view) const;
  bool is_elsewhere(const WeightView& view) const { return elsewhere_.contains(view.name); }
  // Mamba-2: the width over which the norm behind the scan is taken, in the whole model; 0: not of this weight.
  std::size_t whole_norm_group(const WeightView& norm) const;
  std::uint64_t held_bytes() const { return held_bytes_; }

 private:
  using Place = std::tuple<const TensorSpec*, Role, std::size_t, std::size_t, bool, int>;
  // Rows and columns of a stored matrix, as the rank has them.
  struct Rectangle {
    std::vector<IndexRange> ranges;
    bool of_rows = true;
    std::uint64_t padding = 0;
  };
  bool is_here(const TensorSpec& spec, const WeightKey& key) const;
  TensorSpec spec_of(const WeightView& whole, const TensorSpec& spec, const WeightKey& key) const;
  WeightView put_elsewhere(const WeightView& whole, const Rectangle& rectangle, bool vector);
  WeightView hold(const WeightView& whole, const Rectangle& rectangle);
  bool hold_codes(const WeightView& whole, const Rectangle& rectangle, WeightView& view);
  void hold_scales(const WeightView& whole, std::vector<IndexRange> rows,
                   const std::vector<IndexRange>& columns, WeightView& view);
  WeightView hold_decoded(const WeightView& whole, const Rectangle& rectangle);
  std::vector<std::byte>& memory(std::size_t bytes);

  RankPlace place_;
  RankFault fault_;
  const ModuleTree* whole_ = nullptr;
  std::map<const TensorSpec*, const Module*> module_of_;
  std::map<const TensorSpec*, bool> of_layers_;  // it stands in a layer
  std::map<Place, WeightView> views_;
  std::unordered_map<const std::string*, WeightCut> cuts_;
  std::unordered_map<const std::string*, std::size_t> norm_groups_;
  std::unordered_map<const std::string*, std::unique_ptr<std::string>> elsewhere_;
  std::deque<std::vector<std::byte>> memory_;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace assay
