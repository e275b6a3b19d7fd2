// What a model's cache is made of, layer by layer: the shape that both sides of a hand-off must agree on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/module_tree.h"
#include "refimpl/handoff/handoff_part.h"
#include "refimpl/handoff/state_cut.h"
#include "refimpl/models/model.h"

namespace assay {

struct CacheShape {
  struct Layer {
    CacheWidth width;
    std::uint64_t heads = 1;  // that a row is made of: kv heads; 1: a latent, which is nobody's part
    // At a rank: which of the whole model's heads these are; and of ranks that have the same the first one sends.
    std::optional<HeadRange> of_rank = {};
    bool sends = true;
    std::vector<StateCut> states = {};  // of width.states each
    HeadRange own() const { return of_rank.value_or(HeadRange{0, heads, heads}); }
  };
  std::vector<Layer> layers;    // those of the main model; layers of multi-token prediction come behind
  std::size_t tree_layers = 1;  // of the model: a layer may have several caches (LongCat: one a half)
  std::uint64_t hidden = 0;     // numbers of a hidden state
  std::uint64_t ranks = 1,
                rank = 0;  // that have a part of it each, and a place of their own for what they send or take
  bool has_head = true;    // what the output head sees is here; of several ranks the first such tells it

  std::size_t caches_a_layer() const { return tree_layers == 0 ? 1 : layers.size() / tree_layers; }
  // A token behind `tokens` others looks at rows from this one on.
  static std::size_t first_needed(const CacheWidth& width, std::size_t tokens) {
    return width.window == 0 || tokens + 1 <= width.window ? 0 : tokens + 1 - width.window;
  }
  bool has_windows() const;
};
CacheShape cache_shape(const LanguageModel& model, const ModuleTree& tree);

// Bytes a token of a hand-off, but for headers: of rows of all layers whose windows hold it; of a hidden state.
struct TokenBytes {
  std::uint64_t rows = 0, hidden = 0;
};
TokenBytes token_bytes(const CacheShape& shape, std::uint64_t number_bytes);

}  // namespace assay
