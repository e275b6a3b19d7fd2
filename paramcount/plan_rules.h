// What each engine asserts about shapes, and the words it uses: its table (engine_rules.h), applied.
#pragma once

#include <string>
#include <vector>

#include "paramcount/engine_rules.h"
#include "paramcount/plan.h"

namespace assay {

struct Ruling {
  std::vector<Refusal> refusals;
  std::vector<std::string> notes;
};
Ruling judge(const EngineAt& engine, const ModuleTree& tree, const Layout& layout,
             const PlanOptions& options);

// What a judge of one engine has at hand; rules are looked up in its table.
class Bench {
 public:
  Bench(const EngineAt& engine, const ModuleTree& tree, const Layout& layout, const PlanOptions& options)
      : engine(engine), tree(tree), layout(layout), options(options) {}

  const EngineRule* rule(Rule id) const { return find_rule(engine, id, tree.family); }
  // Of towers, whose classes engines choose by the architecture.
  const EngineRule* tower_rule(Rule id) const { return find_rule(engine, id, tree.architecture); }
  // Several tensors with one message become one refusal. An empty message: its words are not known.
  void refuse(const EngineRule& by, std::string_view part, std::string tensors, std::string arithmetic,
              std::string message, bool silent = false);
  void note(std::string text);

  const EngineAt& engine;
  const ModuleTree& tree;
  const Layout& layout;
  const PlanOptions& options;
  Ruling ruling;
};

// Heads and experts, layers and their recurrent states (plan_rules.cpp); then towers (plan_towers.cpp), and every matrix of
// the language model (plan_matrices.cpp).
void judge_towers(Bench& bench);
void judge_matrices(Bench& bench);

// The largest square block, a divisor of the format's, that every cut shape is a multiple of; 0: none.
std::uint64_t largest_block(const ModuleTree& tree, const Layout& layout, const WeightFormat& format);

}  // namespace assay
