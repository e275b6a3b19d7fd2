// The rules about vision towers, whose classes engines cut as they cut text.
#include <fmt/format.h>

#include "core/model/parallel_words.h"
#include "paramcount/plan_rules.h"
#include "paramcount/tower_cut.h"

namespace assay {
namespace {

constexpr std::string_view kTower = "vision tower";

void judge_tower_heads(Bench& b, const TowerCut& cut) {
  if (cut.heads_divide()) return;
  const std::uint64_t tp = b.layout.tp;
  const std::string arithmetic =
      fmt::format("{} heads of the vision tower / {} = {}", cut.heads(), tp, share_text(cut.heads(), tp));
  if (const EngineRule* r = b.tower_rule(Rule::tower_heads); r != nullptr && !cut.is_whole())
    b.refuse(*r, kTower, "heads", arithmetic,
             filled(r->message, {{"number", std::to_string(cut.heads())}, {"tp", std::to_string(tp)}}));
  if (b.tower_rule(Rule::tower_whole) != nullptr)
    b.note(
        fmt::format("{} holds the vision tower whole on each rank: {}", title(b.engine.engine), arithmetic));
  if (b.tower_rule(Rule::tower_attention_whole) != nullptr)
    b.note(fmt::format("{} holds the attention of the vision tower whole on each rank: {}",
                       title(b.engine.engine), arithmetic));
}

void judge_tower_widths(Bench& b, const TowerCut& cut) {
  const EngineRule* r = b.tower_rule(Rule::tower_widths);
  if (r == nullptr) return;
  const std::uint64_t tp = b.layout.tp;
  for_each_spec(b.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.tower || spec.bias || spec.storage != Storage::own) return;
    const auto at = cut.dimension(spec);
    if (!at || spec.shape[*at] % tp == 0) return;
    if (cut.of_attention(spec) && !cut.heads_divide()) return;  // told by heads
    const std::uint64_t size = spec.shape[*at];
    b.refuse(*r, kTower, short_name(spec), fmt::format("{}/{} = {}", size, tp, share_text(size, tp)),
             filled(r->message, {{"number", std::to_string(size)}, {"tp", std::to_string(tp)}}));
  });
}

}  // namespace

void judge_towers(Bench& bench) {
  if (bench.tree.towers.empty()) return;
  if (bench.engine.engine == Engine::assay)
    return bench.note("assay run computes no towers: vision and audio parts are in no rank's bytes");
  if (bench.layout.tp == 1) return;
  const TowerCut cut(bench.tree, bench.layout, bench.engine, bench.options.towers_whole);
  if (cut.known() == nullptr)
    return bench.note(fmt::format(
        "how {} lays the vision and audio parts of {} out is not known here: each rank of the first stage is "
        "counted with all of them",
        bench.engine.text(), bench.tree.architecture));
  judge_tower_heads(bench, cut);
  judge_tower_widths(bench, cut);
}

}  // namespace assay
