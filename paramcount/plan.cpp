#include "paramcount/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/stored_checks.h"
#include "core/numeric/ceil_div.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "paramcount/plan_ranks.h"
#include "paramcount/plan_rules.h"

namespace assay {
namespace {

// Tokens that one step of prefilling computes at once: the default of vLLM's max_num_batched_tokens.
constexpr std::uint64_t kPrefillTokens = 8192;

RankLoad stage_load(const ModuleTree& tree, const Layout& layout, const PlanOptions& options,
                    const EngineAt& engine, const IndexRange& stage, std::uint64_t index) {
  RankLoad load;
  load.stage = index;
  const HeldWeights held = held_weights(tree, layout, options, engine, index);
  load.parameters = held.parameters;
  load.weight_bytes = held.bytes;
  KvOptions kv;
  kv.bytes_per_value = options.kv_bytes_per_value;
  kv.context = options.context;
  kv.batch = ceil_div(options.batch, layout.dp);
  kv.tensor_parallel = layout.tp;
  kv.first_layer = stage.begin;
  kv.end_layer = stage.end;
  const KvCache cache = kv_cache(tree, kv);
  load.kv_bytes = cache.bytes;
  load.kv_bytes_per_token = cache.per_token_beyond + cache.indexer_per_token;
  const std::uint64_t tokens =
      std::min(kPrefillTokens, std::max<std::uint64_t>(1, options.context) * kv.batch);
  load.activation_bytes = activations(tree, tokens, kv.batch, layout.tp).bytes;
  return load;
}

// Of the stage's ranks `own`, where they are known.
void keep_fullest(const std::vector<RankWeights>& own, std::uint64_t stage, RankLoad& load) {
  std::uint64_t fullest = 0;
  for (const RankWeights& rank : own) {
    if (rank.place.stage() != stage || rank.bytes <= fullest) continue;
    fullest = load.weight_bytes = rank.bytes;
    load.parameters = rank.parameters;
  }
}

std::uint64_t number_after(std::string_view item, std::string_view whole) {
  const auto value = parse_u64(item.substr(item.find('=') + 1));
  if (!value || *value == 0 || *value > 1'000'000)
    throw Error::usage(fmt::format("--plan {}: {} is no number of ranks", whole, item));
  return *value;
}

}  // namespace

RankGrid grid_of(const Layout& layout) {
  return {.tp = layout.tp, .pp = layout.pp, .ep = layout.ep, .dp = layout.dp};
}

std::string Layout::text() const {
  std::string text = fmt::format("tp={}", tp);
  if (pp > 1) text += fmt::format(",pp={}", pp);
  if (dp > 1) text += fmt::format(",dp={}", dp);
  if (ep > 1) text += fmt::format(",ep={}", ep);
  return text;
}

Layout parse_layout(std::string_view text) {
  Layout layout;
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = rest.find(',');
    const std::string_view item = trim(rest.substr(0, comma));
    const std::string_view key = item.substr(0, item.find('='));
    std::uint64_t* target = key == "tp"   ? &layout.tp
                            : key == "pp" ? &layout.pp
                            : key == "dp" ? &layout.dp
                            : key == "ep" ? &layout.ep
                                          : nullptr;
    if (target == nullptr || item.find('=') == std::string_view::npos)
      throw Error::usage(fmt::format("--plan {}: {} is not understood", text, item))
          .remedy("write it like tp=16,pp=2,dp=1,ep=1, or auto");
    *target = number_after(item, text);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  if (layout.moe_ranks() % layout.ep != 0)
    throw Error::usage(
        fmt::format("--plan {}: ep={} does not divide tp × dp = {}", text, layout.ep, layout.moe_ranks()))
        .remedy("experts are dealt out over groups of the same ranks that tensors are cut over");
  return layout;
}

Plan make_plan(const ModuleTree& tree, const Layout& layout, const PlanOptions& options) {
  Plan plan;
  plan.layout = layout;
  plan.notes = options.remarks;
  plan.counted_as_dtype = options.format.not_known;
  for (const EngineAt& engine : options.engines) {
    Ruling ruling = judge(engine, tree, layout, options);
    for (Refusal& refusal : ruling.refusals) plan.refusals.push_back(std::move(refusal));
    for (std::string& note : ruling.notes) {
      if (std::find(plan.notes.begin(), plan.notes.end(), note) == plan.notes.end())
        plan.notes.push_back(std::move(note));
    }
  }
  const std::uint64_t stages = std::min(layout.pp, tree.layers);
  Layout possible = layout;
  possible.pp = stages;
  // The fullest under any of the engines.
  const std::vector<EngineAt> one = {Engine::vllm};
  for (const EngineAt& engine : options.engines.empty() ? one : options.engines) {
    const std::vector<IndexRange> dealt = pipeline_stages(tree.layers, stages, engine);
    // Of assay's own ranks each is known; of an engine's the fullest of each stage.
    const bool own = engine.engine == Engine::assay;
    if (own) plan.own_ranks = planned_ranks(tree, layout, options, engine, plan.refusals).ranks;
    for (std::uint64_t stage = 0; stage < stages; ++stage) {
      RankLoad load = stage_load(tree, possible, options, engine, dealt[stage], stage);
      if (own) keep_fullest(plan.own_ranks, stage, load);
      if (load.total() > plan.load.total()) plan.load = load;
    }
  }
  if (options.gpu_memory == 0) return plan;
  plan.budget = static_cast<std::uint64_t>(static_cast<double>(options.gpu_memory) * options.usable);
  const std::uint64_t fixed = plan.load.weight_bytes + plan.load.activation_bytes;
  if (plan.budget > fixed && plan.load.kv_bytes_per_token > 0)
    plan.tokens_that_fit = (plan.budget - fixed) / plan.load.kv_bytes_per_token * layout.dp;
  return plan;
}

std::vector<CutRow> cut_table(const ModuleTree& tree, const Layout& layout, const PlanOptions& options) {
  std::vector<CutRow> rows;
  const EngineAt engine = options.engines.empty() ? EngineAt(Engine::vllm) : options.engines.front();
  const EngineCut cut(tree, layout, engine, options.format, options.towers_whole);
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.storage != Storage::own || !where.main() || spec.bias || spec.shape.size() < 2) return;
    std::string tensor = spec.name;
    if (tensor.ends_with(".weight")) tensor.resize(tensor.size() - 7);
    if (const auto at = tensor.find("{layer}."); at != std::string::npos) tensor = tensor.substr(at + 8);
    const std::uint64_t group = cut_group(spec, layout);
    const bool expert = spec.part == Part::routed_expert;
    std::string how = group == 1                                   ? "whole on each rank"
                      : spec.parallel.partition == Partition::rows ? fmt::format("inputs / {}", group)
                      : spec.parallel.partition == Partition::vocabulary
                          ? fmt::format("vocabulary / {}", group)
                          : fmt::format("outputs / {}", group);
    if (expert && layout.ep > 1)
      how = fmt::format("{} of {} experts, {}", ceil_div(tree.experts, layout.ep), tree.experts,
                        group == 1 ? "each whole" : how);
    CutRow row{std::move(tensor), std::move(how), shape_text(cut.rank_shape(spec))};
    const bool seen = std::any_of(rows.begin(), rows.end(), [&](const CutRow& r) {
      return r.tensor == row.tensor && r.shape == row.shape;
    });
    if (!seen) rows.push_back(std::move(row));
  });
  return rows;
}

}  // namespace assay
