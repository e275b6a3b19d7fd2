// What `assay run --tp …` holds its ranks to: the bytes of weights that a plan says of each.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/rank_grid.h"
#include "refimpl/run_model.h"

namespace assay {

// Of every rank, from config.json and the type that the embedding is stored in; none of a GGUF, whose types are told
// tensor by tensor.
std::vector<std::uint64_t> planned_rank_bytes(const OpenModel& open, const RankGrid& grid);

}  // namespace assay
