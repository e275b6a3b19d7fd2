// Sizes of a grid or a block, and places in it.
#pragma once

namespace assay::cuda {

struct Extent3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr unsigned long long count() const { return 1ull * x * y * z; }
};

// A cudaStream_t, where there is none to name; nullptr is the default stream.
using Stream = void*;

}  // namespace assay::cuda
