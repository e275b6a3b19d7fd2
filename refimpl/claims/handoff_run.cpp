#include "refimpl/claims/handoff_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <utility>

#include "core/system/error.h"

namespace assay {
namespace {

ServingOptions decoder_options(const ServingRequest& request, const HandedDecoder& decoder) {
  ServingOptions options;
  const std::size_t tokens = request.text.prompt.size() + request.text.max_new_tokens;
  options.cache.block_tokens = decoder.block_tokens;
  options.cache.blocks = (tokens + guesses_of(decoder.speculation.shape)) / decoder.block_tokens + 2;
  options.speculation = decoder.speculation;
  options.poison = true;
  return options;
}

// The text of an engine that has it; its number is 0.
void write_out(ServingEngine& engine, HandedRun& run) {
  while (engine.step()) {
  }
  run.made = engine.result(0);
  run.counts = engine.counts();
  for (const auto& pool : engine.scheduler().pools()) {
    for (std::size_t b = 0; b < pool->size(); ++b)
      run.held += pool->holders(static_cast<BlockId>(b)) > 0 ? 1 : 0;
  }
}

ServingEngine::Listener listener_to(HandedRun& run) {
  return [&run](std::size_t, std::size_t, TokenId, std::span<const double> row) {
    run.rows.emplace_back(row.begin(), row.end());
  };
}

}  // namespace

HandedRun hand_over_and_write(const HandoffModel& with, const ServingRequest& request,
                              const HandoffOptions& options, const HandedDecoder& decoder,
                              const HandoffMade& made) {
  HandedRun run;
  PartQueue queue;
  try {
    run.sent = hand_over(with, request.text, options, queue, made);
    queue.end();
  } catch (const Error& error) {
    run.refused = error.line();
    return run;
  }
  take_and_write(with, {&queue}, request, decoder, made, run);
  return run;
}

void take_and_write(const HandoffModel& with, const std::vector<PartSource*>& sources,
                    const ServingRequest& request, const HandedDecoder& decoder, const HandoffMade& made,
                    HandedRun& run) {
  try {
    Takeover taken(with, sources, made);
    taken.read(decoder.block_tokens);
    ServingEngine engine(with.model, with.ops, decoder_options(request, decoder), decoder.parts);
    engine.listen(listener_to(run));
    engine.watch_plans([&](const StepPlan& plan) { taken.check(engine.storage(), plan); });
    const std::size_t number = engine.take_over(request, taken.text(decoder.block_tokens));
    if (decoder.cancel) {
      engine.step();
      engine.cancel(number);
    }
    write_out(engine, run);
    run.checked = taken.checked();
  } catch (const Error& error) {
    run.refused = error.line();
  }
}

HandedRun write_uncut(const HandoffModel& with, const ServingRequest& request, const HandedDecoder& decoder) {
  HandedRun run;
  ServingEngine engine(with.model, with.ops, decoder_options(request, decoder));
  engine.listen(listener_to(run));
  engine.submit(request);
  write_out(engine, run);
  return run;
}

std::string difference(const HandedRun& uncut, const HandedRun& handed) {
  if (!handed.refused.empty()) return handed.refused;
  if (handed.made.ids != uncut.made.ids)
    return fmt::format("tokens {} and uncut {}", fmt::join(handed.made.ids, " "),
                       fmt::join(uncut.made.ids, " "));
  if (handed.made.finish_reason != uncut.made.finish_reason) return "it ended otherwise";
  for (std::size_t i = 0; i < uncut.rows.size(); ++i) {
    const std::vector<double>&a = uncut.rows[i], &b = handed.rows.at(i);
    if (b.empty() && i == 0) continue;
    if (a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) != 0)
      return fmt::format("logits of token {} differ from those uncut", i);
  }
  if (handed.held > 0) return fmt::format("at the end {} blocks are held", handed.held);
  return {};
}

}  // namespace assay
