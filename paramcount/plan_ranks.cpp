#include "paramcount/plan_ranks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/model/stage_parts.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostTold = 4096;

std::uint64_t elements_of(const std::vector<std::uint64_t>& shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t d : shape) product *= d;
  return product;
}

}  // namespace

HeldWeights held_weights(const ModuleTree& tree, const Layout& layout, const PlanOptions& options,
                         const EngineAt& engine, std::uint64_t stage, const RankPlace* place) {
  const EngineCut cut(tree, layout, engine, options.format, options.towers_whole);
  const bool towers_everywhere = find_rule(engine, Rule::tower_on_every_stage, tree.architecture) != nullptr;
  const IndexRange layers_here = pipeline_stages(tree.layers, layout.pp, engine)[stage];
  const bool first = stage == 0, last = stage + 1 == layout.pp;
  const WeightSizes sizes(tree, options.format);
  HeldWeights held;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.storage == Storage::buffer || (where.mtp && !options.with_mtp)) return;
    // Engines share the prediction layer's embedding and head with the main model's.
    if (where.mtp && spec.storage == Storage::duplicate && (first || spec.role == Role::output_head)) return;
    const bool has_towers = first || (where.tower && towers_everywhere);
    const auto layers = layers_in_stage(spec, where, layers_here, has_towers, last);
    if (layers.empty()) return;
    const std::vector<std::uint64_t> shape = cut.rank_shape(spec, place);
    std::uint64_t in_a_layer = where.copies / layers_of(where).size();
    if (spec.part == Part::routed_expert && spec.stacked == 0)
      in_a_layer = cut.experts_here(in_a_layer, place);
    held.parameters += elements_of(shape) * in_a_layer * layers.size();
    for (const std::uint64_t layer : layers) held.bytes += in_a_layer * sizes.of_tensor(spec, shape, layer);
  });
  return held;
}

PlannedRanks planned_ranks(const ModuleTree& tree, const Layout& layout, const PlanOptions& options,
                           const EngineAt& engine, const std::vector<Refusal>& refusals) {
  const bool refused =
      std::any_of(refusals.begin(), refusals.end(), [&](const Refusal& r) { return r.engine == engine; });
  if (refused || layout.ranks() > kMostTold || layout.pp > tree.layers) return {};
  const RankGrid grid = grid_of(layout);
  if (engine.engine == Engine::assay)
    return {engine, rank_weights(tree, grid, options.format, options.with_mtp), {}};
  PlannedRanks planned{engine, {}, {}};
  // Ranks of a stage differ in their experts alone.
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, HeldWeights> known;
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
    const RankPlace place{grid, rank};
    const std::tuple key = {place.stage(), place.expert_group(),
                            place.in_stage() % grid.ranks_of_an_expert()};
    auto held = known.find(key);
    if (held == known.end())
      held = known.emplace(key, held_weights(tree, layout, options, engine, place.stage(), &place)).first;
    planned.ranks.push_back({place, held->second.parameters, held->second.bytes});
  }
  return planned;
}

PlannedRanks ranks_of_plan(const ModuleTree& tree, const Plan& plan, const PlanOptions& options,
                           bool stored_as_gguf) {
  const EngineAt engine = options.engines.empty() ? EngineAt(Engine::vllm) : options.engines.front();
  const bool own = engine.engine == Engine::assay;
  if (stored_as_gguf || (own && options.format.kind == WeightFormat::Kind::gguf))
    return {{},
            {},
            "of a GGUF no ranks are told: its types differ by tensor, and what is cut within its blocks is "
            "held as float32"};
  if (!own) return planned_ranks(tree, plan.layout, options, engine, plan.refusals);
  if (plan.own_ranks.empty()) return {};
  return {engine, plan.own_ranks, {}};
}

}  // namespace assay
