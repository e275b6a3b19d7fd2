#include "refimpl/engine/speculate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "refimpl/speculation/layer_drafter.h"

namespace assay {
namespace {

// Room for one text, and prompts read as elsewhere.
SchedulerOptions room_for(const LanguageModel& model, const GenerationRequest& request, std::size_t guesses) {
  constexpr std::size_t kBlockTokens = 16, kChunk = 512;
  const std::size_t context = model.context(), prompt = request.prompt.size();
  const std::size_t tokens = prompt + std::min(request.max_new_tokens, context - std::min(context, prompt));
  SchedulerOptions options = {.blocks = (tokens + guesses) / kBlockTokens + 1, .block_tokens = kBlockTokens};
  options.chunk = options.tokens_a_step = kChunk + guesses;
  options.prefix_cache = false;
  return options;
}

}  // namespace

Speculation speculate(const LanguageModel& model, Ops& ops, const GenerationRequest& request,
                      const std::function<void(TokenId, std::span<const double>)>& listener,
                      SpeculationOptions options) {
  if (!options.source) {
    options.source = std::make_shared<LayerDrafts>(model, ops);
    options.shape = {1};
  }
  check_prompt(request.prompt, model);
  if (request.max_new_tokens == 0) return {};
  ServingEngine engine(
      model, ops, {.cache = room_for(model, request, guesses_of(options.shape)), .speculation = options});
  engine.listen([&](std::size_t, std::size_t, TokenId id, std::span<const double> logits) {
    if (listener) listener(id, logits);
  });
  const std::size_t number = engine.submit({.text = request});
  while (engine.step()) {
  }
  const ServingCounts& counts = engine.counts();
  return {engine.result(number), counts, counts.guessed, counts.accepted, counts.steps};
}

double expected_tokens(double acceptance, std::size_t guesses) {
  const auto n = static_cast<double>(guesses + 1);
  return acceptance == 1 ? n : (1 - std::pow(acceptance, n)) / (1 - acceptance);
}

double acceptance(const ServingCounts& counts) {
  const auto sum = [](const std::vector<std::size_t>& of) {
    return static_cast<double>(std::accumulate(of.begin(), of.end(), std::size_t{0}));
  };
  return counts.tried.empty() ? 0 : sum(counts.right) / sum(counts.tried);
}

}  // namespace assay
