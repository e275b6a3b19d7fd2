// What a rank holds of matrices that are several in one.
#include "core/model/parallel_cut.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace assay {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Ranges ranges_of(const ModuleTree& tree, const std::string& tensor, std::uint64_t rank) {
  Ranges ranges;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    if (name != tensor) return;
    const std::uint64_t size = spec.shape.at(spec.parallel.dimension);
    for (const IndexRange& range : rank_share(spec, tree, size, 0, {.tp = 2}, rank).ranges)
      ranges.emplace_back(range.begin, range.end);
  });
  return ranges;
}

// LFM2's in_proj is [B; C; x], 40 rows each: a rank computes B · x of the same channels, so it holds a half of each.
TEST(ParallelCut, TheThreePartsOfAShortConvolutionAreCutEachByItself) {
  const ModuleTree tree = describe(ModelConfig::read(test::source_dir() / "data/models/lfm2/config.json"));
  EXPECT_EQ(ranges_of(tree, "model.layers.0.conv.in_proj.weight", 0), (Ranges{{0, 20}, {40, 60}, {80, 100}}));
  EXPECT_EQ(ranges_of(tree, "model.layers.0.conv.in_proj.weight", 1),
            (Ranges{{20, 40}, {60, 80}, {100, 120}}));
  EXPECT_EQ(ranges_of(tree, "model.layers.0.conv.conv.weight", 1), (Ranges{{20, 40}}));  // and their filters
}

}  // namespace
}  // namespace assay
