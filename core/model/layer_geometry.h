// What a layer attends with, and what experts it has, as the tree has it.
#pragma once

#include <algorithm>

#include "core/model/module_tree.h"

namespace assay {

// Null: the layer attends to nothing. Layers of multi-token prediction come after the others.
inline const AttentionGeometry* geometry_of(const ModuleTree& tree, std::size_t layer) {
  for (const auto* all : {&tree.attention, &tree.mtp_attention}) {
    for (const AttentionGeometry& geometry : *all) {
      if (std::find(geometry.layers.begin(), geometry.layers.end(), layer) != geometry.layers.end())
        return &geometry;
    }
  }
  return nullptr;
}

struct LayerExperts {
  std::size_t count = 0, active = 0;  // of `count`, how many a token visits
};

// Those of the tree, but where layers differ (Nemotron-H Puzzle).
LayerExperts experts_of(const ModuleTree& tree, std::size_t layer);
bool experts_differ(const ModuleTree& tree);

}  // namespace assay
