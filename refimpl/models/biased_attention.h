// Attention whose scores get a bias that no kernel knows: softmax(scale · q·k + bias) · v, head by head in plain loops.
#pragma once

#include <functional>

#include "refimpl/ops/interface.h"

namespace assay {

// Of one head and one sequence: of its `query`-th row in the call, which stands at `position`, and a key at `key` ≤ position.
using ScoreBias = std::function<double(std::size_t query, std::size_t position, std::size_t key)>;
// Asked for once a sequence and head.
using ScoreBiases = std::function<ScoreBias(const SequenceMetadata& sequence, std::size_t head)>;

// [tokens, heads · v_dim]. Of the call's window is minded, of its caps, slopes and sinks none.
Matrix attend_with_bias(const AttentionCall& call, const ScoreBiases& biases, Ops& ops);

}  // namespace assay
