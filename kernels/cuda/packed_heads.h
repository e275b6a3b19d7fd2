// Matrices of heads and caches, where and as the attention kernels read them.
//
// Float32 rows whose heads begin on 16 bytes are read where they lie; all others are packed on the device
// first.
#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/machine.h"
#include "refimpl/ops/interface.h"

namespace assay::cuda {

struct HeadFormat {
  std::size_t heads = 1, dim = 1;
  unsigned element_bytes = 4;                                             // 4 float32, 2 bfloat16
  std::size_t padded() const { return padded_head(dim, element_bytes); }  // elements of a head
};

struct PackedRows {
  const void* data = nullptr;
  std::size_t stride = 0;  // elements
};
using PackLauncher = void (*)(const LaunchPlan&, const PackArgs&, unsigned element_bytes, Stream);
PackedRows packed_rows(const DeviceLimits& limits, Staging& staging, const Matrix& rows,
                       const HeadFormat& format, PackLauncher pack);

// The rows of a pool as kernels read them.
using PoolReader = std::function<PackedRows(const Matrix& rows)>;

// The caches of several sequences; a pool of pages that they share is read once.
class PackedCaches {
 public:
  // Adds the first `positions` of a sequence. All are to be added before the first is looked for.
  void add(const PagedKvView& cache, std::size_t positions);
  PackedRows find(const PagedKvView& cache, const PoolReader& read);
  // Of the largest pool.
  std::size_t most_rows() const;

 private:
  struct Pool {
    Matrix base;
    std::size_t rows = 0;  // that some sequence uses, and those before them
    PackedRows packed;
  };
  std::map<const float*, Pool> pools_;  // by where the base's first row lies
};

}  // namespace assay::cuda
