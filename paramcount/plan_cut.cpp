#include "paramcount/plan_cut.h"

#include <algorithm>

#include "core/numeric/ceil_div.h"

namespace assay {
std::uint64_t cut_group(const TensorSpec& spec, const Layout& layout) {
  if (spec.parallel.partition == Partition::replicated) return 1;
  return spec.part == Part::routed_expert ? layout.moe_tp() : layout.tp;
}

std::vector<std::uint64_t> rank_shape(const TensorSpec& spec, const Layout& layout) {
  std::vector<std::uint64_t> shape = spec.shape;
  const std::uint64_t experts_here = spec.stacked == 0 ? 0 : ceil_div(spec.stacked, layout.ep);
  if (spec.stacked != 0) shape[0] = shape[0] / spec.stacked * experts_here;
  if (spec.parallel.partition == Partition::replicated) return shape;
  const std::uint64_t group = cut_group(spec, layout);
  std::uint64_t size = 0;
  for (const PartitionedPart& member : spec.parallel.members)
    size += member_share(member, spec.parallel.partition, group);
  // Rows of all experts one behind the other (DBRX): `members` are the experts.
  if (spec.stacked != 0 && spec.parallel.dimension == 0) size = size / spec.stacked * experts_here;
  shape[spec.parallel.dimension] = size;
  return shape;
}

Stage stage_layers(std::uint64_t layers, std::uint64_t stages, std::uint64_t stage) {
  const std::uint64_t each = layers / stages, more = layers % stages;
  const std::uint64_t first = stage * each + std::min(stage, more);
  return {first, first + each + (stage < more ? 1 : 0)};
}

}  // namespace assay
