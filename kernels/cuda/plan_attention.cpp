#include "kernels/cuda/plan_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "core/system/error.h"
#include "kernels/cuda/plan_words.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kStep = 64;  // keys, and columns, of a tile of flash_attention.cuh
constexpr std::size_t kTallRows = 128;
constexpr std::size_t kNoSplit = std::numeric_limits<std::size_t>::max() / 2;
constexpr unsigned kMlaThreads = 32 * kMlaWarps, kMergeThreads = 128;

std::size_t group_of(const AttentionShape& shape) {
  return shape.heads / shape.kv_heads;
}

// Keys [begin, end) that some row of a tile sees.
struct KeyRange {
  std::size_t begin = 0, end = 0;
};
KeyRange keys_of_tile(const AttentionShape& shape, const SequenceShape& s, std::size_t first_row,
                      std::size_t rows) {
  const std::size_t group = group_of(shape);
  const std::size_t last = std::min(first_row + rows, s.queries * group) - 1;
  const std::size_t first_seen = s.keys - s.queries + first_row / group + 1;
  return {shape.window != 0 && first_seen > shape.window ? first_seen - shape.window : 0,
          s.keys - s.queries + last / group + 1};
}

template <class Visit>
void for_each_tile(const AttentionShape& shape, std::size_t rows, Visit visit) {
  for (std::size_t i = 0; i < shape.sequences.size(); ++i) {
    const SequenceShape& s = shape.sequences[i];
    for (std::size_t row = 0; row < s.queries * group_of(shape); row += rows)
      visit(i, row, keys_of_tile(shape, s, row, rows));
  }
}

// Of each sequence: where its keys are cut.
struct Splits {
  std::size_t few_rows = kNoSplit, many_rows = kNoSplit;
  std::size_t of(const AttentionShape& shape, std::size_t sequence) const {
    return shape.sequences[sequence].queries * group_of(shape) <= kDecodingRows ? few_rows : many_rows;
  }
};

Splits splits_of(const AttentionShape& shape, SplitRule rule, std::size_t rows, std::size_t blocks_a_tile,
                 std::size_t fixed, std::size_t wanted = kWantedBlocks) {
  if (rule == SplitRule::none) return {};
  if (rule == SplitRule::decoding) return {.few_rows = fixed};
  if (rule == SplitRule::fixed) return {fixed, fixed};
  std::size_t blocks = 0, longest = 1;
  for_each_tile(shape, rows, [&](std::size_t, std::size_t, const KeyRange& keys) {
    blocks += blocks_a_tile;
    longest = std::max(longest, keys.end - keys.begin);
  });
  const std::size_t pieces = std::max<std::size_t>(1, wanted / std::max<std::size_t>(1, blocks));
  const std::size_t split = std::max(kLeastSplit, round_up(blocks_for(longest, pieces), kStep));
  return {split, split};
}

template <class SplitsOfSequences>
void cut(const AttentionShape& shape, std::size_t rows, const SplitsOfSequences& splits,
         AttentionPlan& plan) {
  for_each_tile(shape, rows, [&](std::size_t sequence, std::size_t row, const KeyRange& keys) {
    AttentionWork work = {.sequence = narrow(sequence), .first_row = narrow(row)};
    const std::size_t split = splits.of(shape, sequence);
    const std::size_t first = keys.begin / split, pieces = (keys.end - 1) / split + 1 - first;
    for (std::size_t i = first; i < first + pieces; ++i) {
      work.key_begin = narrow(std::max(keys.begin, i * split));
      work.key_end = narrow(std::min(keys.end, (i + 1) * split));
      if (pieces > 1) work.partial = narrow(plan.partials + i - first);
      plan.work.push_back(work);
    }
    if (pieces == 1) return;
    plan.merges.push_back({narrow(sequence), narrow(row), narrow(plan.partials), narrow(pieces)});
    plan.partials += pieces;
  });
  // Under a causal mask a prompt's last tiles have the most to do: they are not to begin last. Of equals those that
  // read the same keys are neighbours: the second finds them in the L2 cache.
  const auto order = [](const AttentionWork& w) {
    return std::tuple(w.key_begin - w.key_end, w.sequence, w.key_begin, w.first_row);
  };
  std::sort(plan.work.begin(), plan.work.end(),
            [&](const AttentionWork& a, const AttentionWork& b) { return order(a) < order(b); });
}

// The most rows of a tile that there are, of those that are merged.
std::size_t rows_merged(const AttentionShape& shape, const AttentionPlan& plan) {
  std::size_t rows = 1;
  for (const MergeWork& merge : plan.merges)
    rows = std::max(rows, shape.sequences[merge.sequence].queries * group_of(shape) - merge.first_row);
  return std::min<std::size_t>(rows, plan.tiling.rows);
}

LaunchPlan merge_plan(const DeviceLimits& limits, const AttentionShape& shape, const AttentionPlan& plan) {
  LaunchPlan merge = checked_plan(
      limits,
      {.kernel = "attention_merge",
       .variant = said("{} threads", kMergeThreads),
       .grid = {static_cast<unsigned>(std::max<std::size_t>(1, plan.merges.size())),
                static_cast<unsigned>(shape.kv_heads), static_cast<unsigned>(rows_merged(shape, plan))},
       .threads = kMergeThreads,
       .shared_bytes = kMergeThreads * 5 * sizeof(float),  // MergeRoom
       .registers = 80,
       .why = said("{} tiles were cut, into {} pieces", plan.merges.size(), plan.partials)});
  merge.grid.x = static_cast<unsigned>(plan.merges.size());
  return merge;
}

void require_shape(const AttentionShape& shape) {
  if (shape.kv_heads == 0 || shape.heads % shape.kv_heads != 0 || shape.qk_dim == 0 || shape.v_dim == 0)
    throw Error::internal(fmt::format("attention of {} heads over {} KV heads, {} wide and {} for values",
                                      shape.heads, shape.kv_heads, shape.qk_dim, shape.v_dim));
}

// The rows that one sequence fills, in whole fragments.
std::size_t rows_wanted(const AttentionShape& shape, std::size_t most) {
  std::size_t rows = 0;
  for (const SequenceShape& s : shape.sequences) rows = std::max(rows, s.queries * group_of(shape));
  return std::clamp(round_up(rows, 16), std::size_t{16}, most);
}

AttentionTiling tiling_of(const AttentionShape& shape, std::size_t rows, std::size_t stages) {
  const std::size_t vector = 16 / shape.element_bytes;
  // 16 columns are a fragment of bfloat16 and two of tf32; 16 bytes more, and rows lie in different banks.
  const std::size_t q_pitch = round_up(shape.qk_dim, 16) + vector, pitch = kStep + vector;
  AttentionTiling t = {.rows = static_cast<std::uint32_t>(rows),
                       .keys = kStep,
                       .stages = static_cast<std::uint32_t>(stages),
                       .q_pitch = static_cast<std::uint32_t>(q_pitch),
                       .key_pitch = static_cast<std::uint32_t>(pitch)};
  t.ring = static_cast<std::uint32_t>(rows * q_pitch * shape.element_bytes);
  t.rows_found = static_cast<std::uint32_t>(t.ring + stages * kStep * pitch * shape.element_bytes);
  t.shared_bytes =
      static_cast<std::uint32_t>(t.rows_found + std::size_t{4} * 2 * kStep * sizeof(std::int32_t));
  return t;
}

// Of the compiled instances (-Xptxas -v, the most of sm_80, sm_89 and sm_90a), in steps of 8.
unsigned registers_of(unsigned element_bytes, unsigned value_tiles, unsigned row_groups) {
  if (row_groups == 2) return 255;
  if (element_bytes == 2) return value_tiles == 4 ? 255 : value_tiles == 2 ? 224 : 192;
  return value_tiles == 2 ? 224 : 184;
}

// Of the depths of the ring the one with the most tiles under way on an SM, so many; 0: none fits.
std::size_t choose_ring(const DeviceLimits& limits, const AttentionShape& shape, std::size_t rows,
                        AttentionPlan& plan) {
  const auto threads = static_cast<unsigned>(2 * rows / plan.row_groups);
  const unsigned registers = registers_of(shape.element_bytes, plan.value_tiles, plan.row_groups);
  std::size_t best = 0;
  for (const std::size_t stages : {2, 3, 4}) {
    const AttentionTiling t = tiling_of(shape, rows, stages);
    const std::size_t under_way = (stages - 1) * resident_blocks(limits, threads, t.shared_bytes, registers);
    if (under_way <= best) continue;
    best = under_way;
    plan.tiling = t;
  }
  return best;
}

// 32 rows a warp read keys and values from shared memory half as often, where registers hold the sums of so many: of heads
// of 64 columns (of 128 some spill). For prompts alone, which occupy the device with tiles of 128 rows.
bool wants_tall_tiles(const DeviceLimits& limits, const AttentionShape& shape, unsigned value_tiles) {
  if (shape.element_bytes != 2 || value_tiles > 1 || rows_wanted(shape, kTallRows) < kTallRows) return false;
  std::size_t tiles = 0;
  for_each_tile(shape, kTallRows,
                [&](std::size_t, std::size_t, const KeyRange&) { tiles += shape.kv_heads; });
  return tiles >= limits.sm_count;
}

}  // namespace

AttentionPlan plan_attention(const DeviceLimits& limits, const AttentionShape& shape, SplitRule rule) {
  require_shape(shape);
  AttentionPlan plan;
  const std::size_t most_tiles = shape.element_bytes == 2 ? 4 : 2;
  const std::size_t tiles = blocks_for(shape.v_dim, kStep);
  plan.value_tiles = static_cast<unsigned>(tiles == 1 ? 1 : tiles == 2 || most_tiles == 2 ? 2 : 4);

  std::size_t best = 0;  // tiles under way
  if (wants_tall_tiles(limits, shape, plan.value_tiles)) {
    plan.row_groups = 2;
    best = choose_ring(limits, shape, kTallRows, plan);
  }
  if (best == 0) plan.row_groups = 1;
  for (std::size_t rows = rows_wanted(shape, 64); best == 0;
       rows = round_up(rows / 2, 16)) {  // the most that fit
    best = choose_ring(limits, shape, rows, plan);
    if (rows == 16) break;
  }
  if (best == 0) plan.tiling = tiling_of(shape, 16, 2);

  const std::size_t value_groups = blocks_for(tiles, plan.value_tiles);
  cut(shape, plan.tiling.rows,
      splits_of(shape, rule, plan.tiling.rows, shape.kv_heads * value_groups, kFixedSplit), plan);
  plan.tiles = checked_plan(
      limits,
      {.kernel = "flash_attention",
       .variant = said("{} rows, {} × 64 columns of values, {}", plan.tiling.rows, plan.value_tiles,
                       shape.element_bytes == 2 ? "bf16" : "3 × tf32"),
       .grid = {static_cast<unsigned>(plan.work.size()), static_cast<unsigned>(shape.kv_heads),
                static_cast<unsigned>(value_groups)},
       .threads = 2 * plan.tiling.rows / plan.row_groups,
       .shared_bytes = plan.tiling.shared_bytes,
       .stages = static_cast<int>(plan.tiling.stages),
       .registers = registers_of(shape.element_bytes, plan.value_tiles, plan.row_groups),
       .why = said("{} pieces of work; {} tiles of 64 × 64 under way on an SM", plan.work.size(), best)});
  plan.merge = merge_plan(limits, shape, plan);
  return plan;
}

namespace {

std::size_t streamed_columns(const AttentionShape& shape) {
  const std::size_t columns = std::max(padded_head(shape.qk_dim, 4), padded_head(shape.v_dim, 4));
  return columns <= 64 ? 64 : columns <= 128 ? 128 : columns <= 256 ? 256 : 0;
}

// The most of a sequence.
std::size_t streamed_pieces(const AttentionShape& shape) {
  return std::clamp(kStreamedBlocks / shape.kv_heads, std::size_t{1}, kMostStreamedPieces);
}

struct StreamedSplits {
  std::size_t of(const AttentionShape& shape, std::size_t sequence) const {
    return streamed_split(shape, shape.sequences[sequence]);
  }
};

// As registers_of(). Never spilled.
unsigned stream_registers(std::size_t columns, std::size_t rows) {
  return columns == 256 ? 232 : rows == 16 ? 168 : 128;
}

}  // namespace

bool may_stream(const AttentionShape& shape, const SequenceShape& sequence) {
  const std::size_t columns = streamed_columns(shape);
  return columns != 0 &&
         sequence.queries * group_of(shape) <= (columns == 256 ? kStreamedWideRows : kStreamedRows);
}

std::size_t streamed_split(const AttentionShape& shape, const SequenceShape& sequence) {
  const std::size_t rows = sequence.queries * group_of(shape);
  const KeyRange keys = keys_of_tile(shape, sequence, 0, rows);
  const std::size_t least = rows <= 4 ? kLeastSplit : rows <= 8 ? 2 * kLeastSplit : 4 * kLeastSplit;
  return std::max(least, round_up(blocks_for(keys.end - keys.begin, streamed_pieces(shape)), kStep));
}

AttentionPlan plan_decode_attention(const DeviceLimits& limits, const AttentionShape& shape, SplitRule rule) {
  require_shape(shape);
  AttentionPlan plan;
  plan.streamed_columns = static_cast<unsigned>(streamed_columns(shape));
  plan.tiling = {.rows = 8};
  for (const SequenceShape& s : shape.sequences) {
    if (!may_stream(shape, s)) throw Error::internal("decoding: rows that do not stream");
    if (s.queries * group_of(shape) > 8) plan.tiling.rows = 16;
  }
  plan.tiling.keys = plan.streamed_columns == 64 ? 16 : 8;
  plan.tiling.shared_bytes = 4 * stream_floats(plan.streamed_columns, plan.tiling.rows);
  if (rule == SplitRule::decoding)
    cut(shape, plan.tiling.rows, StreamedSplits(), plan);
  else
    cut(shape, plan.tiling.rows,
        splits_of(shape, rule, plan.tiling.rows, shape.kv_heads, kFixedSplit,
                  shape.kv_heads * streamed_pieces(shape)),
        plan);
  plan.tiles = checked_plan(
      limits,
      {.kernel = "decode_attention",
       .variant = said("{} rows, {} columns", plan.tiling.rows, plan.streamed_columns),
       .grid = {narrow(plan.work.size() * shape.kv_heads), 1, 1},
       .threads = 32 * kStreamWarps,
       .shared_bytes = plan.tiling.shared_bytes,
       .registers = stream_registers(plan.streamed_columns, plan.tiling.rows),
       .why = said("{} pieces of work; keys and values go from memory into registers", plan.work.size())});
  plan.merge = merge_plan(limits, shape, plan);
  return plan;
}

namespace {

AttentionTiling mla_tiling(const AttentionShape& shape, std::size_t rows, std::size_t keys,
                           std::size_t stages) {
  const std::size_t vector = 16 / shape.element_bytes, pitch = round_up(shape.qk_dim, 16) + vector;
  AttentionTiling t = {.rows = static_cast<std::uint32_t>(rows),
                       .keys = static_cast<std::uint32_t>(keys),
                       .stages = static_cast<std::uint32_t>(stages),
                       .key_pitch = static_cast<std::uint32_t>(pitch),
                       .weight_pitch = static_cast<std::uint32_t>(keys + vector),
                       .score_parts = rows == 16 ? kMlaWarps : kMlaWarps / 2};
  std::size_t at = 0;
  const auto place = [&](std::size_t bytes) {
    const auto here = static_cast<std::uint32_t>(at);
    at += bytes;
    return here;
  };
  t.ring = place(stages * keys * pitch * shape.element_bytes);
  t.scores = place(t.score_parts * rows * (keys + kScorePad) * sizeof(float));
  t.weights = place(rows * t.weight_pitch * shape.element_bytes);
  t.shares = place(4 * rows * sizeof(float));
  t.rows_found = place(2 * keys * sizeof(std::int32_t));
  t.shared_bytes = static_cast<std::uint32_t>(at);
  return t;
}

unsigned mla_registers(unsigned element_bytes, std::size_t rows) {
  if (element_bytes == 2) return rows == 64 ? 255 : rows == 32 ? 168 : 112;
  return rows == 32 ? 232 : 216;
}

// Rows first, since every block of rows reads the cache anew; then several steps under way instead of one, long ones
// before many. How many rows depends on the heads alone, not on how many queries there are, and with it the order
// of sums.
bool choose_mla_tiling(const DeviceLimits& limits, const AttentionShape& shape, AttentionTiling& chosen) {
  const bool wide = shape.element_bytes == 4;
  const std::size_t wanted = shape.heads <= 16 ? 16 : shape.heads <= 32 || wide ? 32 : 64;
  const auto fits = [&](std::size_t rows, std::size_t keys, std::size_t stages) {
    const AttentionTiling t = mla_tiling(shape, rows, keys, stages);
    if (resident_blocks(limits, kMlaThreads, t.shared_bytes, mla_registers(shape.element_bytes, rows)) == 0)
      return false;
    chosen = t;
    return true;
  };
  for (const bool many : {true, false}) {
    for (std::size_t rows = wanted; rows >= 16; rows /= 2) {
      for (const std::size_t keys : {32, 16}) {
        if (wide && rows == 32 && keys == 32) continue;  // of which registers spill
        if (many ? fits(rows, keys, 3) || fits(rows, keys, 2) : fits(rows, keys, 1)) return true;
      }
    }
  }
  return false;
}

// Whether blocks go in pairs that read the cache once for both (MlaPairRing): tiles 2 i and 2 i + 1 are the same query's
// heads, see the same keys and are cut alike, so that they follow each other in plan.work. Multicast is sm_90a's alone: what
// later boards make of this project's PTX has none.
bool goes_in_pairs(const DeviceLimits& limits, const AttentionShape& shape, const AttentionTiling& t) {
  return limits.sm == 90 && shape.window == 0 && shape.element_bytes == 2 && t.rows == 64 && t.keys == 32 &&
         shape.heads % (2 * t.rows) == 0 && shape.qk_dim % 16 == 0;
}

// DeepSeek's widths in bfloat16 on Hopper: tiles of 64 rows whatever the heads, read where they lie.
bool takes_wgmma(const DeviceLimits& limits, const AttentionShape& shape) {
  return limits.sm == 90 && shape.element_bytes == 2 && shape.kv_heads == 1 && shape.window == 0 &&
         shape.qk_dim == kMostLatentKey && shape.v_dim == kMostLatent;
}
AttentionPlan plan_mla_wgmma(const DeviceLimits& limits, const AttentionShape& shape, SplitRule rule) {
  AttentionPlan plan;
  plan.wgmma = true;
  plan.tiling = {.rows = MlaWgmmaRoom::kRows,
                 .keys = MlaWgmmaRoom::kKeys,
                 .stages = MlaWgmmaRoom::kSteps,
                 .shared_bytes = MlaWgmmaRoom::kBytes};
  cut(shape, plan.tiling.rows, splits_of(shape, rule, plan.tiling.rows, 1, kFixedMlaSplit, kWantedMlaBlocks),
      plan);
  constexpr unsigned kThreads = 384;  // two warpgroups that multiply, one that brings
  plan.tiles = checked_plan(
      limits, {.kernel = "mla_wgmma",
               .variant = said("{} rows × {} keys, bf16", plan.tiling.rows, plan.tiling.keys),
               .grid = {static_cast<unsigned>(plan.work.size()), 1, 1},
               .threads = kThreads,
               .shared_bytes = plan.tiling.shared_bytes,
               .stages = static_cast<int>(plan.tiling.stages),
               .registers = 168,
               .why = said("a float32 row of the cache is read once for {} rows; {} pieces of work",
                           plan.tiling.rows, plan.work.size())});
  plan.merge = merge_plan(limits, shape, plan);
  return plan;
}

}  // namespace

AttentionPlan plan_mla_attention(const DeviceLimits& limits, const AttentionShape& shape, SplitRule rule) {
  require_shape(shape);
  if (takes_wgmma(limits, shape)) return plan_mla_wgmma(limits, shape, rule);
  AttentionPlan plan;
  choose_mla_tiling(limits, shape, plan.tiling);
  cut(shape, plan.tiling.rows, splits_of(shape, rule, plan.tiling.rows, 1, kFixedMlaSplit), plan);
  const bool pairs = goes_in_pairs(limits, shape, plan.tiling);
  plan.tiles =
      checked_plan(limits, {.kernel = "mla_attention",
                            .variant = said("{} rows × {} keys, {}", plan.tiling.rows, plan.tiling.keys,
                                            shape.element_bytes == 2 ? "bf16" : "3 × tf32"),
                            .grid = {static_cast<unsigned>(plan.work.size()), 1, 1},
                            .threads = kMlaThreads,
                            .shared_bytes = plan.tiling.shared_bytes,
                            .stages = static_cast<int>(plan.tiling.stages),
                            .cluster = pairs ? 2u : 1u,
                            .registers = mla_registers(shape.element_bytes, plan.tiling.rows),
                            .why = said("a row of the cache is read once for {} rows; {} pieces of work",
                                        (pairs ? 2 : 1) * plan.tiling.rows, plan.work.size())});
  if (shape.v_dim > kMostLatent || shape.v_dim > shape.qk_dim || shape.qk_dim > kMostLatentKey ||
      shape.kv_heads != 1) {
    plan.tiles.fits = false;
    plan.tiles.why = said("rows of {} columns with values of {}, where a block has room for {} with {}",
                          shape.qk_dim, shape.v_dim, kMostLatentKey, kMostLatent);
  }
  plan.merge = merge_plan(limits, shape, plan);
  return plan;
}

Edges attention_edges() {
  return {{.of = "rows", .every = 16},  // a fragment's
          {.of = "rows", .from = 9},    // of decode_attention: 8 rows or 16
          {.of = "rows", .from = kStreamedRows + 1},
          {.of = "rows", .from = kDecodingRows + 1},
          {.of = "keys", .from = 17},  // a step
          {.of = "keys", .from = kStep + 1},
          {.of = "keys", .from = kLeastSplit + 1},
          {.of = "keys", .from = kFixedSplit + 1},
          {.of = "dim", .from = kStep + 1},
          {.of = "dim", .from = 129},  // instances of decode_attention
          {.of = "dim", .from = 257},
          {.of = "v", .from = kStep + 1},
          {.of = "v", .from = 129},
          {.of = "v", .from = 257}};
}
Edges mla_edges() {
  return {{.of = "heads", .from = 17},  // tiles of 16, 32 and 64 heads
          {.of = "heads", .from = 33},       {.of = "heads", .from = 65},
          {.of = "keys", .from = kStep + 1}, {.of = "keys", .from = kFixedMlaSplit + 1},
          {.of = "queries", .from = 9}};  // of mla_product: 8 tokens
}

LaunchPlan plan_mla_product(const DeviceLimits& limits, std::size_t tokens, std::size_t heads,
                            std::size_t inputs, std::size_t outputs) {
  constexpr std::size_t kColumns = 128, kTokens = 8;
  const std::size_t sums = (kProductGroups - 1) * kTokens * kColumns;
  return checked_plan(
      limits, {.kernel = "mla_product",
               .variant = said("{} columns, {} tokens", kColumns, kTokens),
               .grid = {static_cast<unsigned>(blocks_for(outputs, kColumns)), static_cast<unsigned>(heads),
                        static_cast<unsigned>(blocks_for(tokens, kTokens))},
               .threads = static_cast<unsigned>(kColumns * kProductGroups),
               .shared_bytes = (kTokens * round_up(inputs, 4) + sums) * sizeof(float),
               .registers = 64,
               .why = said("a column of weights is read once for {} tokens", kTokens)});
}

LaunchPlan plan_pack_heads(const DeviceLimits& limits, std::size_t bytes) {
  constexpr std::size_t kThreads = 256;
  return checked_plan(limits, {.kernel = "pack_heads",
                               .variant = "16 bytes a thread",
                               .grid = {static_cast<unsigned>(blocks_for(bytes / 16, kThreads))},
                               .threads = kThreads,
                               .registers = 64,
                               .why = "heads that do not begin on 16 bytes, or are to be bfloat16"});
}

}  // namespace assay::cuda
