// What the attention kernels are given: numbers and addresses, as they lie in a device's memory.
//
// The rows of a sequence are its queries times the query heads that share a key head, heads first: row r is
// query r / group, head r % group of the key head. So the tiles of one key head serve its whole group (GQA,
// MQA, MLA), and decoding one token fills a tile as a prompt does.
#pragma once

#include <cstdint>

namespace assay::cuda {

// Keys and values of one sequence; without a table of pages its rows lie on end. Strides are in elements.
struct SequenceArgs {
  const void* keys = nullptr;
  const void* values = nullptr;
  const std::int32_t* key_pages = nullptr;
  const std::int32_t* value_pages = nullptr;
  std::uint32_t key_page_rows = 0, value_page_rows = 0;
  std::uint64_t key_stride = 0, value_stride = 0;
  std::uint32_t first = 0, queries = 0, key_count = 0;  // as SequenceMetadata's first, queries, keys
};

// A tile of rows against keys [key_begin, key_end) of its sequence. `partial`: where its part of the sums
// goes, to be merged; kWhole: it sees all there is, and writes the result.
struct AttentionWork {
  static constexpr std::uint32_t kWhole = 0xFFFFFFFF;
  std::uint32_t sequence = 0, first_row = 0;
  std::uint32_t key_begin = 0, key_end = 0;
  std::uint32_t partial = kWhole;
  bool operator==(const AttentionWork&) const = default;
};
// Partials [partial, partial + splits) are of one tile of rows, in the order of their keys.
struct MergeWork {
  std::uint32_t sequence = 0, first_row = 0;
  std::uint32_t partial = 0, splits = 0;
  bool operator==(const MergeWork&) const = default;
};

// How a block works, and where things lie in its shared memory: plan_attention.h decides.
struct AttentionTiling {
  std::uint32_t rows = 16;  // of a block's tile
  std::uint32_t keys = 64;  // of one step through the cache
  std::uint32_t stages = 2;
  std::uint32_t q_pitch = 0, key_pitch = 0, weight_pitch = 0;  // elements from row to row
  std::uint32_t score_parts = 1;  // of latents: a product over a row is cut into so many sums, each of a warp
  std::uint32_t ring = 0, scores = 0, weights = 0, rows_found = 0, shares = 0;  // bytes from the beginning
  std::uint32_t shared_bytes = 0;
};

// Of mla_attention.cuh: warps of a block, columns of a cached row and of the values in it, and floats behind the
// scores of a row, so that a warp's pairs of them meet different banks.
inline constexpr std::uint32_t kMlaWarps = 8, kMostLatentKey = 576, kMostLatent = 512, kScorePad = 8;

// Of mla_wgmma.cuh: bytes from the beginning of shared memory. Nine tiles of 64 rows × 64 queries in bfloat16; two steps of 32
// keys, nine tiles each; a tile of weights; three float32 numbers a row; as many rows of the cache, as they come, as a step
// has keys; a barrier for each of two full and empty steps, and for each four rows that come.
struct MlaWgmmaRoom {
  static constexpr std::uint32_t kRows = 64, kKeys = 32, kSteps = 2, kTiles = kMostLatentKey / 64;
  static constexpr std::uint32_t kRowTile = kRows * 128, kKeyTile = kKeys * 128;
  static constexpr std::uint32_t kQueries = 0, kRing = kTiles * kRowTile,
                                 kWeights = kRing + kSteps * kTiles * kKeyTile;
  static constexpr std::uint32_t kRaw = kWeights + kRowTile, kRawRow = kMostLatentKey * 4;
  static constexpr std::uint32_t kShares = kRaw + kKeys * kRawRow, kBarriers = kShares + 3 * kRows * 4;
  static constexpr std::uint32_t kBytes = kBarriers + (2 * kSteps + kKeys / 4) * 8;
};

// Of decode_attention.cuh: warps of a block, floats from row to row of what each of them leaves in shared memory, so that its
// stores meet different banks, and all floats of an instance of so many columns and rows.
inline constexpr std::uint32_t kStreamWarps = 4;
constexpr std::uint32_t stream_sum_pitch(std::uint32_t columns) {
  return columns + 4;
}
constexpr std::uint32_t stream_floats(std::uint32_t columns, std::uint32_t rows) {
  return kStreamWarps * rows * (stream_sum_pitch(columns) + 2) + 16 + 2 * rows;
}

struct AttentionArgs {
  const void* q = nullptr;        // [tokens, heads, head]
  std::uint64_t q_stride = 0;     // from one token to the next
  std::uint32_t head_stride = 0;  // of q and keys: qk_dim up to whole 16 bytes, zeros behind it
  std::uint32_t value_head_stride = 0;
  const SequenceArgs* sequences = nullptr;
  const AttentionWork* work = nullptr;  // one a block in x
  const MergeWork* merges = nullptr;    // one a block in x of the merge
  const float* sinks = nullptr;         // [heads], or none
  float* out = nullptr;                 // [tokens, heads · v_dim]
  std::uint64_t out_stride = 0;
  // Of partial p, key head k, row r of a tile: slot = (p · kv_heads + k) · tiling.rows + r.
  float* partial_out = nullptr;    // [slots, v_dim]: Σ e^(s - m) v
  float* partial_stats = nullptr;  // [slots, 2]: m in powers of two, Σ e^(s - m)
  std::uint32_t heads = 0, kv_heads = 0, qk_dim = 0, v_dim = 0;
  std::uint32_t window = 0;  // 0: all keys
  // A score in powers of two is product · score_factor; under a cap, cap_factor · tanh(product ·
  // score_factor).
  float score_factor = 1, cap_factor = 0;
  bool round_out = false;  // to bfloat16 numbers
  AttentionTiling tiling;
};

// Rows of heads to be packed: packed_heads.cuh.
struct PackArgs {
  const float* from = nullptr;  // [rows, heads, dim]
  void* to = nullptr;           // [rows, heads, padded]
  std::uint64_t stride = 0;     // of `from`, elements
  std::uint64_t rows = 0;
  std::uint32_t heads = 0, dim = 0, padded = 0;
};

// Of mla_product.cuh: groups of a block's threads, each with a part of the terms.
inline constexpr std::uint32_t kProductGroups = 4;
// One matrix a head, around the attention over latents: mla_product.cuh. Strides are in elements.
struct MlaProductArgs {
  const void* x = nullptr;                 // [tokens, heads, inputs], float32
  const void* w = nullptr;                 // [heads, inputs, outputs]
  void* y = nullptr;                       // [tokens, heads, outputs]
  std::uint64_t x_stride = 0, x_head = 0;  // from one token, one head to the next
  std::uint64_t y_stride = 0, y_head = 0;
  std::uint32_t tokens = 0, inputs = 0, outputs = 0;
  // Behind the results of a head come y_tail columns more: x_tail that stand behind its inputs, then zeros.
  std::uint32_t x_tail = 0, y_tail = 0;
  bool round = false;  // results to bfloat16 numbers
};

}  // namespace assay::cuda
