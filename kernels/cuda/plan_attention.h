// How attention is cut up for a device: tiles of rows, steps through the cache, pieces of long sequences.
//
// Made on the host from shapes and limits alone; nothing of it depends on what a device is doing, so that the
// same shapes give the same pieces, and the same bits.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/registry/edges.h"

namespace assay::cuda {

// How the keys of a tile of rows are cut.
enum class SplitRule : std::uint8_t {
  // Not: one block sees all of a tile's keys.
  none,
  // At multiples of kFixedSplit keys (kFixedMlaSplit for latents): what a row gets depends on nothing but
  // its own sequence.
  fixed,
  // As `fixed`, of sequences of few rows, which decode: kDecodingRows. Prompts are not cut: they fill the
  // device with tiles, and the pieces' sums would be more to write than their keys are to read. Of
  // decode_attention: streamed_split().
  decoding,
  // As many pieces as make kWantedBlocks blocks of the whole call, of at least kLeastSplit keys each and of
  // whole steps: round_up(⌈longest / pieces⌉, 64), pieces = kWantedBlocks / blocks without a cut.
  by_shape
};
inline constexpr std::size_t kFixedSplit = 256, kFixedMlaSplit = 256;
inline constexpr std::size_t kLeastSplit = 128;
inline constexpr std::size_t kDecodingRows = 64;  // queries × heads that share a key head
// Two for each of an H100's 132 SMs; the same on every device, so that pieces are too.
inline constexpr std::size_t kWantedBlocks = 264;
// Of mla_wgmma.cuh, of which an SM holds one.
inline constexpr std::size_t kWantedMlaBlocks = 132;

// Four for each of those SMs, of 4 warps. More rows than these, of a key head, are flash_attention's.
inline constexpr std::size_t kStreamedBlocks = 528;
// Of a sequence: more are more for the merge to wait for than for the device to be filled with. 128 blocks of 4 warps still have
// 32 KB an SM under way.
inline constexpr std::size_t kMostStreamedPieces = 128;
inline constexpr std::size_t kStreamedRows = 16, kStreamedWideRows = 8;  // wide: of more than 128 columns

struct SequenceShape {
  std::size_t queries = 0, keys = 0;
};
struct AttentionShape {
  std::size_t heads = 1, kv_heads = 1, qk_dim = 1, v_dim = 1;
  std::size_t window = 0;
  // Of q, keys and values as the kernel reads them: 4 float32, 2 bfloat16.
  unsigned element_bytes = 4;
  std::vector<SequenceShape> sequences;
};

struct AttentionPlan {
  LaunchPlan tiles, merge;  // merge: a grid of nothing where no tile was cut
  AttentionTiling tiling;
  unsigned value_tiles = 1;       // of 64 columns: which instance of flash_attention
  unsigned row_groups = 1;        // of 16 rows, a warp's: likewise
  unsigned streamed_columns = 0;  // 64, 128, 256: which instance of decode_attention, of tiling.rows; 0: none
  bool wgmma = false;             // mla_wgmma.cuh, which reads float32 rows of the cache where they lie
  std::vector<AttentionWork> work;  // the longest first
  std::vector<MergeWork> merges;
  std::size_t partials = 0;
};
AttentionPlan plan_attention(const DeviceLimits& limits, const AttentionShape& shape, SplitRule rule);
// Of rows that decode, by decode_attention.cuh: of sequences alone that may_stream(), of float32 numbers where they lie. The
// rule is `decoding`, of which a sequence's pieces are of a length that is its own (streamed_split), or `by_shape`, for
// kStreamedBlocks.
AttentionPlan plan_decode_attention(const DeviceLimits& limits, const AttentionShape& shape, SplitRule rule);
bool may_stream(const AttentionShape& shape, const SequenceShape& sequence);
// Keys of a piece: what makes kStreamedBlocks of the sequence, but no more than kMostStreamedPieces, and at least 32 for each row of a key head, since to write and
// read a piece's sums is to move 2 · rows (v + 2) numbers beside keys (qk + v), 1/32 of them; at least kLeastSplit.
std::size_t streamed_split(const AttentionShape& shape, const SequenceShape& sequence);
// Of latents: kv_heads 1, and the values are the first v_dim columns of the keys.
AttentionPlan plan_mla_attention(const DeviceLimits& limits, const AttentionShape& shape, SplitRule rule);

Edges attention_edges();
Edges mla_edges();

// Of packed_heads.cuh.
LaunchPlan plan_pack_heads(const DeviceLimits& limits, std::size_t bytes);
// Of mla_product.cuh.
LaunchPlan plan_mla_product(const DeviceLimits& limits, std::size_t tokens, std::size_t heads,
                            std::size_t inputs, std::size_t outputs);

// Elements from one head to the next where each begins on 16 bytes.
constexpr std::size_t padded_head(std::size_t dim, unsigned element_bytes) {
  const std::size_t vector = 16 / element_bytes;
  return (dim + vector - 1) / vector * vector;
}

}  // namespace assay::cuda
