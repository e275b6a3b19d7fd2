// What one rank of a group has of a model's weights. A Weights that is opened with one shows forward rules a tree
// and views of the rank's size, so that they compute the rank's share as if it were a model of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/model/module_tree.h"
#include "refimpl/ops/weight_view.h"

namespace assay {

struct WeightKey;

class WeightShares {
 public:
  virtual ~WeightShares() = default;
  // The tree as forward rules are to see it: the rank's heads, not the model's. Throws Error::input where the model
  // cannot be cut so.
  virtual ModuleTree tree_of_rank(const ModuleTree& whole) = 0;
  // Of a weight as it is stored, what the rank has. `spec` is the tree's, of `whole`.
  virtual WeightView share_of(const WeightView& whole, const TensorSpec& spec, const WeightKey& key) = 0;
  // The layer of the checkpoint whose weights are to be layer `layer`'s.
  virtual std::size_t stored_layer(std::size_t layer) const { return layer; }
};

}  // namespace assay
