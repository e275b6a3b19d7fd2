// Whole layers that the config has and the files have not, or the other way round: one finding, not one a tensor.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "core/model/module_tree.h"
#include "core/system/finding.h"

namespace assay {

class LayerFaults {
 public:
  LayerFaults(const ModuleTree& tree, const TensorLookup& lookup) : tree_(tree), lookup_(lookup) {}

  // Notes a tensor that would be known were it of a layer the config has: of layer 7 where it says 4.
  bool take_beyond(std::string_view name);
  // Notes a tensor of a layer of which no file holds anything.
  void take_absent(std::uint64_t layer) { absent_.insert(layer), ++absent_tensors_; }

  Findings findings() const;  // model.layers_more, model.layers_missing

 private:
  const ModuleTree& tree_;
  const TensorLookup& lookup_;
  std::set<std::uint64_t> beyond_, absent_;
  std::uint64_t beyond_tensors_ = 0, absent_tensors_ = 0;
};

}  // namespace assay
