#include "refimpl/handoff/rank_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/ranks/stage_caches.h"

namespace assay {
namespace {

StageCaches caches_of(const LanguageModel& model, const CacheShape& whole, const RankPlace& place) {
  const std::size_t caches = whole.layers.size();
  if (place.grid.pp == 1) return {std::vector<bool>(caches, true), std::vector<bool>(caches, true)};
  const auto* staged = dynamic_cast<const StagedModel*>(&model);
  if (staged == nullptr) throw Error::input("this architecture is not computed in stages: take --pp 1");
  if (place.grid.pp > staged->layer_count())
    throw Error::usage(fmt::format("{} layers over {} stages", staged->layer_count(), place.grid.pp));
  return caches_of_stage(*staged, caches, place.layers(staged->layer_count()));
}

}  // namespace

CacheShape shape_of_rank(const CacheShape& whole, const LanguageModel& model, const RankPlace& place) {
  const std::uint64_t tp = place.grid.tp, in_tp = place.in_tp();
  const StageCaches stage = caches_of(model, whole, place);
  CacheShape shape = whole;
  shape.ranks = tp * place.grid.pp;
  shape.rank = place.stage() * tp + in_tp;
  shape.has_head = place.last_stage() && in_tp == 0;
  for (std::size_t i = 0; i < whole.layers.size(); ++i) {
    CacheShape::Layer& layer = shape.layers[i];
    if (!stage.keeps[i]) {
      layer = {.width = {}, .heads = layer.heads, .sends = false};
      continue;
    }
    const HeadRange own = heads_of_rank(layer.heads, tp, in_tp);
    layer.width.key_width = layer.width.key_width / own.of * own.count;
    layer.width.value_width = layer.width.value_width / own.of * own.count;
    layer.heads = own.count;
    layer.of_rank = own;
    layer.sends = stage.owns[i] && (tp <= own.of || in_tp % (tp / own.of) == 0);
    for (std::size_t s = 0; s < layer.states.size(); ++s) {
      layer.states[s] = cut_state(layer.states[s], tp, in_tp);
      layer.width.states[s] = layer.states[s].shape();
    }
  }
  return shape;
}

void require_widths(const CacheShape& shape, const std::vector<CacheWidth>& widths) {
  if (widths.size() < shape.layers.size())
    throw Error::internal("a rank's cache has fewer layers than the model");
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const CacheWidth &is = widths[i], &said = shape.layers[i].width;
    if (is.key_width != said.key_width || is.value_width != said.value_width)
      throw Error::input(fmt::format("rows of layer {} are not cut by heads: {} numbers in place of {}", i,
                                     is.key_width + is.value_width, said.key_width + said.value_width));
    const bool same = std::equal(
        is.states.begin(), is.states.end(), said.states.begin(), said.states.end(),
        [](const StateShape& a, const StateShape& b) { return a.rows == b.rows && a.columns == b.columns; });
    if (!same) throw Error::input(fmt::format("the state of layer {} is not cut by heads", i));
  }
}

}  // namespace assay
