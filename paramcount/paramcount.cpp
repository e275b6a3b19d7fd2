#include "paramcount/paramcount.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/gguf.h"
#include "core/formats/mistral_params.h"
#include "core/model/class_and_type.h"
#include "core/model/derive_tree.h"
#include "core/model/expert_layout.h"
#include "core/model/gguf_rules.h"
#include "core/model/open_model.h"
#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {
namespace {

bool is_weight_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".safetensors") || name.ends_with(".gguf") ||
         name.ends_with(".safetensors.index.json");
}

bool holds_weights(const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder / "snapshots", ignored)) return true;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_weight_file(entry.path()) && !entry.path().filename().string().ends_with(".index.json"))
      return true;
  }
  return false;
}

bool wants_checkpoint(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? holds_weights(path) : is_weight_file(path);
}

// Of a folder without weights, or a config.json by itself.
ModelConfig read_config(const fs::path& path) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  const fs::path source = folder ? model_description_in(path) : path;
  if (source.empty()) {
    throw Error::input("no config.json here: nothing says what the tensors are")
        .in(path)
        .remedy("give the config.json, or list the tensors with 'assay inspect'");
  }
  return ModelConfig::read(source);
}

Finding derived_finding(const Model& model) {
  const bool named = !model.checkpoint->config.empty() || model.checkpoint->gguf;
  const std::string why =
      model.checkpoint->gguf && is_written_as_gguf(model.tree.architecture)
          ? fmt::format("GGUFs of the architecture \"{}\" are written here, and not read back",
                        model.tree.architecture)
      : named ? fmt::format("architecture \"{}\" is described nowhere here", model.tree.architecture)
              : "no config.json is here";
  return {Severity::note,
          "model.derived",
          fmt::format("{}: DERIVED from the names and shapes of {} tensors", why,
                      model.checkpoint->tensors.size()),
          {},
          {},
          {},
          "docs/families.md tells how to describe it"};
}

std::uint64_t sum_of(const SpecBytes& bytes) {
  std::uint64_t sum = 0;
  for (const auto& [spec, of_spec] : bytes) sum += of_spec;
  return sum;
}

}  // namespace

Model load_model(const fs::path& path, int jobs) {
  std::optional<Checkpoint> checkpoint;
  if (wants_checkpoint(path)) checkpoint = open_checkpoint(path, jobs);
  const bool weights = checkpoint && !checkpoint->tensors.empty();
  const bool absent = weights && checkpoint->config.empty() && !checkpoint->gguf;
  const bool nameless = weights && !checkpoint->gguf && names_no_architecture(*checkpoint);
  ModelConfig config = absent       ? absent_config(*checkpoint)
                       : nameless   ? nameless_config(*checkpoint)
                       : checkpoint ? read_config(*checkpoint)
                                    : read_config(path);
  const bool derived = weights && !is_described(config);
  ModuleTree tree = derived ? derive_tree(*checkpoint, config) : describe(config);
  std::optional<Finding> stacked;
  if (checkpoint && !derived) {
    const ModuleTree published = tree;
    tree = in_layout_of(std::move(tree), *checkpoint);
    stacked = stacked_unlike_releases(published, tree);
  }
  Model model{
      config.source(), std::move(config), std::move(tree), {}, {}, std::move(checkpoint), {}, {}, {}, {}, {}};
  model.totals = count(model.tree);
  model.format = configured_format(model.config);
  if (auto unlike = class_unlike_type(model.config)) model.findings.push_back(std::move(*unlike));
  if (model.checkpoint) {
    const Findings& of_files = model.checkpoint->findings;
    model.findings.insert(model.findings.end(), of_files.begin(), of_files.end());
    // Pointers instead of weights, or none that can be read: the config alone still has its say.
    if (derived) model.findings.push_back(derived_finding(model));
    if (stacked) model.findings.push_back(std::move(*stacked));
    if (!model.checkpoint->tensors.empty()) {
      model.reconciliation = reconcile(model.tree, model.config, *model.checkpoint);
      const Findings& more = model.reconciliation->findings;
      model.findings.insert(model.findings.end(), more.begin(), more.end());
    }
  }
  const SpecBytes by_format = model.reconciliation ? SpecBytes() : spec_bytes(model.tree, model.format);
  const SpecBytes& bytes = model.reconciliation ? model.reconciliation->bytes_of : by_format;
  model.rows = make_rows(model.tree, bytes);
  model.parts = make_parts(model.tree, bytes);
  model.bytes = model.reconciliation ? model.reconciliation->stored.bytes : sum_of(by_format);
  return model;
}

Roofline roofline(const Model& model, const Question& question, const Answer& answer) {
  return roofline(model.tree, question.plan.format, answer.compute, kv_value_bytes(question.kv_dtype),
                  question.batch, question.machine);
}

Answer answer(const Model& model, const Question& question) {
  Answer result;
  const double value = kv_value_bytes(question.kv_dtype);
  KvOptions kv;
  kv.bytes_per_value = value;
  kv.context = question.context;
  kv.batch = question.batch;
  result.kv = kv_cache(model.tree, kv);
  result.activations =
      activations(model.tree, std::min<std::uint64_t>(8192, question.context), question.batch, 1);
  result.compute = compute(model.tree, question.context);

  PlanOptions options = question.plan;
  options.context = question.context;
  options.batch = question.batch;
  options.kv_bytes_per_value = value;
  options.stale_quantization =
      std::any_of(model.findings.begin(), model.findings.end(),
                  [](const Finding& finding) { return finding.code == "model.quantization_stale"; });
  if (question.search_gpus > 0) {
    result.searched = true;
    result.found = search_plans(model.tree, question.search_gpus, options);
    return result;
  }
  if (!question.layout) return result;
  result.plan = make_plan(model.tree, *question.layout, options);
  result.cuts = cut_table(model.tree, *question.layout, options);
  const bool stored_as_gguf = model.checkpoint && model.checkpoint->gguf;
  result.ranks = ranks_of_plan(model.tree, *result.plan, options, stored_as_gguf);
  if (!result.plan->launches()) result.ways = ways_out(model.tree, *result.plan, options);
  return result;
}

}  // namespace assay
