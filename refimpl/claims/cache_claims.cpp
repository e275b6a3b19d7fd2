#include "refimpl/claims/cache_claims.h"

#include <fmt/format.h>

#include <optional>

#include "core/numeric/largest.h"
#include "core/system/error.h"
#include "refimpl/caches/cache_method.h"
#include "refimpl/caches/method_text.h"
#include "refimpl/caches/stepped_text.h"
#include "refimpl/claims/relative_difference.h"

namespace assay {
namespace {

// Logits behind every step: half of the text at once, as a prompt is, the rest a token at a time.
std::vector<double> read_by(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens,
                            const std::shared_ptr<const CacheMethod>& method) {
  const std::size_t prompt = tokens.size() / 2;
  SteppedText text(model, ops, method, prompt);
  std::vector<double> all = text.read(tokens.first(prompt));
  for (std::size_t next = prompt; next < tokens.size(); ++next) {
    const std::vector<double> logits = text.read(tokens.subspan(next, 1));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

// "h2o:budget=all" → "h2o:budget=57": the same by counting, which goes through the choice itself.
std::optional<std::string> just_enough(const CacheMethodName& method, std::size_t tokens) {
  std::string text(method.everything);
  const std::size_t option = text.find("budget=all"), window = text.find("window=all");
  if (option == text.npos && window == text.npos) return std::nullopt;
  return text.replace(text.find("all"), 3, std::to_string(tokens));
}

}  // namespace

std::vector<Claim> cache_claims(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens,
                                bool exact) {
  std::vector<Claim> claims;
  std::vector<double> full;
  for (const CacheMethodName& name : cache_method_names()) {
    const auto everything = cache_method(name.everything);
    if (!everything->groups().as_ever()) continue;  // another model: grouped_claims
    try {
      require_suitable(*everything, model);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      continue;  // there is nothing to claim
    }
    if (full.empty()) full = read_by(model, ops, tokens, nullptr);
    double error = relative_difference(read_by(model, ops, tokens, everything), full);
    if (const auto enough = just_enough(name, tokens.size()))
      error =
          larger_or_nan(error, relative_difference(read_by(model, ops, tokens, cache_method(*enough)), full));
    claims.push_back({fmt::format("cache_{}", name.name),
                      fmt::format("a cache kept by {} with room for everything ≡ the full one", name.name),
                      "logits, relative to the largest", error, 0, exact});
  }
  return claims;
}

double grouped_difference(const Weights& weights, const ModelOptions& options, Ops& ops, int jobs,
                          std::span<const TokenId> tokens, std::size_t window) {
  const Checkpoint& files = weights.checkpoint();
  Weights again(files.gguf ? files.files.front().path : files.root, jobs);
  LayerGroups groups;
  groups.every = 6;  // as `grouped` has it where nothing is said
  groups.window = window;
  const std::unique_ptr<LanguageModel> grouped = make_model(again.regroup(groups), options);
  const std::unique_ptr<LanguageModel> full = make_model(weights, options);
  return relative_difference(read_by(*grouped, ops, tokens, nullptr), read_by(*full, ops, tokens, nullptr));
}

std::vector<Claim> grouped_claims(const Weights& weights, const ModelOptions& options, Ops& ops, int jobs,
                                  std::span<const TokenId> tokens, bool exact) {
  try {
    const double counted = grouped_difference(weights, options, ops, jobs, tokens, tokens.size());
    const double all = grouped_difference(weights, options, ops, jobs, tokens, kEverything);
    return {{"cache_grouped", "layers grouped, with a window that holds everything ≡ the model as it was",
             "logits, relative to the largest", larger_or_nan(counted, all), 0, exact}};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    return {};  // there is nothing to claim
  }
}

}  // namespace assay
