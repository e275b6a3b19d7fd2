// How a tensor came to hold other values than it should, where that can be told from the values.
#pragma once

#include <string>

#include "convert/equal.h"
#include "core/model/value_error.h"

namespace assay {

// "its grid of scales is stored transposed", "holds the values of layers.2.mlp.experts.5.up_proj.weight",
// "all of it is 2 × what it should be", "12 of 64 rows differ, from row 5 on".
// `error` is that of the two.
std::string explain_fault(const Side& here, const LogicalTensor& tensor, const Side& there,
                          const LogicalTensor& intended, const ValueError& error);

}  // namespace assay
