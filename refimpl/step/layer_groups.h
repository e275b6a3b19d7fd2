// A model's layers grouped otherwise than it was trained with, to have smaller caches (Character.AI, "Optimizing AI
// Inference", 2024): most layers look back a window only, one in so many sees everything, and neighbours of a kind
// share keys and values. Gemma 3 and gpt-oss are made so (windows), Gemma 3n and Gemma 4 too (sharing); a model that is
// not computes something else under it.
#pragma once

#include <cstddef>

namespace assay {

struct LayerGroups {
  std::size_t every = 1, window = 0;  // layers every - 1, 2 every - 1 … see everything, the others a window
  std::size_t share = 1;  // so many layers of a kind read the keys and values of the first of them
  bool as_ever() const { return (every == 1 || window == 0) && share == 1; }
};

}  // namespace assay
