// A logical tensor that no checkpoint stores as such: rows of others, put together as a DerivedTensor says.
// It is read like any other (StoredReader), so that what works on weights need not know.
#pragma once

#include "core/model/derived_tensor.h"

namespace assay {

struct ComposedTensor {
  DerivedTensor made;
  std::shared_ptr<const StoredTensors> sources;  // what made.pieces count in
};

}  // namespace assay
