// The rules about a model as a whole: heads, experts, recurrent layers, pipeline stages.
#include "paramcount/plan_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/parallel_words.h"
#include "paramcount/plan_cut.h"

namespace assay {
namespace {

std::string n(std::uint64_t number) {
  return std::to_string(number);
}

void judge_heads(Bench& b) {
  const std::uint64_t tp = b.layout.tp;
  for (const AttentionGeometry& g : b.tree.attention) {
    if (const EngineRule* r = b.rule(Rule::heads); r != nullptr && g.heads % tp != 0)
      b.refuse(*r, "attention", "heads",
               fmt::format("{} heads / {} = {}", g.heads, tp, share_text(g.heads, tp)),
               filled(r->message, {{"heads", n(g.heads)}, {"tp", n(tp)}}));
    if (g.kind == AttentionGeometry::Kind::latent) {
      if (tp > 1 && b.rule(Rule::latent_everywhere) != nullptr)
        b.note(fmt::format("the latent KV cache is the same on all {} ranks of a tensor-parallel group", tp));
      continue;
    }
    if (tp > g.kv_heads && tp % g.kv_heads == 0 && b.rule(Rule::key_heads_repeated) != nullptr)
      b.note(fmt::format("{} key and value heads are repeated over {} ranks: the cache grows {} times",
                         g.kv_heads, tp, tp / g.kv_heads));
    const bool deals = g.kv_heads % tp == 0 || tp % g.kv_heads == 0;
    if (const EngineRule* r = b.rule(Rule::key_heads); r != nullptr && !deals) {
      const bool more = g.kv_heads >= tp;
      b.refuse(*r, "attention", "key and value heads",
               fmt::format("{} key and value heads over {} ranks", g.kv_heads, tp),
               filled(r->message, {{"larger", more ? "self.total_num_kv_heads" : "tp_size"},
                                   {"smaller", more ? "tp_size" : "self.total_num_kv_heads"}}));
    }
  }
}

void judge_experts(Bench& b) {
  const std::uint64_t e = b.tree.experts, ep = b.layout.ep;
  if (e == 0) {
    if (const EngineRule* r = b.rule(Rule::experts_needed); r != nullptr && ep > 1)
      b.refuse(*r, "routed experts", "none", "a dense model has no experts", std::string(r->message));
    return;
  }
  if (ep > 1 && ep != b.layout.moe_ranks() && b.rule(Rule::experts_over_all_ranks) != nullptr)
    b.note(fmt::format(
        "{0} deals experts over all tp × dp = {1} ranks: --enable-expert-parallel gives ep={1}, not {2}",
        title(b.engine.engine), b.layout.moe_ranks(), ep));
  // SGLang's --tp is tp × dp.
  const std::uint64_t ranks = b.engine.engine == Engine::sglang ? b.layout.moe_ranks() : b.layout.tp;
  if (const EngineRule* r = b.rule(Rule::experts_at_most_tp); r != nullptr && ranks > e)
    b.refuse(*r, "routed experts", "experts", fmt::format("{} experts, tp={}", e, ranks),
             filled(r->message, {{"tp", n(ranks)}, {"experts", n(e)}}));
  if (const EngineRule* r = b.rule(Rule::experts_at_most_ep); r != nullptr && ep > e)
    b.refuse(*r, "routed experts", "experts", fmt::format("{} experts over {} groups", e, ep),
             std::string(r->message));
  if (e % ep == 0) return;
  const std::string arithmetic = fmt::format("{} experts / {} = {}", e, ep, share_text(e, ep));
  if (const EngineRule* r = b.rule(Rule::experts_lost))
    b.refuse(*r, "routed experts", "experts", arithmetic,
             fmt::format("no message: {} experts a rank, and the last {} belong to nobody", e / ep, e % ep),
             true);
  if (const EngineRule* r = b.rule(Rule::experts_divide))
    b.refuse(*r, "routed experts", "experts", arithmetic, std::string(r->message));
  if (b.rule(Rule::experts_uneven) != nullptr)
    b.note(fmt::format("{}: the first {} ranks of {} hold one expert more", arithmetic, e % ep, ep));
}

// Units of the member of a recurrent projection that has this role; 0: none.
std::uint64_t units_of_role(const TensorSpec& spec, Role role) {
  for (const PartitionedPart& member : spec.parallel.members) {
    if (member.role == role) return member.units;
  }
  return 0;
}

void judge_mamba(Bench& b, std::uint64_t heads, std::uint64_t groups) {
  const std::uint64_t tp = b.layout.tp;
  if (const EngineRule* r = b.rule(Rule::mamba_heads); r != nullptr && heads % tp != 0)
    b.refuse(*r, "state space", "heads", fmt::format("{} heads / {} = {}", heads, tp, share_text(heads, tp)),
             std::string(r->message));
  const EngineRule* r = b.rule(Rule::mamba_groups);
  if (r == nullptr || groups % tp == 0) return;
  if (groups == 1)
    b.note(fmt::format("the one group of the state-space layers is repeated over {} ranks", tp));
  else
    b.refuse(*r, "state space", "groups",
             fmt::format("{} groups / {} = {}", groups, tp, share_text(groups, tp)), std::string(r->message));
}

void judge_delta(Bench& b, std::uint64_t key_heads, std::uint64_t value_heads) {
  const EngineRule* r = b.rule(Rule::delta_heads);
  if (r == nullptr) return;
  const std::uint64_t tp = b.layout.tp;
  for (const auto& [what, heads] :
       {std::pair{"value heads", value_heads}, std::pair{"key heads", key_heads}}) {
    if (heads % tp != 0)
      b.refuse(*r, "linear attention", what,
               fmt::format("{} {} / {} = {}", heads, what, tp, share_text(heads, tp)),
               filled(r->message, {{"number", n(heads)}, {"tp", n(tp)}}));
  }
}

void judge_recurrent(Bench& b) {
  for_each_spec(b.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.role != Role::recurrent_in || spec.bias || !where.main()) return;
    const std::uint64_t keys = units_of_role(spec, Role::k), values = units_of_role(spec, Role::v);
    if (units_of_role(spec, Role::time_bias) != 0)
      judge_mamba(b, values, keys);
    else if (keys != 0 && values != 0)
      judge_delta(b, keys, values);
  });
  for (const RecurrentGeometry& g : b.tree.recurrent) {
    const EngineRule* r = b.rule(Rule::kda_heads);
    if (r != nullptr && g.title == "KDA" && g.heads % b.layout.tp != 0)
      b.refuse(*r, "linear attention", "heads",
               fmt::format("{} heads / {} = {}", g.heads, b.layout.tp, share_text(g.heads, b.layout.tp)),
               std::string(r->message));
  }
}

// "16 in stages 2, 3 and 15 in the others".
std::string dealt_text(const std::vector<IndexRange>& stages) {
  std::uint64_t most = 0, least = UINT64_MAX;
  for (const IndexRange& stage : stages)
    most = std::max(most, stage.size()), least = std::min(least, stage.size());
  std::string fuller;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].size() == most) fuller += fmt::format("{}{}", fuller.empty() ? "" : ", ", i + 1);
  }
  const bool one = fuller.find(',') == std::string::npos;
  return fmt::format("{} in stage{} {} and {} in the others", most, one ? "" : "s", fuller, least);
}

void judge_stages(Bench& b) {
  const std::uint64_t layers = b.tree.layers, pp = b.layout.pp;
  if (pp > layers) {
    if (const EngineRule* r = b.rule(Rule::layers_fill_stages))
      b.refuse(*r, "layers", "layers", fmt::format("{} layers over {} stages", layers, pp),
               std::string(r->message));
  } else if (layers % pp != 0) {
    b.note(fmt::format("{} layers over {} stages: {} puts {}", layers, pp, title(b.engine.engine),
                       dealt_text(pipeline_stages(layers, pp, b.engine))));
  }
}

void judge_vocabulary(Bench& b) {
  if (b.rule(Rule::vocabulary_padded) == nullptr || b.tree.vocabulary == 0 || b.layout.tp == 1) return;
  const std::uint64_t padded = (b.tree.vocabulary + 63) / 64 * 64;
  if (padded != b.tree.vocabulary)
    b.note(fmt::format("{} pads the vocabulary of {} to {}, a multiple of 64", title(b.engine.engine),
                       b.tree.vocabulary, padded));
}

// Checkpoints that bitsandbytes has quantized: engines take their tensors as they are, or not at all.
void judge_bitsandbytes(Bench& b) {
  const WeightFormat& format = b.options.format;
  if (format.method != "bitsandbytes") return;
  const std::uint64_t tp = b.layout.tp;
  if (const EngineRule* r = b.rule(Rule::bnb_unknown))
    b.refuse(*r, "weights", "all", "quant_method bitsandbytes", std::string(r->message));
  if (const EngineRule* r = b.rule(Rule::bnb_uncut); r != nullptr && tp > 1)
    b.refuse(*r, "weights", "all", fmt::format("{} in a tensor-parallel group of {}", format.title, tp),
             std::string(r->message));
  if (const EngineRule* r = b.rule(Rule::bnb_int8_experts);
      r != nullptr && format.bits == 8 && b.tree.experts > 0)
    b.refuse(*r, "routed experts", "experts", fmt::format("{} experts in 8 bits", b.tree.experts),
             std::string(r->message));
  if (const EngineRule* r = b.rule(Rule::bnb_plugin))
    b.note(fmt::format("{} reads bitsandbytes with vllm-bnb-plugin installed; without it: {}",
                       b.engine.text(), r->message));
}

// Of its own ranks assay need not know rules by heart.
void judge_own_ranks(Bench& b) {
  std::vector<std::string> lines = refusals_to_run(b.tree, grid_of(b.layout));
  if (b.layout.ranks() > 1024) lines.push_back(fmt::format("{} are more than 1024 ranks", b.layout.text()));
  for (std::string& line : lines) {
    const std::string message = fmt::format("{} cannot be cut into {}", b.tree.family, b.layout.text());
    b.ruling.refusals.push_back({b.engine, "own-ranks", "ranks", "weights", std::move(line), message, false});
  }
}

}  // namespace

void Bench::refuse(const EngineRule& by, std::string_view part, std::string tensors, std::string arithmetic,
                   std::string message, bool silent) {
  if (message.empty()) message = "its words are not known";
  for (Refusal& refusal : ruling.refusals) {
    if (refusal.part != part || refusal.message != message || refusal.rule != name(by.rule)) continue;
    if (refusal.tensors.find(tensors) == std::string::npos) refusal.tensors += ", " + tensors;
    return;
  }
  ruling.refusals.push_back({engine, std::string(name(by.rule)), std::string(part), std::move(tensors),
                             std::move(arithmetic), std::move(message), silent});
}

void Bench::note(std::string text) {
  if (std::find(ruling.notes.begin(), ruling.notes.end(), text) == ruling.notes.end())
    ruling.notes.push_back(std::move(text));
}

Ruling judge(const EngineAt& engine, const ModuleTree& tree, const Layout& layout,
             const PlanOptions& options) {
  Bench bench(engine, tree, layout, options);
  if (engine.engine == Engine::assay) judge_own_ranks(bench);
  judge_heads(bench);
  judge_recurrent(bench);
  judge_experts(bench);
  judge_stages(bench);
  judge_vocabulary(bench);
  judge_bitsandbytes(bench);
  judge_towers(bench);
  judge_matrices(bench);
  return std::move(bench.ruling);
}

}  // namespace assay
