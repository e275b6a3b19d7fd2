#include "paramcount/plan_cut.h"

#include <algorithm>

namespace assay {
namespace {

constexpr std::uint64_t kVocabularyPadding =
    64;  // vLLM, vocab_parallel_embedding.py: DEFAULT_VOCAB_PADDING_SIZE

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

std::uint64_t cut_group(const TensorSpec& spec, const Layout& layout) {
  if (spec.parallel.cut == Cut::replicated) return 1;
  return spec.part == Part::routed_expert ? layout.moe_tp() : layout.tp;
}

std::uint64_t member_share(const CutMember& member, Cut cut, std::uint64_t group) {
  if (group == 1) return member.size;
  if (cut == Cut::vocabulary)
    return ceil_div(ceil_div(member.size, kVocabularyPadding) * kVocabularyPadding, group);
  const std::uint64_t unit = member.size / member.units;
  return ceil_div(member.units, group) * unit;
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
