// Scales of a part of a matrix: those of the blocks that it touches, over blocks that its borders divide.
#include "core/model/scale_cut.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using From = std::vector<std::uint64_t>;

TEST(ScaleCut, WholeBlocksKeepTheirScales) {
  const ScaleCut cut = cut_scales({{128, 384}}, 128, 512);
  EXPECT_EQ(cut.block, 128U);
  EXPECT_EQ(cut.from, (From{1, 2}));
}

TEST(ScaleCut, AWholeMayEndInsideABlock) {
  EXPECT_EQ(cut_scales({{0, 576}}, 128, 576).from, (From{0, 1, 2, 3, 4}));
  EXPECT_EQ(cut_scales({{512, 576}}, 128, 576).from, (From{4}));
}

TEST(ScaleCut, BordersInsideABlockRepeatScales) {
  const ScaleCut cut = cut_scales({{192, 384}}, 128, 512);
  EXPECT_EQ(cut.block, 64U);
  EXPECT_EQ(cut.from, (From{1, 2, 2}));
}

TEST(ScaleCut, WhatLiesInOneBlockHasOneScale) {
  const ScaleCut cut = cut_scales({{33, 64}}, 128, 512);
  EXPECT_EQ(cut.block, 128U);
  EXPECT_EQ(cut.from, (From{0}));
}

// Gate and up, one behind the other: of each its part.
TEST(ScaleCut, PartsLieOneBehindTheOther) {
  const ScaleCut cut = cut_scales({{0, 96}, {192, 288}}, 64, 384);
  EXPECT_EQ(cut.block, 32U);
  EXPECT_EQ(cut.from, (From{0, 0, 1, 3, 3, 4}));
}

// Those of the tests above are counted as they are listed; and a config's width may be any.
TEST(ScaleCut, AreCountedWithoutAList) {
  struct Part {
    std::vector<IndexRange> ranges;
    std::uint64_t block, size;
  };
  for (const Part& p : {Part{{{128, 384}}, 128, 512}, Part{{{0, 576}}, 128, 576},
                        Part{{{512, 576}}, 128, 576}, Part{{{192, 384}}, 128, 512},
                        Part{{{33, 64}}, 128, 512}, Part{{{0, 96}, {192, 288}}, 64, 384}, Part{{}, 64, 384}})
    EXPECT_EQ(count_scales(p.ranges, p.block, p.size), cut_scales(p.ranges, p.block, p.size).from.size());
  constexpr std::uint64_t kWide = std::uint64_t{1} << 60;
  EXPECT_EQ(count_scales({{0, kWide - 1}}, 128, 2 * kWide), kWide - 1);
  EXPECT_EQ(count_scales({{0, kWide - 3}}, 128, kWide - 3), kWide / 128);
}

}  // namespace
}  // namespace assay
