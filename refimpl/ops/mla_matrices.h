// One head's matrices of latent attention, whichever way a checkpoint keeps them.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

// W_k of a head as what takes [tokens, nope] to [tokens, kv_rank], or, not absorbed, the other way.
WeightView mla_key_matrix(const MlaCall& call, std::size_t head, bool absorbed);
// W_v of a head: [v, kv_rank].
WeightView mla_value_matrix(const MlaCall& call, std::size_t head, bool absorbed);

// The call as attention over heads; `sinks`: a score a head that takes its share and gives no value, or none.
Matrix mla_by_attention(Ops& ops, const MlaCall& call, const WeightView& sinks = {});

}  // namespace assay
