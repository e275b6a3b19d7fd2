#include "cli/check/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "cli/check/golden.h"
#include "cli/check/value_fault.h"
#include "convert/equal.h"
#include "core/model/stored_reader.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr double kTimesTheMedian = 3;
constexpr std::size_t kEnoughForAMedian = 4;
constexpr double kLeastCosine = 0.9;
constexpr std::size_t kMostNamed = 20;

struct Pair {
  const LogicalTensor* here;
  const LogicalTensor* there;
  ValueError error;
};

std::string forms(const Pair& pair) {
  return form_name(*pair.there) + " to " + form_name(*pair.here);
}

std::vector<Pair> pairs_of(const Side& here, const Side& there, Findings& findings) {
  std::map<std::string_view, const LogicalTensor*> by_name;
  for (const LogicalTensor& tensor : there.stored.tensors) by_name.emplace(tensor.name, &tensor);
  std::vector<Pair> pairs;
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
    else if (is_decodable(tensor) && is_decodable(*other->second))
      pairs.push_back({&tensor, other->second, {}});
    by_name.erase(other);
  }
  for (const auto& [name, tensor] : by_name)
    findings.push_back({.code = "values.missing", .message = "is missing", .tensor = std::string(name)});
  return pairs;
}

// The median error of every pair of formats, over the tensors that have any; none where most have none: then
// nothing was rounded.
std::map<std::string, double> usual_errors(const std::vector<Pair>& pairs) {
  std::map<std::string, std::vector<double>> all;
  std::map<std::string, std::size_t> count;
  for (const Pair& pair : pairs) {
    ++count[forms(pair)];
    if (pair.error.error > 0) all[forms(pair)].push_back(pair.error.relative());
  }
  std::map<std::string, double> usual;
  for (auto& [form, errors] : all) {
    if (errors.size() < kEnoughForAMedian || 2 * errors.size() < count[form]) continue;
    const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), middle, errors.end());
    usual[form] = *middle;
  }
  return usual;
}

bool is_fault(const Pair& pair, const std::map<std::string, double>& usual) {
  if (pair.error.error == 0) return false;
  if (!(pair.error.cosine() >= kLeastCosine)) return true;
  const auto median = usual.find(forms(pair));
  if (median != usual.end()) return pair.error.relative() > kTimesTheMedian * median->second;
  // Of one form on both sides, and nothing was quantized anew: then codes and scales are the same.
  return form_name(*pair.here) == form_name(*pair.there);
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

double ValueError::relative() const {
  return squares > 0 ? std::sqrt(error / squares) : error > 0 ? INFINITY : 0;
}
double ValueError::cosine() const {
  const double norm = std::sqrt(squares) * std::sqrt(own);
  return norm > 0 ? product / norm : squares == own ? 1 : 0;
}

Stage examine_against(const CheckSettings& settings) {
  Stage stage{.name = "values"};
  if (settings.quick) {
    stage.summary = "not read (--quick)";
    return stage;
  }
  compare_configs(settings, stage);
  const Side here(settings.path, settings.common.jobs), there(settings.against, settings.common.jobs);
  std::vector<Pair> pairs = pairs_of(here, there, stage.findings);
  std::uint64_t elements = 0;
  for (const Pair& pair : pairs) elements += pair.here->elements();
  {
    Progress progress(settings.common.progress, "comparing values", elements);
    parallel_for(settings.common.jobs, pairs.size(), [&](std::size_t i) {
      if (!interrupted())
        pairs[i].error = value_error(here.reader, *pairs[i].here, there.reader, *pairs[i].there, progress);
    });
  }
  const auto usual = usual_errors(pairs);
  std::uint64_t equal = 0, faults = 0;
  double largest = 0;
  for (const Pair& pair : pairs) {
    equal += pair.error.error == 0 ? 1 : 0;
    if (!is_fault(pair, usual)) {
      largest = std::max(largest, pair.error.relative());
      continue;
    }
    if (++faults > kMostNamed) continue;
    stage.findings.push_back(
        {.code = "values.tensor",
         .message = fmt::format("is off by {:.2g} of its norm: {}", pair.error.relative(),
                                explain_fault(here, *pair.here, there, *pair.there, pair.error)),
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
