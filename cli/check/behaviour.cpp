#include "cli/check/behaviour.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/model/module_tree.h"
#include "core/numeric/largest.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/harness/measure.h"
#include "refimpl/engine/engine.h"
#include "refimpl/run_model.h"
#include "refimpl/run_perplexity.h"

namespace assay {
namespace {

constexpr std::string_view kText =
    "The bridge was built of stone in the year the river froze, and the people of both towns walked across "
    "it.";
constexpr std::size_t kMostTokens = 32, kLeastTokens = 4;
// The reference computes about so much on one core; a pass that would take longer than this is skipped.
constexpr double kReferenceFlops = 5e8, kMostSeconds = 60;

RunSettings run_settings(const CheckSettings& settings, std::string precision, std::string kernels) {
  RunSettings run;
  run.common = settings.common;
  run.model = settings.path;
  run.precision = std::move(precision);
  run.kernels = std::move(kernels);
  run.variant = settings.variant;
  run.select = settings.select;
  return run;
}

double seconds_of(const OpenModel& model, std::size_t tokens, int jobs) {
  const double flops =
      2.0 * static_cast<double>(count(model.weights.tree()).active) * static_cast<double>(tokens);
  return 2 * flops / (kReferenceFlops * jobs);
}

// A sentence where there is a tokenizer, else ids spread over the vocabulary.
std::vector<TokenId> own_tokens(OpenModel& model) {
  std::vector<TokenId> tokens;
  try {
    tokens = model.tokenizer().encode(std::string(kText));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    for (std::size_t i = 0; i < kMostTokens; ++i)
      tokens.push_back(static_cast<TokenId>((i * 7919 + 13) % model.model->vocabulary()));
  }
  tokens.resize(std::min({tokens.size(), kMostTokens, model.model->context()}));
  return tokens;
}

std::vector<double> last_logits(OpenModel& model, const std::vector<TokenId>& tokens) {
  std::vector<double> last;
  TextEngine(*model.model, *model.ops).score(tokens, [&](std::size_t, std::span<const double> logits) {
    last.assign(logits.begin(), logits.end());
  });
  return last;
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = larger_or_nan(largest, std::abs(a[i] - b[i]));
  return largest;
}

// The longest row of products in the model, of which sums are made.
std::uint64_t longest_sum(const ModuleTree& tree) {
  std::uint64_t longest = 1;
  for_each_tensor(tree, [&](const std::string&, const TensorSpec& spec, const TensorIndices&) {
    if (spec.quantizable && !spec.shape.empty())
      longest = std::max(longest, spec.input_major ? spec.shape[spec.shape.size() - 2] : spec.shape.back());
  });
  return longest;
}

class Behaviour {
 public:
  Behaviour(const CheckSettings& settings, const std::optional<Golden>& golden)
      : settings_(settings),
        golden_(golden),
        exact_(settings.path, run_settings(settings, "f64", "reference")) {}

  BehaviourResult run() {
    choose_tokens();
    if (!result_.tokens.empty()) compare();
    if (!settings_.text.empty()) read_text();
    settle(result_.stage);
    return std::move(result_);
  }

 private:
  bool recorded() const { return golden_ && !golden_->tokens.empty(); }

  void choose_tokens() {
    std::vector<TokenId> tokens = recorded() ? golden_->tokens : own_tokens(exact_);
    check_tokens(tokens, *exact_.model);
    const auto allowed =
        static_cast<std::size_t>(kMostSeconds / std::max(1e-9, seconds_of(exact_, 1, settings_.common.jobs)));
    if (!settings_.run_large && !recorded() && tokens.size() > allowed)
      tokens.resize(std::max(allowed, kLeastTokens));
    const double seconds = seconds_of(exact_, tokens.size(), settings_.common.jobs);
    if (!settings_.run_large && seconds > kMostSeconds) {
      result_.stage.summary = fmt::format("the reference would take about {}; ask for it with --run-large",
                                          human_duration(seconds));
      return;
    }
    result_.tokens = std::move(tokens);
  }

  void compare() {
    OpenModel rounded(settings_.path, run_settings(settings_, "f32", "reference"));
    OpenModel kernels(settings_.path, run_settings(settings_, "f32", settings_.kernels));
    const std::vector<double> truth = last_logits(exact_, result_.tokens);
    const double e32 = largest_difference(last_logits(rounded, result_.tokens), truth);
    const double error = largest_difference(last_logits(kernels, result_.tokens), truth);
    const double allowed = accumulation_factor(longest_sum(exact_.weights.tree())) * e32;
    if (interrupted()) return;
    result_.last_logits = truth;
    Stage& stage = result_.stage;
    stage.status = StageStatus::passed;
    stage.summary = fmt::format("{} tokens; {} kernels' logits within {:.2g} of float64's, {:.2g} allowed",
                                result_.tokens.size(), settings_.kernels, error, allowed);
    stage.detail = {{"tokens", result_.tokens.size()}, {"error", error}, {"allowed", allowed}};
    if (!std::all_of(truth.begin(), truth.end(), [](double x) { return std::isfinite(x); }))
      say("behaviour.nonfinite", "the model's logits are not finite");
    else if (!(error <= allowed))
      say("behaviour.kernels",
          fmt::format("the {} kernels' logits are off by {:.3g}, and rounding explains {:.3g}",
                      settings_.kernels, error, allowed),
          "see where with 'assay compare model'");
    if (recorded()) compare_with_record(truth, allowed);
  }

  void compare_with_record(const std::vector<double>& truth, double allowed) {
    double off = 0;
    for (const auto& [id, logit] : golden_->logits) {
      if (id >= truth.size())
        return say("behaviour.vocabulary", "the record names tokens this model does not have");
      off = larger_or_nan(off, std::abs(truth[id] - logit));
    }
    result_.stage.summary += fmt::format("; within {:.2g} of the record", off);
    result_.stage.detail["recorded_difference"] = off;
    if (settings_.reencoded) return compare_choice(truth);
    if (!(off <= allowed))
      say("behaviour.golden",
          fmt::format("logits after the recorded prompt are off by {:.3g}; rounding explains {:.3g}", off,
                      allowed),
          "weights, config or code are not those of the record");
  }

  // Of a model in another form than the recorded one: the same token, or one the record holds nearly as
  // likely.
  void compare_choice(const std::vector<double>& truth) {
    const auto best = std::max_element(golden_->logits.begin(), golden_->logits.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto choice = static_cast<TokenId>(std::max_element(truth.begin(), truth.end()) - truth.begin());
    if (best != golden_->logits.end() && choice != best->first)
      say("behaviour.choice", fmt::format("the likeliest token after the recorded prompt is {}, and was {}",
                                          choice, best->first));
  }

  void read_text() {
    OpenModel kernels(settings_.path, run_settings(settings_, "f32", settings_.kernels));
    const TextLoss loss = measure_loss(kernels, nullptr, settings_.text);
    const double most = settings_.most_perplexity > 0 ? settings_.most_perplexity
                                                      : static_cast<double>(kernels.model->vocabulary());
    Stage& stage = result_.stage;
    if (stage.status == StageStatus::skipped) stage.status = StageStatus::passed;
    stage.summary += fmt::format("{}perplexity {:.4g} over {} tokens", stage.summary.empty() ? "" : "; ",
                                 loss.perplexity(), loss.tokens);
    stage.detail["perplexity"] = loss.perplexity();
    if (!(loss.perplexity() <= most))
      say("behaviour.perplexity",
          fmt::format("perplexity {:.4g} is above {:.4g}{}", loss.perplexity(), most,
                      settings_.most_perplexity > 0 ? "" : ", which guessing reaches"));
  }

  void say(const char* code, std::string message, std::string remedy = {}) {
    result_.stage.findings.push_back(
        {.code = code, .message = std::move(message), .remedy = std::move(remedy)});
  }

  const CheckSettings& settings_;
  const std::optional<Golden>& golden_;
  OpenModel exact_;
  BehaviourResult result_{.stage = {.name = "behaviour"}};
};

}  // namespace

BehaviourResult examine_behaviour(const CheckSettings& settings, const std::optional<Golden>& golden) {
  BehaviourResult skipped{.stage = {.name = "behaviour"}};
  if (settings.quick) {
    skipped.stage.summary = "not computed (--quick)";
    return skipped;
  }
  try {
    return Behaviour(settings, golden).run();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    skipped.stage.status = StageStatus::unproven;
    skipped.stage.summary = "could not be run: " + error.line();
    return skipped;
  }
}

}  // namespace assay
