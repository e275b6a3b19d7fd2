#include "refimpl/run_rank_bytes.h"

#include "core/model/rank_weights.h"

namespace assay {

std::vector<std::uint64_t> planned_rank_bytes(const OpenModel& open, const RankGrid& grid) {
  std::vector<std::uint64_t> bytes;
  if (open.weights.checkpoint().gguf) return bytes;
  WeightFormat format = configured_format(open.weights.config());
  const WeightView embedding = open.weights.find({.role = Role::token_embedding});
  if (format.kind == WeightFormat::Kind::plain && embedding && embedding.kind == FormKind::plain)
    format.plain_bytes = info(embedding.type).block_bytes;
  const bool has_mtp = open.model->draft_layers() > 0;
  for (const RankWeights& rank : rank_weights(open.weights.whole_tree(), grid, format, has_mtp))
    bytes.push_back(rank.bytes);
  return bytes;
}

}  // namespace assay
