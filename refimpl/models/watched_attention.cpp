#include "refimpl/models/watched_attention.h"

#include "core/system/error.h"
#include "refimpl/ops/attention_mass.h"

namespace assay {

void tell_attention(const AttentionCall& call, const Batch& batch, std::size_t layer, Ops& ops) {
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Batch::Sequence& s = batch.sequences[i];
    LayerPolicy* policy = s.cache->policy(layer);
    const std::size_t from = policy == nullptr ? s.count : policy->watched_from(s.count);
    if (from >= s.count) continue;
    if (call.sequences.size() != batch.sequences.size())
      throw Error::internal("attention in pieces is not told to a cache's policy");
    policy->seen(attention_mass(ops, call, call.sequences[i], from));
  }
}

}  // namespace assay
