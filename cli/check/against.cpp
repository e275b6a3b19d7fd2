#include "cli/check/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/check/golden.h"
#include "cli/check/value_fault.h"
#include "convert/equal.h"
#include "core/model/value_judge.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

// What only one side has, or has in another shape.
void tell_unpaired(const Side& here, const Side& there, Findings& findings) {
  std::map<std::string_view, const LogicalTensor*> by_name;
  for (const LogicalTensor& tensor : there.stored.tensors) by_name.emplace(tensor.name, &tensor);
  for (const LogicalTensor& tensor : here.stored.tensors) {
    const auto other = by_name.find(tensor.name);
    if (other == by_name.end()) {
      findings.push_back({.severity = Severity::warning,
                          .code = "values.extra",
                          .message = "is not in the other checkpoint",
                          .tensor = tensor.name});
      continue;
    }
    if (tensor.shape != other->second->shape)
      findings.push_back({.code = "values.shape",
                          .message = "has another shape than in the other checkpoint",
                          .tensor = tensor.name});
    by_name.erase(other);
  }
  for (const auto& [name, tensor] : by_name)
    findings.push_back({.code = "values.missing", .message = "is missing", .tensor = std::string(name)});
}

void compare_configs(const CheckSettings& settings, Stage& stage) {
  ParsedJson here = read_config_document(settings.path, settings.common.jobs);
  ParsedJson there = read_config_document(settings.against, settings.common.jobs);
  if (!here.is_object() || !there.is_object()) return;
  for (ParsedJson* config : {&here, &there}) config->erase("quantization_config");  // identity's matter
  for (std::string& difference : config_differences(here, there))
    stage.findings.push_back({.code = "values.config",
                              .message = std::move(difference),
                              .file = "config.json",
                              .remedy = "bring the config.json that belongs to these weights"});
}

}  // namespace

Stage examine_against(const CheckSettings& settings) {
  Stage stage{.name = "values"};
  if (settings.quick) {
    stage.summary = "not read (--quick)";
    return stage;
  }
  compare_configs(settings, stage);
  const Side here(settings.path, settings.common.jobs), there(settings.against, settings.common.jobs);
  tell_unpaired(here, there, stage.findings);
  std::vector<ValuePair> pairs = pairs_by_name(here.stored.tensors, there.stored.tensors);
  compare_pairs(here.reader, there.reader, pairs, settings.common.jobs, settings.common.progress);
  const ValueJudge judge(pairs);
  std::uint64_t equal = 0, faults = 0;
  double largest = 0;
  for (const ValuePair& pair : pairs) {
    const ValueError& error = pair.values.whole;
    equal += error.error == 0 ? 1 : 0;
    const std::vector<PartError> parts = judge.parts_off(pair);
    const bool whole = judge.whole_is_off(pair);
    if (!whole) largest = std::max(largest, error.relative());
    if ((!whole && parts.empty()) || ++faults > kMostNamed) continue;
    const bool local = !whole || is_local(pair, parts);
    stage.findings.push_back(
        {.code = local ? "values.part" : "values.tensor",
         .message = local ? describe_parts(pair, parts)
                          : fmt::format("is off by {:.2g} of its norm: {}", error.relative(),
                                        explain_fault(here, *pair.here, there, *pair.there, error)),
         .tensor = pair.here->name});
  }
  if (faults > kMostNamed)
    stage.findings.push_back(
        {.code = "values.more", .message = fmt::format("and {} tensors more are off", faults - kMostNamed)});
  stage.status = pairs.empty() ? StageStatus::unproven : StageStatus::passed;
  stage.summary = pairs.empty() ? "no tensor has the same name in both"
                                : fmt::format(
                                      "{} of {} tensors decode to equal values, the others within {:.2g} of "
                                      "their norm, as their formats round",
                                      equal, pairs.size(), largest);
  if (equal == pairs.size() && !pairs.empty())
    stage.summary = fmt::format("all {} tensors decode to equal values", pairs.size());
  stage.detail = {{"tensors", pairs.size()}, {"equal", equal}, {"faults", faults}};
  settle(stage);
  return stage;
}

}  // namespace assay
