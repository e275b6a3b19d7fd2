#include "refimpl/step/batch.h"

#include "core/system/threads.h"

namespace assay {

void Batch::add(std::span<const TokenId> more, SequenceCache& cache) {
  sequences.push_back({tokens.size(), more.size(), &cache});
  for (std::size_t i = 0; i < more.size(); ++i) {
    tokens.push_back(more[i]);
    positions.push_back(cache.length() + i);
  }
}

void Batch::go_on() const {
  if (may_stop && interrupted()) throw Interrupted{};
}

}  // namespace assay
