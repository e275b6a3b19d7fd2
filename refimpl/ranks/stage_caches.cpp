#include "refimpl/ranks/stage_caches.h"

#include <algorithm>

namespace assay {

std::vector<std::size_t> caches_across(const StagedModel& model, std::size_t border) {
  std::vector<std::size_t> layers;
  for (std::size_t i = border; i < model.layer_count(); ++i)
    if (model.cache_of(i) < border) layers.push_back(model.cache_of(i));
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

StageCaches caches_of_stage(const StagedModel& model, std::size_t caches, const IndexRange& layers) {
  StageCaches stage = {std::vector<bool>(caches), std::vector<bool>(caches)};
  const std::vector<std::size_t> before = caches_across(model, layers.begin);
  const std::size_t of_a_layer = caches / std::max<std::size_t>(1, model.layer_count());
  for (std::size_t i = 0; i < caches; ++i) {
    const std::size_t layer = of_a_layer > 1 ? i / of_a_layer : i;
    stage.owns[i] = layer >= layers.begin && layer < layers.end;
    stage.keeps[i] = stage.owns[i] || std::binary_search(before.begin(), before.end(), layer);
  }
  return stage;
}

}  // namespace assay
