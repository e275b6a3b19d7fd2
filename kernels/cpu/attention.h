// Attention without the matrix of scores (Dao et al. 2022): keys go by in blocks of one panel, and each query
// keeps its largest score m so far, the sum l of exponentials under it, and the output that belongs to both:
//
//   m' = max(m, max s)    l' = e^(m-m')·l + Σ e^(s-m')    o' = e^(m-m')·o + Σ e^(s-m')·v    out = o / l
//
// The queries of all heads that share a key head, at several positions, go through together, so that a block
// of keys is read and packed once for all of them. A sequence's result does not depend on the others of its
// batch.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

// Fewer queries than this share too little to pay for packing their keys.
inline constexpr std::size_t kPackRows = 4;
// Rows of a tile: four register tiles of the product, for which keys are packed once.
inline constexpr std::size_t kTileQueries = 48;
// Keys of a part: enough that merging it costs nothing beside it.
inline constexpr std::size_t kSplitKeys = 128;
// From so many keys on, a sequence's only query is taken by parts of its keys.
inline constexpr std::size_t kSplitFrom = 512;

// float32 alone. `out` [tokens, heads · v_dim]. The long past of a sequence's only query is split as below, the short one
// of a few heads read row by row (attention_decode.h).
void attention(const AttentionCall& call, const Matrix& out, int jobs);

// Split-KV decoding (Flash-Decoding, Dao et al. 2023): parts of the keys by themselves, so that one query of
// few heads still is work for all threads; m, l and o of the parts merged as above. Parts have a fixed
// length: results depend neither on threads nor on other sequences.
void split_attention(const AttentionCall& call, const Matrix& out, int jobs);

// As attention(), but a token's bits depend on nothing but the token and its keys: not on how many tokens come
// with it, nor on where its prompt was cut. Keys are never split, always packed, and blocks of them begin at the
// same keys for all.
void steady_attention(const AttentionCall& call, const Matrix& out, int jobs);

// Some queries against the keys of one sequence and one key head.
struct AttendTile {
  std::size_t rows = 0;
  const float* q = nullptr;               // [rows, qk_dim], scaled
  const std::size_t* first = nullptr;     // row i sees keys first[i] …
  const std::size_t* position = nullptr;  // … position[i]
  PagedKvView keys, values;
  std::size_t key_column = 0, value_column = 0;  // where the head begins in a row of the cache
  std::size_t qk_dim = 0, v_dim = 0;
  float soft_cap = 0;
  const float* sinks = nullptr;  // one a row, or none
  float* out = nullptr;          // [rows, v_dim]
  // Only keys key_begin … key_end - 1; where `largest` and `sum` are given [rows], m and l go there, and
  // `out` is o, with neither the division nor the sinks.
  std::size_t key_begin = 0, key_end = static_cast<std::size_t>(-1);
  float *largest = nullptr, *sum = nullptr;
  // Every block is of one width and begins at a multiple of it; keys that no row sees are not read.
  bool steady = false;
};
void attend(const AttendTile& tile);

}  // namespace assay::cpu
