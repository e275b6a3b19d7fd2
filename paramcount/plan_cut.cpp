#include "paramcount/plan_cut.h"

#include <algorithm>
#include <functional>

#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

constexpr std::uint64_t kMxBlock = 32;

using Share = std::function<std::uint64_t(const PartitionedPart&, std::uint64_t group)>;

std::vector<std::uint64_t> shape_with(const TensorSpec& spec, const Layout& layout,
                                      std::uint64_t experts_here, const Share& share) {
  std::vector<std::uint64_t> shape = spec.shape;
  if (spec.stacked != 0) shape[0] = shape[0] / spec.stacked * experts_here;
  if (spec.parallel.partition == Partition::replicated) return shape;
  const std::uint64_t group = cut_group(spec, layout);
  std::uint64_t size = 0;
  for (const PartitionedPart& member : spec.parallel.members) size += share(member, group);
  // Rows of all experts one behind the other (DBRX): `members` are the experts.
  if (spec.stacked != 0 && spec.parallel.dimension == 0) size = size / spec.stacked * experts_here;
  shape[spec.parallel.dimension] = size;
  return shape;
}

}  // namespace

std::uint64_t cut_group(const TensorSpec& spec, const Layout& layout) {
  if (spec.parallel.partition == Partition::replicated) return 1;
  return spec.part == Part::routed_expert ? layout.moe_tp() : layout.tp;
}

std::vector<std::uint64_t> rank_shape(const TensorSpec& spec, const Layout& layout) {
  return shape_with(spec, layout, ceil_div(spec.stacked, layout.ep),
                    [&](const PartitionedPart& member, std::uint64_t group) {
                      return member_share(member, spec.parallel.partition, group);
                    });
}

bool in_format(const ModuleTree& tree, const WeightFormat& format, const TensorSpec& spec) {
  const bool experts_alone = format.routed_experts_only && tree.experts > 0;
  return quantizes(format, spec, 0) && (!experts_alone || spec.part == Part::routed_expert);
}

bool EngineCut::whole_blocks(const TensorSpec& spec) const {
  return spec.part == Part::routed_expert && format_.bits == 4 && format_.block_columns == kMxBlock &&
         (spec.bias || in_format(tree_, format_, spec)) &&
         find_rule(engine_, Rule::mxfp4_whole_blocks, tree_.family) != nullptr;
}

std::uint64_t EngineCut::experts_here(std::uint64_t experts, const RankPlace* place) const {
  const std::uint64_t each = experts / layout_.ep, more = experts % layout_.ep;
  if (place == nullptr || more == 0) return ceil_div(experts, layout_.ep);
  if (find_rule(engine_, Rule::experts_lost, tree_.family) != nullptr) return each;
  return each + (place->expert_group() < more ? 1 : 0);
}

std::vector<std::uint64_t> EngineCut::rank_shape(const TensorSpec& spec, const RankPlace* place) const {
  if (is_of_tower(spec)) return towers_.rank_shape(spec);
  const bool padded = find_rule(engine_, Rule::vocabulary_padded, tree_.family) != nullptr;
  const auto share = [&](const PartitionedPart& member, std::uint64_t group) {
    const Partition partition = spec.parallel.partition;
    if (partition == Partition::vocabulary && !padded) return ceil_div(member.size, group);
    if (group > 1 && whole_blocks(spec)) {
      const std::uint64_t each = ceil_div(ceil_div(member.size, kMxBlock), group) * kMxBlock;
      const std::uint64_t before = place == nullptr ? 0 : place->in_stage() % group * each;
      return std::min(member.size, before + each) - std::min(member.size, before);
    }
    return member_share(member, partition, group);
  };
  return shape_with(spec, layout_, experts_here(spec.stacked, place), share);
}

std::vector<IndexRange> pipeline_stages(std::uint64_t layers, std::uint64_t stages, const EngineAt& engine) {
  const auto has = [&](Rule rule) { return find_rule(engine, rule, "") != nullptr; };
  const std::uint64_t more = layers % stages;
  std::vector<std::uint64_t> sizes(stages, layers / stages);
  for (std::uint64_t i = 0; i < more; ++i) {
    if (has(Rule::layers_to_middle))
      ++sizes[stages - 2 - i];  // one left over of two stages goes to the first
    else if (has(Rule::layers_to_last_stages))
      ++sizes[stages - 1 - i];
    else if (has(Rule::layers_to_last_stage))
      ++sizes[stages - 1];
    else
      ++sizes[i];
  }
  std::vector<IndexRange> list;
  for (std::uint64_t first = 0; const std::uint64_t size : sizes) {
    list.push_back({first, first + size});
    first += size;
  }
  return list;
}

}  // namespace assay
