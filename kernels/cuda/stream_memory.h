// Memory that kernels of one stream use between an operation's beginning and its end. What one operation gives back
// the next one gets without a word to the driver, since kernels of a stream follow each other.
//
//   const std::size_t mine = memory.begin();
//   void* scratch = memory.allocate(bytes);
//   const void* there = memory.upload(host, bytes);   // all of it is read before this returns
//   …launches…
//   memory.end(mine);                                 // they may still be under way
//
// An operation may begin and end others before it ends itself. Of one thread; Error where the driver has no memory left.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::cuda {

class StreamMemory {
 public:
  explicit StreamMemory(cudaStream_t stream) : stream_(stream) {}
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  // Nothing is freed: it lives as long as its thread, and the driver frees it with the process.

  std::size_t begin();
  void end(std::size_t operation);
  void* allocate(std::size_t bytes);  // aligned to 256 bytes
  const void* upload(const void* host, std::size_t bytes);

 private:
  struct Block {
    unsigned char* memory = nullptr;
    std::size_t bytes = 0;
  };
  struct Place {
    std::size_t block = 0, used = 0;
  };
  struct Operation {
    Place began;
    bool under_way = true;
  };
  // Pinned memory that small uploads go through: the driver copies from it when the stream comes to it. Of two halves
  // one is filled while the other's copies are made.
  struct Half {
    unsigned char* memory = nullptr;
    cudaEvent_t copied = nullptr;
  };
  unsigned char* pinned(std::size_t bytes);
  void next_half();

  cudaStream_t stream_;
  std::vector<Block> blocks_;
  Place place_;  // from where on memory is free
  std::vector<Operation> operations_;
  Half halves_[2];
  std::size_t half_ = 0, filled_ = 0;  // of that half
};

}  // namespace assay::cuda
