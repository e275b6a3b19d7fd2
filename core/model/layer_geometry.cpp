#include "core/model/layer_geometry.h"

namespace assay {
namespace {

// Layers of multi-token prediction have numbers of their own, from 0 on, or those behind the main ones.
bool stands_for(const Repeat& layers, bool mtp, std::size_t layer, std::size_t main_layers) {
  const auto has = [&](std::size_t index) {
    return std::find(layers.indices.begin(), layers.indices.end(), index) != layers.indices.end();
  };
  if (!mtp) return has(layer);
  return layer >= main_layers && (has(layer) || has(layer - main_layers));
}

}  // namespace

// Of several sets of experts (ERNIE 4.5 VL) those that a token of text visits.
// Of several sets of experts (ERNIE 4.5 VL) those that a token of text visits.
LayerExperts experts_of(const ModuleTree& tree, std::size_t layer) {
  LayerExperts found = {tree.experts, tree.experts_per_token};
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.part != Part::routed_expert || where.tower) return;
    bool here = false;
    for (const Module* module : where.path) {
      const Repeat& repeat = module->repeat;
      if (repeat.over == Repeat::Over::layers) here = stands_for(repeat, where.mtp, layer, tree.layers);
      if (here && repeat.over == Repeat::Over::experts && repeat.active > 0)
        found = {repeat.indices.size(), repeat.active};
    }
  });
  return found;
}

bool experts_differ(const ModuleTree& tree) {
  bool found = false;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    for (const Module* module : where.path)
      found |= spec.part == Part::routed_expert && module->repeat.over == Repeat::Over::experts &&
               module->repeat.indices.size() != tree.experts;
  });
  return found;
}

}  // namespace assay
