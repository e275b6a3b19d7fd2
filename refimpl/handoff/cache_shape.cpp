#include "refimpl/handoff/cache_shape.h"

#include <algorithm>

#include "core/system/error.h"

namespace assay {
namespace {

std::uint64_t heads_of(const CacheWidth& width, const ModuleTree& tree, std::uint64_t layer) {
  for (const AttentionGeometry& g : tree.attention) {
    if (std::find(g.layers.begin(), g.layers.end(), layer) == g.layers.end()) continue;
    const bool by_heads =
        g.kind == AttentionGeometry::Kind::heads && !g.keys_are_values && g.kv_heads > 0 && g.compressed == 0;
    if (by_heads && width.key_width == g.kv_heads * g.qk_head_dim &&
        width.value_width == g.kv_heads * g.v_head_dim)
      return g.kv_heads;
  }
  return 1;
}

}  // namespace

bool CacheShape::has_windows() const {
  return std::any_of(layers.begin(), layers.end(), [](const Layer& l) { return l.width.window != 0; });
}

CacheShape cache_shape(const LanguageModel& model, const ModuleTree& tree) {
  const std::vector<CacheWidth> widths = model.cache_widths();
  auto main = static_cast<std::size_t>(
      std::count_if(widths.begin(), widths.end(), [](const CacheWidth& width) { return !width.drafts; }));
  if (tree.layers > 0 && main % tree.layers != 0) main = tree.layers;
  if (main == 0 || main > widths.size())
    throw Error::internal("a model's cache has fewer layers than the model");
  CacheShape shape{.layers = {}, .tree_layers = tree.layers, .hidden = tree.hidden_size * model.streams()};
  for (std::size_t i = 0; i < main; ++i) {
    const std::uint64_t layer = i / std::max<std::size_t>(1, main / tree.layers);
    shape.layers.push_back({.width = widths[i],
                            .heads = heads_of(widths[i], tree, layer),
                            .states = state_cuts(tree, layer, widths[i].states)});
  }
  return shape;
}

TokenBytes token_bytes(const CacheShape& shape, std::uint64_t number_bytes) {
  TokenBytes bytes{.rows = 0, .hidden = shape.hidden * number_bytes};
  for (const CacheShape::Layer& layer : shape.layers)
    bytes.rows += (layer.width.key_width + layer.width.value_width) * number_bytes;
  return bytes;
}

}  // namespace assay
