#include "paramcount/plan_cut.h"

#include <algorithm>

namespace assay {
namespace {

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

std::uint64_t cut_group(const TensorSpec& spec, const Layout& layout) {
  if (spec.parallel.cut == Cut::replicated) return 1;
  return spec.part == Part::routed_expert ? layout.moe_tp() : layout.tp;
}

std::vector<std::uint64_t> rank_shape(const TensorSpec& spec, const Layout& layout) {
  std::vector<std::uint64_t> shape = spec.shape;
  if (spec.stacked != 0) shape[0] = ceil_div(spec.stacked, layout.ep);
  if (spec.parallel.cut == Cut::replicated) return shape;
  const std::uint64_t group = cut_group(spec, layout);
  std::uint64_t size = 0;
  for (const CutMember& member : spec.parallel.members)
    size += member_share(member, spec.parallel.cut, group);
  shape[spec.parallel.dimension] = size;
  return shape;
}

Stage stage_layers(std::uint64_t layers, std::uint64_t stages, std::uint64_t stage) {
  const std::uint64_t each = layers / stages, more = layers % stages;
  const std::uint64_t first = stage * each + std::min(stage, more);
  return {first, first + each + (stage < more ? 1 : 0)};
}

}  // namespace assay
