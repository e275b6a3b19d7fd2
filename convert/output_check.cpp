#include "convert/output_check.h"

#include <fmt/format.h>

#include <optional>

#include "core/formats/json.h"
#include "core/formats/mistral_params.h"
#include "core/model/expert_layout.h"
#include "core/model/reconcile.h"
#include "core/system/error.h"

namespace assay {
namespace {

struct Described {
  ModelConfig config;
  ModuleTree tree;
};

std::optional<Described> describe_text(const std::string& text, const fs::path& source,
                                       std::string& why_not) {
  try {
    JsonLimits limits;
    limits.duplicate_keys = true;  // as ModelConfig::read has it
    ParsedJson document = parse_json(text, source, limits);
    if (auto mistrals = config_of_mistral_params(document)) document = std::move(*mistrals);
    ModelConfig config = ModelConfig::from_json(std::move(document), source);
    ModuleTree tree = describe(config);
    return Described{std::move(config), std::move(tree)};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    why_not = error.message();
    return std::nullopt;
  }
}

Checkpoint as_planned(const ConversionPlan& plan, const fs::path& root) {
  Checkpoint made;
  made.root = root;
  for (const OutputShard& shard : plan.shards) {
    const auto file = static_cast<std::uint32_t>(made.files.size());
    made.files.push_back({shard.name, root / shard.name, shard.bytes, {}, {}});
    for (const OutputTensor& tensor : shard.tensors)
      made.tensors.push_back({tensor.name, tensor.type, tensor.shape, tensor.offset, tensor.bytes, file});
  }
  return made;
}

bool is_about_missing(const Finding& finding) {
  return finding.code == "model.tensor_missing";
}

}  // namespace

Findings check_output_against_config(const ConversionPlan& plan, const fs::path& root,
                                     const std::string& config, bool partial_source) {
  const Checkpoint made = as_planned(plan, root);
  Findings found;
  std::string why_not;
  const auto described = describe_text(config, made.root / "config.json", why_not);
  if (!described) {
    found.push_back({.severity = Severity::note,
                     .code = "convert.not_reconciled",
                     .message = fmt::format("the output is not held against its config.json: {}", why_not),
                     .file = {},
                     .tensor = {},
                     .offset = {},
                     .remedy = {}});
    return found;
  }
  const ModuleTree tree = in_layout_of(described->tree, made);
  for (Finding& finding : reconcile(tree, described->config, made).findings) {
    // What config.json has no word for is said by RewrittenConfig::note.
    if (finding.severity != Severity::error || finding.code == "model.quantization_undeclared") continue;
    const bool allowed = partial_source && is_about_missing(finding);
    found.push_back(
        {.severity = allowed ? Severity::warning : Severity::error,
         .code = "convert.not_the_model",
         .message =
             fmt::format("the output would not be what its config.json describes: {}", finding.message),
         .file = std::move(finding.file),
         .tensor = std::move(finding.tensor),
         .offset = {},
         .remedy = is_about_missing(finding) && !allowed
                       ? "bring the weights under the names of the architecture; --allow-incomplete accepts "
                         "a part of a model"
                       : std::move(finding.remedy)});
  }
  return found;
}

}  // namespace assay
