#include "refimpl/run_served.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/formats/stream_digest.h"
#include "core/numeric/simd_targets.h"
#include "core/system/text.h"
#include "refimpl/block_store/tiers.h"

namespace assay {
namespace {

constexpr std::size_t kBlockTokens = 16;

// Room for all of them at once.
std::size_t blocks_for(const std::vector<GenerationRequest>& requests, std::size_t context) {
  std::size_t blocks = 1;
  for (const GenerationRequest& request : requests) {
    const std::size_t more = std::min(request.max_new_tokens, context);
    blocks += std::min(context, request.prompt.size() + more) / kBlockTokens + 1;
  }
  return blocks;
}

}  // namespace

std::string run_identity(const OpenModel& open, const RunSettings& settings) {
  std::string identity = fmt::format("assay {}; {}; {}; {}; mla {}; experts {}; variant {}", ASSAY_VERSION,
                                     name(open.arithmetic.precision), open.kernels.name,
                                     settings.isa.empty() ? simd_targets().front() : settings.isa,
                                     settings.mla, settings.experts, settings.variant);
  const Checkpoint& checkpoint = open.weights.checkpoint();
  for (const CheckpointFile& file : checkpoint.files)
    identity += fmt::format("; {}", sha256_of_file(File::open(file.path)).hex());
  if (!checkpoint.config.empty())
    identity += fmt::format("; config {}", sha256_of_file(File::open(checkpoint.config)).hex());
  return identity;
}

TierOptions tier_options(const RunSettings& settings, const BlockFolder::Told& told) {
  TierOptions options{.folder = settings.cache_dir, .told = told};
  if (!settings.cache_bytes.empty()) options.disk_bytes = parse_bytes(settings.cache_bytes);
  if (!settings.cache_memory.empty()) options.memory_bytes = parse_bytes(settings.cache_memory);
  return options;
}

ServedTexts serve_texts(OpenModel& open, const RunSettings& settings,
                        const std::vector<GenerationRequest>& requests, const TextEngine::Listener& listener,
                        const std::function<void(const std::string&)>& note) {
  CacheTiers tiers(tier_options(settings, note));
  ServingOptions options{
      .cache = {.blocks = blocks_for(requests, open.model->context()), .block_tokens = kBlockTokens},
      .identity = run_identity(open, settings)};
  ServedTexts texts;
  ServingParts parts = tiers.parts();
  parts.arrived = [&texts](const std::vector<LayerArrival>& layers) {
    texts.arrivals.steps.push_back(layers);
  };
  ServingEngine engine(*open.model, *open.ops, options, parts);
  engine.listen([&](std::size_t request, std::size_t, TokenId id, std::span<const double> logits) {
    listener(request, id, logits);
  });
  tiers.attend(engine.scheduler());
  for (const GenerationRequest& request : requests) engine.submit({.text = request});
  const auto now = [] { return std::chrono::steady_clock::now(); };
  for (auto start = now();; start = now()) {
    const std::size_t read = engine.counts().prompt_tokens;
    if (!engine.step()) break;
    const double seconds = std::chrono::duration<double>(now() - start).count();
    (engine.counts().prompt_tokens > read ? texts.timing.prefill_seconds : texts.timing.decode_seconds) +=
        seconds;
  }
  engine.keep_all();
  texts.from_memory = tiers.counts().from_memory;
  texts.counts = engine.counts();
  texts.timing.steps = texts.counts.steps;
  texts.timing.prefill_tokens = texts.counts.prompt_tokens;
  texts.timing.decode_tokens = texts.counts.tokens - texts.counts.prompt_tokens;
  for (std::size_t i = 0; i < requests.size(); ++i) texts.made.push_back(engine.result(i));
  return texts;
}

}  // namespace assay
