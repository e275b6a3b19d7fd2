// Activations and caches as the attention kernels read them: heads that each begin on 16 bytes, in the
// element type of the tensor cores.
//
// What lies at a place that no position has stays NaN: a kernel that reads it shows.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/machine.h"
#include "refimpl/ops/interface.h"

namespace assay::cuda {

struct HeadFormat {
  std::size_t heads = 1, dim = 1;
  unsigned element_bytes = 4;                              // 4 float32, 2 bfloat16
  std::size_t padded() const;                              // elements of a head
  std::size_t stride() const { return heads * padded(); }  // of a row
};

// Rows of memory, all bits 1 (NaN in either type) until they are filled.
class PackedHeads {
 public:
  PackedHeads(const HeadFormat& format, std::size_t rows);
  // Row `row` becomes the heads that lie on end at `from`, with zeros behind each.
  void fill(std::size_t row, const float* from);
  const void* data() const { return memory_.data(); }
  std::size_t bytes() const { return memory_.size() * sizeof(Vector); }

 private:
  struct alignas(16) Vector {
    std::byte bytes[16];
  };
  HeadFormat format_;
  std::vector<Vector> memory_;
};

// The caches of several sequences; those that share a pool of pages are packed once.
class PackedCaches {
 public:
  PackedCaches(const HeadFormat& format, Staging& staging) : format_(format), staging_(staging) {}
  // Adds the first `positions` of a sequence; how often before stage(), which copies.
  void add(const CacheRows& cache, std::size_t positions);
  // Where the cache lies on the device.
  const void* stage(const CacheRows& cache);

 private:
  struct Pool {
    std::size_t rows = 0;
    std::vector<std::pair<const CacheRows*, std::size_t>> sequences;
    std::unique_ptr<PackedHeads> packed;
  };
  HeadFormat format_;
  Staging& staging_;
  std::map<const float*, Pool> pools_;  // by where the base's first row lies
};

}  // namespace assay::cuda
