// Smaller caches (docs/caches.md) on a small Llama: kept and read as their authors' rules say, planted faults named, room for
// everything the full cache bit for bit; and what each loses of a text.
#include <fmt/format.h>

#include <optional>

#include "cli/gate/suites.h"
#include "core/system/error.h"
#include "kernels/cache_compare/cache_compare.h"
#include "kernels/selection/select.h"
#include "refimpl/caches/grouped_model.h"
#include "refimpl/claims/cache_claims.h"
#include "refimpl/claims/cache_faults.h"
#include "refimpl/ops/kernel_set.h"

namespace assay {
namespace {

constexpr std::size_t kRead = 24, kInAll = 96;
constexpr const char* kMethods[] = {"fp8",
                                    "fp8:scale=head",
                                    "int8",
                                    "kivi4:group=8,residual=16",
                                    "kivi2:group=8,residual=16",
                                    "streaming:sinks=2,window=12",
                                    "h2o:budget=16",
                                    "snapkv:budget=16",
                                    "pyramidkv:budget=16,beta=4",
                                    "grouped:every=3,window=9"};

GateFigure said(const std::string& name, bool holds, const std::string& right, const std::string& wrong) {
  GateFigure figure = {.name = "llama, " + name, .drift = Drift::exact, .word = holds ? right : wrong};
  figure.holds = holds;
  if (!holds) figure.detail = wrong;
  return figure;
}

void add_rules(const std::string& model, const std::filesystem::path& truth, int jobs,
               std::vector<GateFigure>& figures) {
  CacheRuleChecks checks(model, truth, jobs);
  for (const RuleVerdict& rule : checks.as_it_is())
    figures.push_back(said(rule.of, rule.found.holds(), "as its rule", rule.found.wrong()));
  for (const PlantedCacheFault& planted : checks.planted())
    figures.push_back(said(fmt::format("planted in {}: {}", planted.fault.of, planted.fault.what),
                           !planted.seen.empty(), "caught", "missed"));
}

void add_claims(const Weights& weights, const std::vector<TokenId>& tokens, int jobs,
                std::vector<GateFigure>& figures) {
  const std::unique_ptr<LanguageModel> model = make_model(weights, {});
  for (const char* kernels : {"reference", "cpu-invariant"}) {
    const auto ops = select_kernels(builtin_kernels(), kernels, {Precision::f32}, jobs);
    for (const Claim& claim : cache_claims(*model, *ops, tokens, true))
      figures.push_back(said(fmt::format("{}: {}", kernels, claim.name), claim.holds(), "bit for bit",
                             fmt::format("{:.3g}", claim.error)));
    for (const Claim& claim : grouped_claims(weights, {}, *ops, jobs, tokens, true))
      figures.push_back(said(fmt::format("{}: {}", kernels, claim.name), claim.holds(), "bit for bit",
                             fmt::format("{:.3g}", claim.error)));
  }
  const auto ops = reference_kernels().make({Precision::f32}, jobs);
  const double short_of = grouped_difference(weights, {}, *ops, jobs, tokens, tokens.size() - 1);
  figures.push_back(said("planted in cache_grouped: a window one token short of everything", !(short_of <= 0),
                         "caught", "missed"));
}

// In float64, whose sums move no digit that is told.
void add_losses(const std::string& path, const std::vector<TokenId>& tokens, int jobs,
                std::vector<GateFigure>& figures) {
  const auto ops = reference_kernels().make({Precision::f64}, jobs);
  const Weights weights(path, jobs);
  const std::unique_ptr<LanguageModel> model = make_model(weights, {});
  for (const char* name : kMethods) {
    CachedModel cached = {cache_method(name), model.get()};
    std::optional<GroupedModel> grouped;
    if (!cached.method->groups().as_ever())
      cached.model = &grouped.emplace(path, jobs, cached.method->groups()).model();
    const CacheReport report = compare_caches({*model, *ops, {cached}}, {tokens}, kRead).front();
    figures.push_back({.name = fmt::format("llama, {}: bytes, KL", name),
                       .drift = Drift::exact,
                       .word = fmt::format("{:.1f} bytes a token, {:.3g} nats", report.bytes_a_token(),
                                           report.logits.kl_mean)});
  }
}

}  // namespace

std::vector<GateFigure> gate_caches(const std::filesystem::path& data, int jobs) {
  std::vector<GateFigure> figures;
  const std::string path = (data / "models/llama").string();
  if (!std::filesystem::exists(path)) return figures;
  const Weights weights(path, jobs);
  const std::size_t vocabulary = make_model(weights, {})->vocabulary();
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < kInAll; ++i)
    tokens.push_back(static_cast<TokenId>((7 * i * i + 3 * i + 2) % vocabulary));
  const auto add = [&](const char* what, const auto& part) {
    try {
      part();
    } catch (const std::exception& error) {  // the other parts are judged all the same
      figures.push_back(broken_figure(fmt::format("llama: {}", what), error));
    }
  };
  const std::filesystem::path truth = data / "fixtures/caches/llama.safetensors";
  if (std::filesystem::exists(truth)) add("authors' rules", [&] { add_rules(path, truth, jobs, figures); });
  add("claims", [&] { add_claims(weights, tokens, jobs, figures); });
  add("losses", [&] { add_losses(path, tokens, jobs, figures); });
  return figures;
}

}  // namespace assay
