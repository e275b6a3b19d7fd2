#include "kernels/cache_compare/cache_compare.h"

#include "core/system/threads.h"
#include "refimpl/caches/cache_bytes.h"
#include "refimpl/caches/stepped_text.h"

namespace assay {

std::vector<CacheReport> compare_caches(const CacheComparison& c,
                                        const std::vector<std::vector<TokenId>>& texts, std::size_t prompt) {
  std::vector<CacheReport> reports(c.methods.size());
  std::vector<LogitsTally> tallies(c.methods.size());
  for (const std::vector<TokenId>& text : texts) {
    if (text.size() < prompt + 2) continue;
    const std::span<const TokenId> tokens(text);
    SteppedText full(c.model, c.ops, nullptr, prompt);
    std::vector<SteppedText> kept;
    for (const CachedModel& each : c.methods) kept.emplace_back(*each.model, c.ops, each.method, prompt);
    full.read(tokens.first(prompt));
    for (SteppedText& each : kept) each.read(tokens.first(prompt));
    if (c.read) c.read(prompt);
    for (std::size_t at = prompt; at + 1 < text.size() && !interrupted(); ++at) {
      const std::vector<double> truth = full.read(tokens.subspan(at, 1));
      for (std::size_t m = 0; m < kept.size(); ++m)
        tallies[m].add(truth, kept[m].read(tokens.subspan(at, 1)), text[at + 1]);
      if (c.read) c.read(1);
    }
    for (std::size_t m = 0; m < kept.size(); ++m) {
      reports[m].bytes += cache_bytes(kept[m].cache(), c.methods[m].model->cache_widths()).held;
      reports[m].bytes_in_full += cache_bytes(full.cache(), c.model.cache_widths()).full;
      reports[m].tokens += kept[m].cache().length();
    }
  }
  for (std::size_t m = 0; m < reports.size(); ++m) reports[m].logits = tallies[m].report();
  return reports;
}

}  // namespace assay
