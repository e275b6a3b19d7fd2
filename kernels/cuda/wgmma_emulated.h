// wgmma for the emulator. A product is computed when it is waited for, not when it is begun: whatever is
// changed too early, in shared memory or in D, shows in the result. D is NaN until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/emulator.h"

namespace assay::cuda::emulator {

struct WgmmaProduct {
  float* d;       // of this thread
  unsigned sums;  // of it: half as many as B has columns
  std::uint64_t a, b;
  bool down;  // B's rows are the terms
  bool added;
  std::size_t element_bytes;
  double (*value)(const std::byte*);
};

// A thread's products; all threads of a warp begin the same ones at the same time.
class WgmmaQueue {
 public:
  void begin(const WgmmaProduct& product, Where where);
  void commit();
  void wait(std::size_t groups_left, Where where);

 private:
  struct Begun {
    WgmmaProduct product;
    float before[64];  // D as it was given away
  };
  std::vector<Begun> open_;
  std::vector<std::vector<Begun>> groups_;
};

}  // namespace assay::cuda::emulator
