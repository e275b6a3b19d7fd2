// Phi-3-small's block-sparse attention (arXiv 2404.14219): a query sees the last blocks of the text, its own among them, and of
// those before every so manieth, which by head begin elsewhere. Source: get_sparse_attn_mask beside the weights, and in vLLM 0.10.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "refimpl/models/biased_attention.h"

namespace assay {

struct BlockPattern {
  std::size_t block = 64, local = 16, stride = 8;
  bool alike = false;           // all heads see what the first one does
  std::size_t dense_every = 0;  // every so manieth layer sees all; 0: none does

  bool of_layer(std::size_t layer) const { return dense_every == 0 || (layer + 1) % dense_every != 0; }
  // `heads`: of the whole model.
  bool sees(std::size_t head, std::size_t heads, std::size_t position, std::size_t key) const {
    const std::size_t of_query = position / block, of_key = key / block;
    const std::size_t shift = alike ? 0 : head * std::max<std::size_t>(1, stride / heads);
    return of_query - of_key < local || (of_key + shift + 1) % stride == 0;
  }
};

// What is not seen has a score of -∞. `pattern` outlives it.
inline ScoreBiases pattern_biases(const BlockPattern& pattern, std::size_t heads) {
  return [&pattern, heads](const SequenceMetadata&, std::size_t head) -> ScoreBias {
    return [&pattern, heads, head](std::size_t, std::size_t position, std::size_t key) {
      return pattern.sees(head, heads, position, key) ? 0 : -std::numeric_limits<double>::infinity();
    };
  };
}

}  // namespace assay
