// How much attention keys get: what some methods of keeping a cache small go by (H2O, arXiv 2306.14048; SnapKV,
// arXiv 2404.14469). Engines that attend in one pass never have these numbers; here they are computed beside the call,
// in the reference's arithmetic, whatever kernel attends.
#pragma once

#include <cstddef>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

// Of a query and key head's product: cap(scale · product) + slope · key, rounded where the arithmetic does.
double attention_score(const AttentionCall& call, const Arithmetic& arithmetic, double product, double slope,
                       std::size_t key);

// [kv_heads][span.keys]: Σ softmax(score) over the queries `from` … of the span and the query heads that share a key
// head. `span` is one of the call's. With the layer's mask, window, cap, slopes and sinks.
std::vector<std::vector<double>> attention_mass(Ops& ops, const AttentionCall& call,
                                                const SequenceMetadata& span, std::size_t from);

}  // namespace assay
