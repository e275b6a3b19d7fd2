#include "convert/config_rewrite.h"

#include "convert/mtp.h"
#include "core/formats/json.h"
#include "core/formats/mistral_params.h"
#include "core/model/nested_config.h"
#include "core/system/error.h"
#include "core/system/report.h"

namespace assay {
namespace {

constexpr std::uint64_t kLargestConfig = 1 << 20;

IgnoredModules ignored_modules(const ConversionPlan& plan) {
  IgnoredModules modules;
  for (const Work& work : plan.works)
    modules.add(plan.stored.tensors[work.tensor],
                work.action == WorkAction::copy || work.action == WorkAction::cast);
  modules.finish();
  return modules;
}

void set_block(Json& quantization, const Spec& spec) {
  const Json block = {spec.block_rows, spec.block_columns};
  if (quantization.contains("weight_block_size")) quantization["weight_block_size"] = block;
  if (!quantization.contains("config_groups")) return;
  for (auto& group : quantization["config_groups"]) {
    if (!group.contains("weights") || !group["weights"].contains("block_structure")) continue;
    group["weights"]["block_structure"] = block;
    // Activations are scaled in groups as long as a block is wide.
    if (group.contains("input_activations") && group["input_activations"].is_object() &&
        group["input_activations"].value("strategy", "") == "group")
      group["input_activations"]["group_size"] = spec.block_columns;
  }
}

void set_dtype(Json& config, ElementType type) {
  const char* name = type == ElementType::BF16  ? "bfloat16"
                     : type == ElementType::F16 ? "float16"
                                                : "float32";
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (config.contains(key)) config[key] = name;
  }
}

// The document, and the descriptions of a language model inside it.
std::vector<Json*> levels_of(Json& config) {
  std::vector<Json*> levels = {&config};
  for (const auto& [outer, inner, beside] : kLanguageModelNests) {
    if (!config.contains(outer) || !config[outer].is_object()) continue;
    if (!beside.empty() && !config.contains(beside)) continue;
    Json* nest = &config[outer];
    if (!inner.empty()) nest = nest->contains(inner) ? &(*nest)[inner] : nullptr;
    if (nest != nullptr && nest->is_object()) levels.push_back(nest);
  }
  return levels;
}

void set_quantization(Json& level, const Spec& spec) {
  for (const std::string_view key : kQuantizationKeys) {
    if (!level.contains(key) || !level[key].is_object()) continue;
    if (spec.kind == Spec::Kind::reblock)
      set_block(level[key], spec);
    else
      level.erase(key);
  }
}

}  // namespace

RewrittenConfig rewrite_config(const ConversionPlan& plan, const ConvertOptions& options) {
  const fs::path& path = plan.checkpoint.config;
  const std::string text = read_small_file(path, kLargestConfig);
  const ParsedJson checked = parse_json(text, path);  // refuses what the reading below would let pass
  if (!checked.is_object()) throw Error::input("is not a JSON object").in(path);
  Json config = Json::parse(text);
  const Spec& spec = plan.spec;
  RewrittenConfig made;
  const bool is_mistrals = config_of_mistral_params(checked).has_value();
  if (is_mistrals) made.name = "params.json";
  if (is_mistrals && spec.kind != Spec::Kind::keep) config.erase("quantization");
  for (Json* level : levels_of(config)) {
    if (spec.kind != Spec::Kind::keep) set_quantization(*level, spec);
    if (spec.kind == Spec::Kind::cast) set_dtype(*level, spec.type);
  }
  if (options.mtp == Mtp::drop) drop_mtp_from_config(config);
  if (spec.encoder) {
    const IgnoredModules ignored = ignored_modules(plan);
    const Json said = spec.encoder->quantization_config(ignored);
    if (!said.is_null()) config[is_mistrals ? "quantization" : "quantization_config"] = said;
    for (const auto& [name, document] : spec.encoder->files_beside(ignored))
      made.beside.emplace_back(name, dump_json(document) + "\n");
    made.note = spec.encoder->note();
  }
  made.text = dump_json(config) + "\n";
  return made;
}

}  // namespace assay
