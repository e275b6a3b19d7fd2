// A text whose prompt was read elsewhere: what the engine needs to go on from it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "refimpl/speculation/drafter.h"
#include "refimpl/step/kv_cache.h"

namespace assay {

struct HandedText {
  // By group of layers, block by block as BlockStorage::read() has them; empty: nobody looks at it any more.
  std::vector<std::vector<std::vector<double>>> blocks;
  SequenceCache::States states;  // behind the prompt
  bool whole = true;  // rows of every token are there; else no other text may go on from these blocks
  // The first token, or what the output head saw of the prompt's last one, from which it is chosen here: [1, hidden].
  std::optional<TokenId> first;
  Matrix hidden;
  // What a drafter knows of the prompt; the first token stands behind it.
  std::function<void(Drafter&, std::span<const TokenId> text)> teach = {};
};

}  // namespace assay
