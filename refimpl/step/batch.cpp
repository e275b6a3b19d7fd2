#include "refimpl/step/batch.h"

#include <algorithm>

#include "core/system/threads.h"

namespace assay {

void Batch::add(std::span<const TokenId> more, SequenceCache& cache) {
  sequences.push_back({tokens.size(), more.size(), &cache});
  const std::size_t first = cache.next_place();
  for (std::size_t i = 0; i < more.size(); ++i) {
    tokens.push_back(more[i]);
    positions.push_back(first + i);
  }
}

bool Batch::renumbered() const {
  return std::any_of(sequences.begin(), sequences.end(),
                     [](const Sequence& s) { return s.cache->renumbers(); });
}

void Batch::go_on() const {
  if (may_stop && interrupted()) throw Interrupted{};
}

}  // namespace assay
