// The same tensors in other files: --max-shard-size.
#pragma once

#include "convert/plan.h"

namespace assay {

// Deals ConversionPlan::shards out anew, in the order of the source, into model-00001-of-0000N.safetensors of
// at most `limit` bytes of tensors each. What belongs to one weight (codes and scales) stays in one file, and
// a weight larger than the limit has a file of its own.
void cut_into_shards(ConversionPlan& plan, std::uint64_t limit);

// Shards that hold nothing any more go, and the others are numbered anew.
void close_gaps(ConversionPlan& plan);

// "model-00002-of-00007.safetensors"; of one file alone "model.safetensors".
std::string numbered_shard(std::string_view stem, std::size_t number, std::size_t count);

}  // namespace assay
