// Saved responses of a stranger's engine: what is accepted holds probabilities, and agrees with itself.
// link: assay_kernels
#include "core/formats/logprobs/saved.h"

#include <cmath>

#include "kernels/logprobs/align.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto saved =
      fuzz::accepted([&] { return logprobs::parse_responses(fuzz::as_text(data, size), "fuzz"); });
  if (!saved) return 0;
  fuzz::require(!saved->texts.empty(), "what is read holds texts");
  for (const logprobs::SavedText& text : saved->texts)
    for (const logprobs::SavedToken& token : text.tokens)
      fuzz::require(!token.logprob || *token.logprob <= 0.01, "a log-probability is one of a probability");
  const logprobs::MatchedPairs matched = logprobs::match_responses(*saved, *saved);
  const logprobs::PairFigures figures = logprobs::pair_figures(matched.pairs, 0);
  fuzz::require(figures.max_abs == 0 && figures.beyond == 0 && figures.rank_flips == 0,
                "nothing is apart from itself");
  logprobs::ratio_figures(matched.pairs);
  return 0;
}
