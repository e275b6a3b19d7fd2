// How a tensor came to hold other values than it should, where that can be told from the values.
#pragma once

#include <string>

#include "cli/check/against.h"
#include "convert/equal.h"
#include "core/model/stored_reader.h"

namespace assay {

// Floats, in whatever form; integers that stand for nothing else are no weights.
bool is_decodable(const LogicalTensor& tensor);

// Both have one shape. Rows at a time.
ValueError value_error(const CheckpointReader& a, const LogicalTensor& in_a, const CheckpointReader& b,
                       const LogicalTensor& in_b, Progress& progress);

// "its grid of scales is stored transposed", "holds the values of layers.2.mlp.experts.5.up_proj.weight",
// "all of it is 2 × what it should be", "12 of 64 rows differ, from row 5 on".
// `error` is that of the two.
std::string explain_fault(const Side& here, const LogicalTensor& tensor, const Side& there,
                          const LogicalTensor& intended, const ValueError& error);

}  // namespace assay
