// Plans of attention: within every architecture's limits, for every width of heads there is; and pieces of
// work that cover each key that each row sees once, in order, by the rule that was asked for.
#include "kernels/cuda/plan_attention.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/system/error.h"

namespace assay::cuda {
namespace {

struct Widths {
  std::size_t qk, v;
};
constexpr std::array<Widths, 10> kWidths = {{{1, 1},
                                             {40, 24},
                                             {64, 64},
                                             {80, 80},
                                             {96, 96},
                                             {128, 128},
                                             {192, 128},
                                             {256, 256},
                                             {576, 512},
                                             {832, 832}}};

AttentionShape shape_of(const Widths& widths, unsigned bytes, std::vector<SequenceShape> sequences) {
  return {.heads = 32,
          .kv_heads = 8,
          .qk_dim = widths.qk,
          .v_dim = widths.v,
          .element_bytes = bytes,
          .sequences = std::move(sequences)};
}

void expect_within(const DeviceLimits& limits, const LaunchPlan& plan) {
  EXPECT_TRUE(plan.fits) << "sm_" << limits.sm << ": " << plan.why;
  EXPECT_EQ(broken_limit(limits, plan), "");
  EXPECT_LE(plan.shared_bytes, limits.shared_per_block);
  EXPECT_GE(plan.blocks_per_sm, 1u);
}

TEST(AttentionPlans, FitEveryArchitectureWhateverTheWidth) {
  for (const DeviceLimits& limits : all_device_limits()) {
    for (const Widths& widths : kWidths) {
      for (const unsigned bytes : {2u, 4u}) {
        for (const std::size_t queries : {1, 17, 512}) {
          const AttentionPlan plan =
              plan_attention(limits, shape_of(widths, bytes, {{queries, 4099}}), SplitRule::fixed);
          SCOPED_TRACE(widths.qk);
          expect_within(limits, plan.tiles);
          expect_within(limits, plan.merge);
          EXPECT_EQ(plan.tiles.block.x, 2 * plan.tiling.rows / plan.row_groups);
          EXPECT_GE(plan.tiling.stages, 2u);
          EXPECT_LE(plan.tiling.stages, 4u);
          EXPECT_GE(plan.tiles.grid.z * plan.value_tiles * 64, widths.v);
        }
      }
    }
  }
}

// Of the depths of the ring the one with the most tiles under way on an SM; of equals the shallowest.
TEST(AttentionPlans, TakeTheRingWithTheMostUnderWay) {
  std::size_t equals = 0;
  for (const DeviceLimits& limits : all_device_limits()) {
    for (const Widths& widths : kWidths) {
      for (const unsigned bytes : {2u, 4u}) {
        for (const std::size_t queries : {1, 5, 17, 512}) {
          const AttentionPlan plan =
              plan_attention(limits, shape_of(widths, bytes, {{queries, 4099}}), SplitRule::none);
          const AttentionTiling& t = plan.tiling;
          const std::size_t a_stage = (t.rows_found - t.ring) / t.stages;
          std::size_t best = 0, stages = 0;
          for (const std::size_t s : {2, 3, 4}) {
            const std::size_t shared = t.shared_bytes - (t.stages - s) * a_stage;
            const std::size_t under_way =
                (s - 1) * resident_blocks(limits, plan.tiles.block.x, shared, plan.tiles.registers);
            equals += under_way == best && best > 0 ? 1 : 0;
            if (under_way > best) best = under_way, stages = s;
          }
          EXPECT_EQ(t.stages, stages) << limits.sm << " " << widths.qk << " " << bytes << " " << queries;
        }
      }
    }
  }
  EXPECT_GT(equals, 0u);
}

// What fits an A100 does not fit an L40S: 64 rows of float32 queries of 256 columns and a ring are 118,272
// bytes and more.
TEST(AttentionPlans, TakeSmallerTilesWhereThereIsLessSharedMemory) {
  const AttentionShape shape = shape_of({256, 256}, 4, {{512, 512}});
  const AttentionPlan a100 = plan_attention(*limits_of(80), shape, SplitRule::none);
  const AttentionPlan l40s = plan_attention(*limits_of(89), shape, SplitRule::none);
  EXPECT_GT(a100.tiles.shared_bytes, limits_of(89)->shared_per_block);
  EXPECT_LE(l40s.tiles.shared_bytes, 101'376u);
  EXPECT_LT(l40s.tiling.rows, a100.tiling.rows);
}

// Prompts that occupy the device with tiles of 128 rows have 32 of them a warp; decoding tokens, wide heads and float32
// have not.
TEST(AttentionPlans, TakeTallTilesForPrompts) {
  const auto groups = [](const Widths& widths, unsigned bytes, std::vector<SequenceShape> sequences) {
    return plan_attention(*limits_of(90), shape_of(widths, bytes, std::move(sequences)), SplitRule::none)
        .row_groups;
  };
  EXPECT_EQ(groups({64, 64}, 2, {{1024, 1024}}), 2u);
  EXPECT_EQ(groups({64, 64}, 2, {{64, 64}}), 1u);  // 16 tiles
  EXPECT_EQ(groups({64, 64}, 2, std::vector<SequenceShape>(200, {1, 4096})), 1u);
  EXPECT_EQ(groups({128, 128}, 2, {{1024, 1024}}), 1u);
  EXPECT_EQ(groups({64, 64}, 4, {{1024, 1024}}), 1u);
}

// Eight warps share out a tile of rows, two of them side by side over 32 rows and more; areas of shared memory lie one
// behind the other, each of its size at least. Queries lie in registers, and nowhere here.
void expect_mla_areas(const AttentionTiling& t, unsigned bytes) {
  EXPECT_EQ(t.score_parts, t.rows == 16 ? 8 : 4);
  EXPECT_EQ(t.ring, 0u);
  EXPECT_GE(t.scores - t.ring, t.stages * t.keys * t.key_pitch * bytes);
  EXPECT_GE(t.weights - t.scores, t.score_parts * t.rows * (t.keys + kScorePad) * sizeof(float));
  EXPECT_GE(t.shares - t.weights, t.rows * t.weight_pitch * bytes);
  EXPECT_GE(t.rows_found - t.shares, 4 * t.rows * sizeof(float));
  EXPECT_GE(t.shared_bytes - t.rows_found, 2 * t.keys * sizeof(std::int32_t));
  for (const std::uint32_t area : {t.ring, t.scores, t.weights}) EXPECT_EQ(area % 16, 0u);
  // Rows begin in different banks: an odd number of 16 bytes apart.
  for (const std::uint32_t pitch : {t.key_pitch, t.weight_pitch})
    EXPECT_EQ(pitch * bytes / 16 % 2, 1u) << pitch;
  // Half a warp stores pairs of scores of four rows at once: 32 words in 32 banks.
  std::set<std::uint32_t> banks;
  for (std::uint32_t row = 0; row < 4; ++row) {
    for (std::uint32_t word = 0; word < 8; ++word) banks.insert((row * (t.keys + kScorePad) + word) % 32);
  }
  EXPECT_EQ(banks.size(), 32u) << t.keys;
}

TEST(MlaPlans, FitEveryArchitecture) {
  for (const DeviceLimits& limits : all_device_limits()) {
    for (const std::size_t heads : {1, 16, 20, 32, 64, 128}) {
      for (const unsigned bytes : {2u, 4u}) {
        for (const Widths& widths : {Widths{576, 512}, {48, 40}, {10, 8}}) {
          AttentionShape shape = shape_of(widths, bytes, {{1, 4099}, {2, 70}});
          shape.heads = heads;
          shape.kv_heads = 1;
          const AttentionPlan plan = plan_mla_attention(limits, shape, SplitRule::fixed);
          SCOPED_TRACE(heads);
          expect_within(limits, plan.tiles);
          expect_within(limits, plan.merge);
          if (plan.wgmma) continue;
          EXPECT_EQ(plan.tiles.block.x, 256u);
          EXPECT_LE(plan.tiling.rows, bytes == 2 ? 64u : 32u);
          EXPECT_TRUE(plan.tiling.keys == 32 || plan.tiling.keys == 16);  // of which there are instances
          EXPECT_LE(plan.tiling.stages, 3u);
          expect_mla_areas(plan.tiling, bytes);
          EXPECT_TRUE(plan.tiles.variant.ends_with(bytes == 2 ? ", bf16" : ", 3 × tf32"));
        }
      }
    }
  }
}

AttentionShape latents_of(std::size_t heads, std::vector<SequenceShape> sequences) {
  AttentionShape shape = shape_of({576, 512}, 2, std::move(sequences));
  shape.heads = heads;
  shape.kv_heads = 1;
  return shape;
}

// On every board, whose steps are as long as what else has to lie there leaves room for.
TEST(MlaPlans, ReadTheCacheOnceForSixtyFourHeads) {
  const AttentionShape shape = latents_of(64, {{1, 4096}});
  for (const DeviceLimits& limits : all_device_limits()) {
    const AttentionPlan plan = plan_mla_attention(limits, shape, SplitRule::none);
    EXPECT_EQ(plan.tiling.rows, 64u) << limits.sm;
    if (limits.sm == 90) continue;  // below
    EXPECT_EQ(plan.tiling.keys, limits.shared_per_block > 120'000 ? 32u : 16u) << limits.sm;
    EXPECT_EQ(plan.tiling.stages, 3u) << limits.sm;
    EXPECT_EQ(plan.work.size(), 1u) << limits.sm;
  }
}

// On Hopper by warpgroups: 64 rows and 32 keys whatever the heads, of the cache as it lies; every other board, width and
// arithmetic as before.
TEST(MlaPlans, WarpgroupsTakeDeepSeeksWidths) {
  for (const std::size_t heads : {16, 64, 128}) {
    const AttentionPlan plan =
        plan_mla_attention(*limits_of(90), latents_of(heads, {{1, 4096}, {3, 70}}), SplitRule::fixed);
    expect_within(*limits_of(90), plan.tiles);
    EXPECT_TRUE(plan.wgmma);
    EXPECT_EQ(plan.tiles.kernel, "mla_wgmma");
    EXPECT_EQ(plan.tiles.block.x, 384u);
    EXPECT_EQ(plan.tiling.rows, 64u);
    EXPECT_EQ(plan.tiling.keys, 32u);
    EXPECT_EQ(plan.tiling.shared_bytes, MlaWgmmaRoom::kBytes);
    for (const AttentionWork& work : plan.work) EXPECT_EQ(work.key_begin % 32, 0u);
  }
  for (const int sm : {80, 89, 100, 120})
    EXPECT_FALSE(plan_mla_attention(*limits_of(sm), latents_of(64, {{1, 99}}), SplitRule::fixed).wgmma) << sm;
  AttentionShape other = latents_of(64, {{1, 99}});
  other.element_bytes = 4;
  EXPECT_FALSE(plan_mla_attention(*limits_of(90), other, SplitRule::fixed).wgmma);
  for (const Widths& widths : {Widths{576, 504}, {568, 512}, {320, 256}}) {
    other = shape_of(widths, 2, {{1, 99}});
    other.kv_heads = 1;
    EXPECT_FALSE(plan_mla_attention(*limits_of(90), other, SplitRule::fixed).wgmma) << widths.qk;
  }
}

// Areas follow each other, tiles that wgmma reads begin on 1,024 bytes, and all of it is what a block may have.
TEST(MlaPlans, WarpgroupsHaveRoom) {
  using Room = MlaWgmmaRoom;
  EXPECT_EQ(Room::kRing - Room::kQueries, 64u * 576 * 2);
  EXPECT_EQ(Room::kWeights - Room::kRing, 2u * 32 * 576 * 2);
  EXPECT_EQ(Room::kRaw - Room::kWeights, 64u * 64 * 2);
  EXPECT_EQ(Room::kShares - Room::kRaw, 32u * 576 * 4);
  EXPECT_EQ(Room::kBarriers - Room::kShares, 3u * 64 * 4);
  EXPECT_EQ(Room::kBytes - Room::kBarriers, 12u * 8);
  for (const std::uint32_t area : {Room::kQueries, Room::kRing, Room::kWeights}) EXPECT_EQ(area % 1024, 0u);
  EXPECT_EQ(Room::kRaw % 16, 0u);
  EXPECT_LE(Room::kBytes, limits_of(90)->shared_per_block);
}

// As many pieces as an H100 has processors, each of whole steps.
TEST(MlaPlans, WarpgroupsFillADeviceOnce) {
  const AttentionPlan plan = plan_mla_attention(
      *limits_of(90), latents_of(128, std::vector<SequenceShape>(16, {1, 4096})), SplitRule::by_shape);
  EXPECT_EQ(plan.work.size(), 128u);
  EXPECT_EQ(plan.work[0].key_end - plan.work[0].key_begin, 1024u);
}

// Of 128 heads two tiles read the same keys: as blocks that follow each other, so that the second finds them in the
// cache of the device.
TEST(MlaPlans, TilesOfTheSameKeysAreNeighbours) {
  const AttentionPlan plan =
      plan_mla_attention(*limits_of(90), latents_of(128, {{1, 1000}, {2, 700}}), SplitRule::fixed);
  ASSERT_EQ(plan.work.size() % 2, 0u);
  for (std::size_t i = 0; i < plan.work.size(); i += 2) {
    const AttentionWork &first = plan.work[i], &second = plan.work[i + 1];
    EXPECT_EQ(first.sequence, second.sequence);
    EXPECT_EQ(first.key_begin, second.key_begin);
    EXPECT_EQ(first.key_end, second.key_end);
    EXPECT_EQ(first.first_row + 64, second.first_row);
  }
  for (std::size_t i = 1; i < plan.work.size(); ++i)
    EXPECT_GE(plan.work[i - 1].key_end - plan.work[i - 1].key_begin,
              plan.work[i].key_end - plan.work[i].key_begin);
}

// Pairs of blocks of one query's heads, where code is made for the board itself and there is room for steps of 32 keys.
TEST(MlaPlans, GoInPairsWhereTheyCan) {
  const auto cluster = [](int sm, const AttentionShape& shape) {
    return plan_mla_attention(*limits_of(sm), shape, SplitRule::fixed).tiles.cluster;
  };
  AttentionShape shape = latents_of(128, {{1, 1000}, {2, 700}});
  shape.v_dim = 504;  // of DeepSeek's 512 it is warpgroups' work
  EXPECT_EQ(cluster(90, shape), 2u);
  for (const int sm : {80, 89, 100, 120}) EXPECT_EQ(cluster(sm, shape), 1u) << sm;
  AttentionShape few = shape;
  few.heads = 64;
  EXPECT_EQ(cluster(90, few), 1u);
  AttentionShape other = shape;
  other.element_bytes = 4;
  EXPECT_EQ(cluster(90, other), 1u);
  other = shape;
  other.qk_dim = 568;  // 8 columns behind it would be nobody's
  EXPECT_EQ(cluster(90, other), 1u);
}

TEST(MlaPlans, RefuseRowsThatAreNoLatents) {
  for (const Widths& widths : {Widths{1024, 1024}, {576, 520}, {592, 512}, {40, 48}}) {
    AttentionShape shape = shape_of(widths, 2, {{1, 10}});
    shape.kv_heads = 1;
    EXPECT_FALSE(plan_mla_attention(*limits_of(90), shape, SplitRule::none).tiles.fits) << widths.qk;
  }
}

TEST(AttentionPlans, SayWhatDoesNotFit) {
  const AttentionPlan plan =
      plan_attention(*limits_of(89), shape_of({1024, 1024}, 4, {{1, 10}}), SplitRule::none);
  EXPECT_FALSE(plan.tiles.fits);
  EXPECT_NE(plan.tiles.why.find("101,376"), std::string::npos) << plan.tiles.why;
}

TEST(AttentionPlans, RefuseHeadsThatDoNotFit) {
  const AttentionShape good = shape_of({64, 64}, 2, {{1, 10}});
  for (const std::size_t kv_heads : {0, 5}) {
    AttentionShape shape = good;
    shape.kv_heads = kv_heads;
    EXPECT_THROW(plan_attention(*limits_of(90), shape, SplitRule::none), Error);
    EXPECT_THROW(plan_mla_attention(*limits_of(90), shape, SplitRule::none), Error);
  }
  for (const Widths& widths : {Widths{0, 64}, {64, 0}}) {
    const AttentionShape shape = shape_of(widths, 2, {{1, 10}});
    EXPECT_THROW(plan_attention(*limits_of(90), shape, SplitRule::none), Error);
    EXPECT_THROW(plan_mla_attention(*limits_of(90), shape, SplitRule::none), Error);
  }
}

// --- pieces

using Place = std::pair<std::uint32_t, std::uint32_t>;  // sequence, first row

std::map<Place, std::vector<AttentionWork>> pieces_of(const AttentionPlan& plan) {
  std::map<Place, std::vector<AttentionWork>> pieces;
  for (const AttentionWork& work : plan.work) pieces[{work.sequence, work.first_row}].push_back(work);
  for (auto& [place, of_tile] : pieces)
    std::sort(of_tile.begin(), of_tile.end(),
              [](const AttentionWork& a, const AttentionWork& b) { return a.key_begin < b.key_begin; });
  return pieces;
}

// Each tile's pieces lie end to end, between 64s, from the first key a row of it sees to the last; partials
// are in the order of keys and belong to one merge.
void expect_covered(const AttentionShape& shape, const AttentionPlan& plan, std::size_t split) {
  std::map<Place, MergeWork> merges;
  for (const MergeWork& merge : plan.merges) merges[{merge.sequence, merge.first_row}] = merge;
  const auto pieces = pieces_of(plan);
  const std::size_t group = shape.heads / shape.kv_heads;
  std::size_t tiles = 0, partials = 0;
  for (std::size_t s = 0; s < shape.sequences.size(); ++s) {
    const auto& [queries, keys] = shape.sequences[s];
    for (std::size_t row = 0; row < queries * group; row += plan.tiling.rows, ++tiles) {
      const std::size_t last_row = std::min(row + plan.tiling.rows, queries * group) - 1;
      const std::size_t first_seen = keys - queries + row / group + 1;
      const std::size_t begin =
          shape.window != 0 && first_seen > shape.window ? first_seen - shape.window : 0;
      const std::size_t end = keys - queries + last_row / group + 1;
      const auto it = pieces.find({static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(row)});
      ASSERT_NE(it, pieces.end());
      const auto& of_tile = it->second;
      EXPECT_EQ(of_tile.front().key_begin, begin);
      EXPECT_EQ(of_tile.back().key_end, end);
      for (std::size_t i = 0; i < of_tile.size(); ++i) {
        EXPECT_LT(of_tile[i].key_begin, of_tile[i].key_end);
        EXPECT_EQ(of_tile[i].key_begin / split, (of_tile[i].key_end - 1) / split);
        if (i != 0) {
          EXPECT_EQ(of_tile[i].key_begin, of_tile[i - 1].key_end);
          EXPECT_EQ(of_tile[i].key_begin % 64, 0u);
          EXPECT_EQ(of_tile[i].partial, of_tile[i - 1].partial + 1);
        }
      }
      if (of_tile.size() == 1) {
        EXPECT_EQ(of_tile[0].partial, AttentionWork::kWhole);
        EXPECT_EQ(merges.count(it->first), 0u);
        continue;
      }
      partials += of_tile.size();
      ASSERT_EQ(merges.count(it->first), 1u);
      EXPECT_EQ(merges[it->first].partial, of_tile[0].partial);
      EXPECT_EQ(merges[it->first].splits, of_tile.size());
    }
  }
  EXPECT_EQ(pieces.size(), tiles);
  EXPECT_EQ(plan.partials, partials);
}

TEST(AttentionPlans, CoverWhatEveryRowSees) {
  for (const std::size_t window : {0, 1, 700}) {
    AttentionShape shape = shape_of({64, 64}, 4, {{1, 4099}, {0, 9}, {70, 1025}, {512, 512}, {1, 1}});
    shape.window = window;
    const DeviceLimits& limits = *limits_of(90);
    expect_covered(shape, plan_attention(limits, shape, SplitRule::fixed), kFixedSplit);
    expect_covered(shape, plan_attention(limits, shape, SplitRule::none), 1u << 30);
    shape.kv_heads = 1;
    expect_covered(shape, plan_mla_attention(limits, shape, SplitRule::fixed), kFixedMlaSplit);
  }
}

TEST(AttentionPlans, CutWhatDecodesAndNotPrompts) {
  // 4 heads a key head: 16 queries are 64 rows.
  const AttentionShape shape = shape_of({64, 64}, 2, {{16, 1025}, {17, 1025}});
  const auto pieces = pieces_of(plan_attention(*limits_of(90), shape, SplitRule::decoding));
  EXPECT_EQ(pieces.at({0, 0}).size(), 5u);  // 1025 keys, 256 at a time
  EXPECT_EQ(pieces.at({1, 0}).size(), 1u);
}

// As the comment of SplitRule::by_shape says: 2 sequences × 8 key heads are 16 blocks, 264 / 16 = 16 pieces
// of ⌈4099 / 16⌉ = 257, in whole steps 320 keys: 13 pieces of 4099 keys.
TEST(AttentionPlans, CutByShapeAsStated) {
  const AttentionShape shape = shape_of({128, 128}, 2, {{1, 4099}, {1, 4099}});
  for (const int sm : {80, 89, 90}) {
    const AttentionPlan plan = plan_attention(*limits_of(sm), shape, SplitRule::by_shape);
    expect_covered(shape, plan, 320);
    EXPECT_EQ(plan.work.size(), 26u);
  }
  // A call that fills the device by itself is not cut.
  const AttentionShape many = shape_of({128, 128}, 2, std::vector<SequenceShape>(64, {1, 4099}));
  EXPECT_TRUE(plan_attention(*limits_of(90), many, SplitRule::by_shape).merges.empty());
}

TEST(AttentionPlans, CutASequenceByItselfAsAmongOthersIfTheSplitIsFixed) {
  const AttentionShape alone = shape_of({64, 64}, 2, {{1, 2051}});
  AttentionShape among = alone;
  among.sequences.insert(among.sequences.end(), 40, {3, 900});
  const auto of_first = pieces_of(plan_attention(*limits_of(89), among, SplitRule::fixed)).at({0, 0});
  EXPECT_EQ(of_first, pieces_of(plan_attention(*limits_of(89), alone, SplitRule::fixed)).at({0, 0}));
}

}  // namespace
}  // namespace assay::cuda
