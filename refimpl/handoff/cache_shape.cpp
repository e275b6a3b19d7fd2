#include "refimpl/handoff/cache_shape.h"

#include <fmt/format.h>

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
  std::size_t main = tree.layers;
  if (model.draft_layers() == 0 && tree.layers > 0 && widths.size() % tree.layers == 0) main = widths.size();
  if (main == 0 || main > widths.size())
    throw Error::internal("a model's cache has fewer layers than the model");
  CacheShape shape{.layers = {}, .tree_layers = tree.layers, .hidden = tree.hidden_size};
  for (std::size_t i = 0; i < main; ++i) {
    const std::uint64_t layer = i / std::max<std::size_t>(1, main / tree.layers);
    shape.layers.push_back({widths[i], heads_of(widths[i], tree, layer)});
  }
  return shape;
}

CacheShape shape_of_rank(const CacheShape& whole, const std::vector<CacheWidth>& widths, std::uint64_t ranks,
                         std::uint64_t rank) {
  CacheShape shape = whole;
  shape.ranks = ranks;
  shape.rank = rank;
  if (widths.size() < whole.layers.size())
    throw Error::internal("a rank's cache has fewer layers than the model");
  for (std::size_t i = 0; i < whole.layers.size(); ++i) {
    CacheShape::Layer& layer = shape.layers[i];
    const CacheWidth &all = whole.layers[i].width, &mine = widths[i];
    if (!all.states.empty() && ranks > 1)
      throw Error::input(fmt::format("layer {} keeps a state, of which ranks have parts", i))
          .remedy("hand over from one process to one");
    const HeadRange own = heads_of_rank(layer.heads, ranks, rank);
    if (mine.key_width * own.of != all.key_width * own.count ||
        mine.value_width * own.of != all.value_width * own.count)
      throw Error::input(fmt::format("rows of layer {} are not cut by heads: {} numbers of {}", i,
                                     mine.key_width + mine.value_width, all.key_width + all.value_width));
    layer.width = mine;
    layer.heads = own.count;
    layer.of_rank = own;
    layer.sends = ranks <= own.of || rank % (ranks / own.of) == 0;
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
