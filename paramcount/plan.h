// Will this model start on these GPUs? Every shape is cut as the engines cut it, and whatever does not divide
// is told in the words with which the engine would refuse it, minutes into loading.
//
//   tp   tensor parallel: attention, dense MLP, shared experts, embedding and head are cut over tp ranks
//   pp   pipeline: layers are dealt out over pp stages; which take one more, each engine has its own way
//   dp   copies of attention and dense parts with requests of their own (DP attention)
//   ep   expert parallel: routed experts are dealt out over ep groups of the tp × dp ranks, and cut over
//        the tp × dp / ep ranks of each group
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/module_tree.h"
#include "core/model/rank_grid.h"
#include "core/model/rank_weights.h"
#include "core/model/weight_bytes.h"
#include "paramcount/engine.h"
#include "paramcount/memory.h"

namespace assay {

struct Layout {
  std::uint64_t tp = 1, pp = 1, dp = 1, ep = 1;
  std::uint64_t ranks() const { return tp * pp * dp; }
  std::uint64_t moe_ranks() const { return tp * dp; }    // that share the routed experts of a stage
  std::uint64_t moe_tp() const { return tp * dp / ep; }  // that cut one expert
  std::string text() const;                              // "tp=16,pp=2"
};
RankGrid grid_of(const Layout& layout);
// "tp=32,ep=8,pp=2"; throws Error::usage.
Layout parse_layout(std::string_view text);

struct PlanOptions {
  std::vector<EngineAt> engines;
  std::vector<std::string> remarks;  // about their versions
  WeightFormat format;
  std::uint64_t gpu_memory = 0;  // bytes; 0: not given, memory is no question
  double usable = 0.9;           // of gpu_memory: vLLM's gpu_memory_utilization
  std::uint64_t context = 4096, batch = 1;
  double kv_bytes_per_value = 2;
  bool with_mtp = false;            // the prediction layer is loaded too, on the last stage
  bool stale_quantization = false;  // the headers hold none of what quantization_config says
  std::uint64_t gpus_per_node = 8;
  bool towers_whole = false;  // the engine is told to keep vision towers whole on each rank
};

// One shape that an engine refuses.
struct Refusal {
  EngineAt engine;
  std::string rule;        // "fp8-inputs": the line of the engine's table (docs/engines.md)
  std::string part;        // "dense MLP", "routed experts": which the way out depends on
  std::string tensors;     // "gate_proj, up_proj"
  std::string arithmetic;  // "intermediate_size 18432/32 = 576 = 4.5 × 128"
  std::string message;     // the engine's own; where it is not known, that
  bool silent = false;     // the engine says nothing, and is wrong
};

struct RankLoad {
  std::uint64_t stage = 0;  // the fullest
  std::uint64_t parameters = 0, weight_bytes = 0, kv_bytes = 0, kv_bytes_per_token = 0, activation_bytes = 0;
  std::uint64_t total() const { return weight_bytes + kv_bytes + activation_bytes; }
};

struct CutRow {                    // what becomes of one tensor
  std::string tensor, how, shape;  // "mlp.gate_proj", "columns / 32", "[576, 7168]"
};

struct Plan {
  Layout layout;
  std::vector<Refusal> refusals;
  std::vector<std::string> notes;      // what engines do silently and rightly, padding, imbalance
  RankLoad load;                       // of the fullest rank
  std::string counted_as_dtype;        // a quantization method whose bytes are not known, and so not counted
  std::vector<RankWeights> own_ranks;  // assay's, where it is asked about and refuses nothing (plan_ranks.h)
  std::uint64_t budget = 0;            // gpu_memory × usable
  std::uint64_t tokens_that_fit = 0;   // of KV cache in what the weights leave; 0 without gpu_memory
  bool fits() const { return budget == 0 || load.total() <= budget; }
  bool launches() const { return refusals.empty() && fits(); }
};

Plan make_plan(const ModuleTree& tree, const Layout& layout, const PlanOptions& options);
// As the first of the engines cuts.
std::vector<CutRow> cut_table(const ModuleTree& tree, const Layout& layout, const PlanOptions& options);

struct WayOut {
  std::string what;     // "pipeline parallel: tp=16,pp=2"
  std::string outcome;  // "launches", or what is still refused
  bool launches = false;
  std::string command;  // the assay or engine line that does it; may be empty
};
// In the order to try them.
std::vector<WayOut> ways_out(const ModuleTree& tree, const Plan& plan, const PlanOptions& options);

// Every layout of `gpus` ranks that launches, best first: fewer pipeline stages, then more room for KV cache,
// then a smaller share of replicated weights.
std::vector<Plan> search_plans(const ModuleTree& tree, std::uint64_t gpus, const PlanOptions& options);

}  // namespace assay
