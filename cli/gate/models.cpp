// A handful of small models, one of each kind of architecture: does the reference compute what transformers
// does, and where do our CPU kernels part from the reference?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "cli/gate/suites.h"
#include "core/system/error.h"
#include "kernels/model_compare/model_compare.h"
#include "kernels/selection/select.h"
#include "refimpl/claims/tensor_values.h"
#include "refimpl/ops/kernel_set.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModels[] = {
    "tinylm",           "models/llama",       "models/gemma2",          "models/gpt-oss", "models/gpt2",
    "models/qwen3-moe", "models/deepseek-v2", "models/deepseek-v3-fp8", "models/kimi-k2"};
constexpr std::size_t kTokens = 24;

double largest_difference(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= largest)) largest = std::fabs(a[i] - b[i]);
  }
  return largest;
}

// Logits in float64 against transformers' in float64, relative to twice what its float32 is off (golden
// files: data/README.md).
GateFigure golden_figure(const std::string& name, const Weights& weights, const fs::path& golden, int jobs) {
  const std::map<std::string, TensorValues> tensors = read_tensor_values(golden);
  const auto values = [&](const std::string& tensor) -> const std::vector<double>& {
    const auto found = tensors.find(tensor);
    if (found == tensors.end()) throw Error::input("has no such tensor").in(golden).tensor(tensor);
    return found->second.values;
  };
  const std::vector<double>&ids = values("tokens"), &truth = values("logits.f64");
  const std::vector<TokenId> tokens(ids.begin(), ids.end());
  const auto ops = reference_kernels().make({Precision::f64}, jobs);
  const std::vector<double> ours = read_text(*make_model(weights, {}), *ops, {.tokens = tokens}, {}).main;
  const double yardstick = 2 * largest_difference(values("logits.f32"), truth);
  GateFigure figure = {.name = name + ": reference against transformers", .word = {}};
  figure.value = largest_difference(ours, truth) / yardstick;
  figure.holds = figure.value <= 1;
  if (!figure.holds) figure.detail = fmt::format("{:.3g} × what float32 explains", figure.value);
  return figure;
}

void add_comparison(const std::string& name, const Weights& weights, int jobs,
                    std::vector<GateFigure>& figures) {
  const auto kernels = [](const char* selection) {
    return [selection](const Arithmetic& arithmetic, int threads) {
      return select_kernels(builtin_kernels(), selection, arithmetic, threads);
    };
  };
  ModelCompareRequest request = {.reference = {&weights, {Precision::f64}, kernels("reference")},
                                 .test = {&weights, {Precision::f32}, kernels("cpu")},
                                 .options = {},
                                 .tokens = {},
                                 .greedy = 0,
                                 .jobs = jobs};
  for (std::size_t i = 0; i < kTokens; ++i)
    request.tokens.push_back(static_cast<TokenId>((7 * i * i + 3 * i + 2) % 90));
  const ModelComparison result = compare_models(request);
  std::string why;
  for (const std::string& reason : result.reasons) why += (why.empty() ? "" : "; ") + reason;
  figures.push_back({.name = name + ": cpu kernels, largest local error of what is allowed",
                     .value = result.largest_ratio(),
                     .word = {},
                     .holds = result.status == CaseStatus::passed,
                     .detail = why});
  figures.push_back({.name = name + ": cpu kernels, first divergence",
                     .drift = Drift::exact,
                     .word = result.first_divergence ? result.taps[*result.first_divergence].name : "none"});
}

}  // namespace

std::vector<GateFigure> gate_models(const fs::path& data, int jobs) {
  std::vector<GateFigure> figures;
  for (const char* model : kModels) {
    if (!fs::exists(data / model)) continue;
    const std::string name = fs::path(model).filename().string();
    try {
      const Weights weights(data / model, jobs);
      const fs::path golden = data / model / "golden/transformers.safetensors";
      if (fs::exists(golden)) figures.push_back(golden_figure(name, weights, golden, jobs));
      add_comparison(name, weights, jobs, figures);
    } catch (const std::exception& error) {  // the other models are judged all the same
      figures.push_back(broken_figure(name + ": the model runs", error));
    }
  }
  return figures;
}

}  // namespace assay
