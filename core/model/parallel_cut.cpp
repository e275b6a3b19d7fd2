#include "core/model/parallel_cut.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/layer_geometry.h"
#include "core/model/parallel_words.h"
#include "core/numeric/ceil_div.h"
#include "core/system/error.h"

namespace assay {
namespace {

// Units in order of rank; with fewer of them than ranks, each unit to as many neighbours.
IndexRange units_of(const PartitionedPart& member, std::uint64_t ranks, std::uint64_t rank) {
  const std::uint64_t unit = member.size / member.units;
  if (member.units >= ranks) {
    const std::uint64_t each = member.units / ranks * unit;
    return {rank * each, (rank + 1) * each};
  }
  const std::uint64_t mine = rank * member.units / ranks;
  return {mine * unit, (mine + 1) * unit};
}

PartitionedPart joined(const std::vector<PartitionedPart>& members) {
  PartitionedPart all = members.front();
  for (std::size_t i = 1; i < members.size(); ++i) {
    all.size += members[i].size;
    all.units = std::min(all.units, members[i].units);
  }
  return all;
}

}  // namespace

void check_grid(const ParallelConfig& grid) {
  if (grid.tp == 0 || grid.tp > 1024) throw Error::usage("--tp takes 1 to 1024 ranks");
  if (grid.ep == 0 || grid.tp % grid.ep != 0)
    throw Error::usage(fmt::format("--ep {} does not divide --tp {}", grid.ep, grid.tp))
        .remedy("experts are dealt out over groups of the same ranks that tensors are cut over");
}

std::uint64_t cut_ranks(const TensorSpec& spec, const ParallelConfig& grid) {
  if (spec.parallel.partition == Partition::replicated) return 1;
  return spec.part == Part::routed_expert ? grid.ranks_of_an_expert() : grid.tp;
}

std::uint64_t member_share(const PartitionedPart& member, Partition partition, std::uint64_t ranks) {
  if (ranks == 1) return member.size;
  if (partition == Partition::vocabulary)
    return ceil_div(ceil_div(member.size, kVocabularyPadding) * kVocabularyPadding, ranks);
  const std::uint64_t unit = member.size / member.units;
  return ceil_div(member.units, ranks) * unit;
}

RankShare rank_share(const TensorSpec& spec, const ModuleTree& tree, std::uint64_t size, std::uint64_t expert,
                     const ParallelConfig& grid, std::uint64_t rank) {
  RankShare share;
  const bool routed = spec.part == Part::routed_expert;
  if (routed && grid.ep > 1) {
    const std::uint64_t each = tree.experts / grid.ep, group = rank / grid.ranks_of_an_expert();
    if (spec.stacked != 0)
      share.experts = IndexRange{group * each, (group + 1) * each};
    else
      share.holds = expert / each == group;
  }
  const std::uint64_t ranks = cut_ranks(spec, grid);
  if (ranks == 1 || !share.holds) return share;
  const std::uint64_t mine = routed ? rank % ranks : rank;
  if (spec.parallel.partition == Partition::vocabulary) {
    const std::uint64_t each = member_share({spec.role, size, size}, Partition::vocabulary, ranks);
    const IndexRange range{std::min(size, mine * each), std::min(size, (mine + 1) * each)};
    share.ranges.push_back(range);
    share.padding = each - range.size();
    return share;
  }
  if (spec.parallel.interleaved) {
    share.ranges.push_back(units_of(joined(spec.parallel.members), ranks, mine));
    return share;
  }
  std::uint64_t first = 0;
  for (const PartitionedPart& member : spec.parallel.members) {
    const IndexRange range = units_of(member, ranks, mine);
    share.ranges.push_back({first + range.begin, first + range.end});
    first += member.size;
  }
  return share;
}

std::vector<std::string> refusals_to_cut(const ModuleTree& tree, const ParallelConfig& grid) {
  std::vector<std::string> refusals;
  const auto refuse = [&](std::string text) {
    if (std::find(refusals.begin(), refusals.end(), text) == refusals.end())
      refusals.push_back(std::move(text));
  };
  for (const AttentionGeometry& g : tree.attention) {
    if (g.heads % grid.tp != 0) refuse(heads_refusal(g.heads, grid.tp));
    const bool deals = g.kv_heads % grid.tp == 0 || grid.tp % g.kv_heads == 0;
    if (g.kind == AttentionGeometry::Kind::heads && !deals) refuse(key_heads_refusal(g.kv_heads, grid.tp));
  }
  if (grid.ep > 1 && tree.experts == 0)
    refuse(fmt::format("EP size {} is greater than the number of experts 0.", grid.ep));
  else if (grid.ep > 1 && tree.experts % grid.ep != 0)
    refuse(experts_refusal());
  else if (grid.ep > 1 && experts_differ(tree))
    refuse("Layers have different numbers of experts.");
  return refusals;
}

std::optional<CutRefusal> refusal_to_cut(const TensorSpec& spec, const ParallelConfig& grid,
                                         std::uint64_t block, bool packed) {
  const Partition partition = spec.parallel.partition;
  const std::uint64_t ranks = cut_ranks(spec, grid);
  if (ranks == 1) return std::nullopt;
  std::vector<PartitionedPart> members = spec.parallel.members;
  if (spec.parallel.interleaved) members = {joined(members)};
  for (const PartitionedPart& member : members) {
    const std::uint64_t share = member_share(member, partition, ranks);
    const std::string arithmetic = cut_text(spec, member.size, ranks, share);
    if (partition == Partition::vocabulary) {
      if (block > 1 && (share * ranks != member.size || share % block != 0))
        return CutRefusal{arithmetic, block_refusal(spec, share, block)};
      continue;
    }
    const bool repeats = !spec.parallel.interleaved && ranks % member.units == 0;
    if (member.units % ranks != 0 && !repeats) {
      return CutRefusal{fmt::format("{} {}/{} = {}", key_of(spec, member.size), member.size, ranks,
                                    share_text(member.size, ranks)),
                        fmt::format("{} is not divisible by {}", member.units, ranks)};
    }
    if (share % block == 0) continue;
    return CutRefusal{arithmetic + multiple_text(share, block),
                      packed ? group_refusal() : block_refusal(spec, share, block)};
  }
  return std::nullopt;
}

}  // namespace assay
