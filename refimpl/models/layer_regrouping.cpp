#include "refimpl/models/layer_regrouping.h"

#include <algorithm>

#include "core/system/error.h"

namespace assay {

void regroup(ModuleTree& tree, const LayerGroups& groups) {
  if (groups.as_ever()) return;
  const bool plain = tree.attention.size() == 1 &&
                     tree.attention.front().kind == AttentionGeometry::Kind::heads &&
                     tree.attention.front().window == 0 && tree.attention.front().indexer_heads == 0 &&
                     tree.attention.front().cached;
  if (!plain)
    throw Error::input(
        "the model's layers are of several kinds already, or attend by windows, latents or an index")
        .remedy("layers are grouped anew only where all are alike, and see everything");
  const AttentionGeometry all = tree.attention.front();
  tree.attention.clear();
  for (const bool global : {true, false}) {
    AttentionGeometry first = all, others = all;
    first.layers.clear();
    others.layers.clear();
    others.cached = false;
    first.window = others.window = global ? 0 : groups.window;
    std::size_t of_kind = 0;
    for (const std::uint64_t layer : all.layers) {
      const bool sees_all = groups.window == 0 || (layer + 1) % groups.every == 0;
      if (sees_all != global) continue;
      (of_kind++ % groups.share == 0 ? first : others).layers.push_back(layer);
    }
    for (AttentionGeometry* each : {&first, &others}) {
      if (!each->layers.empty()) tree.attention.push_back(*each);
    }
  }
}

}  // namespace assay
