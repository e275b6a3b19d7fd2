// What a model is made of: everything `assay paramcount` knows about PATH, before anyone renders it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/model/reconcile.h"
#include "core/model/weight_bytes.h"
#include "paramcount/compute.h"
#include "paramcount/memory.h"
#include "paramcount/plan.h"
#include "paramcount/plan_ranks.h"
#include "paramcount/rows.h"

namespace assay {

struct Model {
  std::filesystem::path source;  // the config.json, or the GGUF, that describes it
  ModelConfig config;
  ModuleTree tree;
  Totals totals;
  WeightFormat format;  // what the config says the weights are stored in
  std::optional<Checkpoint> checkpoint;
  std::optional<Reconciliation> reconciliation;
  std::vector<Row> rows;
  std::vector<PartRow> parts;
  Findings findings;        // of checkpoint and reconciliation
  std::uint64_t bytes = 0;  // stored, or by `format`: main, MTP and towers
};

// PATH: a config.json, a folder with one, a .safetensors with one beside it, a .gguf, a hub cache.
Model load_model(const std::filesystem::path& path, int jobs);

struct Question {
  std::uint64_t context = 4096, batch = 1;
  std::string kv_dtype = "bf16";
  Machine machine;                // zeros: not given
  std::optional<Layout> layout;   // --plan tp=…
  std::uint64_t search_gpus = 0;  // --plan auto --gpus N
  PlanOptions plan;
};

struct Answer {
  KvCache kv;
  ActivationEstimate activations;
  ComputeReport compute;
  std::optional<Plan> plan;
  std::vector<CutRow> cuts;
  PlannedRanks ranks;
  std::vector<WayOut> ways;
  std::vector<Plan> found;  // of a search
  bool searched = false;
  bool feasible() const { return searched ? !found.empty() : !plan || plan->launches(); }
};
Answer answer(const Model& model, const Question& question);
Roofline roofline(const Model& model, const Question& question,
                  const Answer& answer);  // of one decoding step

// Two models' modules side by side, aligned by what they are.
struct DiffRow {
  int depth = 0;
  std::string title;
  std::optional<std::uint64_t> left, right;  // totals; absent: that model has no such module
  std::string left_formula, right_formula;
};
std::vector<DiffRow> diff_rows(const std::vector<Row>& left, const std::vector<Row>& right);

}  // namespace assay
