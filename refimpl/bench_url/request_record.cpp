#include "refimpl/bench_url/request_record.h"

namespace assay {

std::optional<std::size_t> RequestRecord::told_by_chunks() const {
  if (chunks.empty()) return std::nullopt;
  std::size_t sum = 0;
  for (const ChunkArrival& chunk : chunks) {
    if (!chunk.tokens) return std::nullopt;
    sum += *chunk.tokens;
  }
  return sum;
}

std::size_t RequestRecord::output_tokens() const {
  if (usage) return usage->completion_tokens;
  return told_by_chunks().value_or(chunks.size());
}

}  // namespace assay
