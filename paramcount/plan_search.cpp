// What to do instead: the ways out of a plan that is refused, and a search for plans that are not.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/system/text.h"
#include "paramcount/plan.h"
#include "paramcount/plan_rules.h"

namespace assay {
namespace {

std::vector<std::uint64_t> divisors_down(std::uint64_t n) {
  std::vector<std::uint64_t> list;
  for (std::uint64_t d = n; d >= 1; --d) {
    if (n % d == 0) list.push_back(d);
  }
  return list;
}

std::string outcome_of(const Plan& plan) {
  if (plan.launches()) return "launches";
  std::set<std::string> parts;
  for (const Refusal& refusal : plan.refusals)
    parts.insert(fmt::format("{} ({})", refusal.part, refusal.arithmetic));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "still refused: " : "; ") + part;
  if (!plan.fits())
    text += fmt::format("{}needs {} of {} a GPU", text.empty() ? "" : "; ", human_bytes(plan.load.total()),
                        human_bytes(plan.budget));
  return text;
}

std::string engine_line(const Layout& l, const PlanOptions& options) {
  const Engine engine = options.engines.empty() ? Engine::vllm : options.engines.front().engine;
  if (engine == Engine::vllm) {
    std::string line = fmt::format("vllm serve MODEL --tensor-parallel-size {}", l.tp);
    if (l.pp > 1) line += fmt::format(" --pipeline-parallel-size {}", l.pp);
    if (l.dp > 1) line += fmt::format(" --data-parallel-size {}", l.dp);
    if (l.ep > 1) line += " --enable-expert-parallel";
    return line;
  }
  if (engine == Engine::sglang) {
    std::string line = fmt::format("python -m sglang.launch_server --model-path MODEL --tp {}", l.tp * l.dp);
    if (l.pp > 1) line += fmt::format(" --pp-size {}", l.pp);
    if (l.dp > 1) line += fmt::format(" --dp-size {} --enable-dp-attention", l.dp);
    if (l.ep > 1) line += fmt::format(" --ep-size {}", l.ep);
    return line;
  }
  if (engine == Engine::assay) {
    std::string line = fmt::format("mpirun -n {} assay run MODEL --tp {}", l.ranks(), l.tp);
    if (l.pp > 1) line += fmt::format(" --pp {}", l.pp);
    if (l.dp > 1) line += fmt::format(" --dp {}", l.dp);
    if (l.ep > 1) line += fmt::format(" --ep {}", l.ep);
    return line;
  }
  return fmt::format("trtllm-serve MODEL --tp_size {} --pp_size {} --ep_size {}", l.tp * l.dp, l.pp, l.ep);
}

class WayFinder {
 public:
  WayFinder(const ModuleTree& tree, const Plan& plan, const PlanOptions& options)
      : tree_(tree), plan_(plan), options_(options), tp_(plan.layout.tp) {}

  std::vector<WayOut> run() {
    if (tree_.experts > 0 && plan_.layout.ep == 1) expert_parallel();
    dp_attention();
    pipeline();
    lower();
    towers_whole();
    if (options_.stale_quantization) drop_quantization();
    smaller_blocks();
    return std::move(ways_);
  }

 private:
  void add(std::string what, const Layout& layout, std::string command = {}) {
    const Plan plan = make_plan(tree_, layout, options_);
    if (command.empty()) command = engine_line(layout, options_);
    ways_.push_back({std::move(what), outcome_of(plan), plan.launches(), std::move(command)});
  }

  void expert_parallel() {
    Layout layout = plan_.layout;
    layout.ep = layout.moe_ranks();
    add(fmt::format("expert parallel ({}): whole experts on each rank; exempts routed experts only",
                    layout.text()),
        layout);
  }

  // Of the layouts that `change` makes, the one with the largest tp that launches; else the nearest miss.
  template <class Change>
  void first_that_launches(const char* what, Change change) {
    std::optional<Layout> nearly;  // every shape divides, and memory is short
    for (const std::uint64_t tp : divisors_down(tp_)) {
      if (tp == tp_) continue;
      Layout layout = plan_.layout;
      change(layout, tp);
      const Plan plan = make_plan(tree_, layout, options_);
      if (plan.launches()) return add(fmt::format("{} ({})", what, layout.text()), layout);
      if (plan.refusals.empty() && !nearly) nearly = layout;
    }
    if (nearly)
      add(fmt::format("{} ({})", what, nearly->text()), *nearly);
    else if (tp_ > 1)
      ways_.push_back({what, "no division of these ranks launches", false, {}});
  }

  void dp_attention() {
    if (tree_.experts == 0) return;
    first_that_launches("DP attention with expert parallel", [&](Layout& layout, std::uint64_t tp) {
      layout.dp = plan_.layout.dp * (tp_ / tp);
      layout.tp = tp;
      layout.ep = layout.moe_ranks();
    });
  }

  void pipeline() {
    first_that_launches("tensor × pipeline parallel", [&](Layout& layout, std::uint64_t tp) {
      layout.pp = plan_.layout.pp * (tp_ / tp);
      layout.tp = tp;
      if (layout.moe_ranks() % layout.ep != 0) layout.ep = 1;
    });
  }

  void lower() {
    first_that_launches("fewer ranks", [&](Layout& layout, std::uint64_t tp) {
      layout.tp = tp;
      if (layout.moe_ranks() % layout.ep != 0) layout.ep = 1;
    });
  }

  // What keeps a tower from being cut, where that is what is refused.
  void towers_whole() {
    const auto of_tower = std::find_if(plan_.refusals.begin(), plan_.refusals.end(),
                                       [](const Refusal& r) { return r.rule.starts_with("tower-"); });
    if (of_tower == plan_.refusals.end() ||
        find_rule(of_tower->engine, Rule::tower_data, tree_.architecture) == nullptr)
      return;
    PlanOptions whole = options_;
    whole.towers_whole = true;
    const Plan plan = make_plan(tree_, plan_.layout, whole);
    const bool vllm = of_tower->engine.engine == Engine::vllm;
    PlanOptions alone = options_;
    alone.engines = {of_tower->engine};
    ways_.push_back({"the vision tower whole on each rank", outcome_of(plan), plan.launches(),
                     engine_line(plan_.layout, alone) +
                         (vllm ? " --mm-encoder-tp-mode data" : " --mm-enable-dp-encoder")});
  }

  void drop_quantization() {
    PlanOptions plain = options_;
    plain.format = *weight_format("bf16");
    const Plan plan = make_plan(tree_, plan_.layout, plain);
    ways_.push_back({"drop the stale quantization_config from config.json: the weights are not quantized",
                     outcome_of(plan),
                     plan.launches(),
                     {}});
  }

  void smaller_blocks() {
    const std::uint64_t block = largest_block(tree_, plan_.layout, options_.format);
    if (block == 0 || block == options_.format.block_rows) return;
    PlanOptions smaller = options_;
    smaller.format.set_block(block, block);
    const Plan plan = make_plan(tree_, plan_.layout, smaller);
    ways_.push_back({fmt::format("{0}x{0} blocks: the largest that fit, same codes, scales repeated", block),
                     outcome_of(plan), plan.launches(),
                     fmt::format("assay convert IN OUT --to reblock={0}x{0}", block)});
  }

  const ModuleTree& tree_;
  const Plan& plan_;
  const PlanOptions& options_;
  const std::uint64_t tp_;
  std::vector<WayOut> ways_;
};

}  // namespace

std::vector<WayOut> ways_out(const ModuleTree& tree, const Plan& plan, const PlanOptions& options) {
  return WayFinder(tree, plan, options).run();
}

std::vector<Plan> search_plans(const ModuleTree& tree, std::uint64_t gpus, const PlanOptions& options) {
  std::vector<Plan> plans;
  for (const std::uint64_t pp : divisors_down(gpus)) {
    if (pp > tree.layers) continue;
    for (const std::uint64_t tp : divisors_down(gpus / pp)) {
      Layout layout{tp, pp, gpus / pp / tp, 1};
      // Whole experts, then experts cut like everything else; what lies between only where neither starts.
      std::vector<std::uint64_t> groups = {1};
      if (tree.experts > 0) groups = divisors_down(layout.moe_ranks());
      if (groups.size() > 2) std::rotate(groups.begin() + 1, groups.end() - 1, groups.end());
      bool found = false;
      for (std::size_t i = 0; i < groups.size() && (i < 2 || !found); ++i) {
        layout.ep = groups[i];
        Plan plan = make_plan(tree, layout, options);
        if (plan.launches()) plans.push_back(std::move(plan)), found = true;
      }
    }
  }
  // Fewer stages: no bubbles. Then room for cache; then tp, which shortens the time of a token.
  std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
    if (a.layout.pp != b.layout.pp) return a.layout.pp < b.layout.pp;
    if (a.tokens_that_fit != b.tokens_that_fit) return a.tokens_that_fit > b.tokens_that_fit;
    if (a.load.weight_bytes != b.load.weight_bytes) return a.load.weight_bytes < b.load.weight_bytes;
    return a.layout.tp > b.layout.tp;
  });
  return plans;
}

}  // namespace assay
