#include "kernels/cuda/stream_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/cuda/check.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kBlockStep = 256, kLeastBlock = std::size_t{16} << 20;
constexpr std::size_t kPinnedHalf = std::size_t{256} << 10, kMostPinned = std::size_t{32} << 10;

std::size_t whole_steps(std::size_t bytes) {
  return (std::max<std::size_t>(1, bytes) + kBlockStep - 1) / kBlockStep * kBlockStep;
}

}  // namespace

std::size_t StreamMemory::begin() {
  operations_.push_back({.began = place_});
  return operations_.size() - 1;
}

void StreamMemory::end(std::size_t operation) {
  operations_[operation].under_way = false;
  for (; !operations_.empty() && !operations_.back().under_way; operations_.pop_back())
    place_ = operations_.back().began;
}

void* StreamMemory::allocate(std::size_t bytes) {
  const std::size_t size = whole_steps(bytes);
  for (; place_.block < blocks_.size(); ++place_.block, place_.used = 0) {
    Block& block = blocks_[place_.block];
    if (block.bytes - place_.used < size) continue;
    unsigned char* memory = block.memory + place_.used;
    place_.used += size;
    return memory;
  }
  const std::size_t last = blocks_.empty() ? 0 : blocks_.back().bytes;
  Block block = {.bytes = std::max({size, 2 * last, kLeastBlock})};
  void* memory = nullptr;
  if (cudaMallocAsync(&memory, block.bytes, stream_) != cudaSuccess) {
    cudaGetLastError();  // so much for growing: what is needed must do
    block.bytes = size;
    check(cudaMallocAsync(&memory, size, stream_),
          fmt::format("allocating {} bytes for intermediate results", size));
  }
  block.memory = static_cast<unsigned char*>(memory);
  blocks_.push_back(block);
  place_ = {blocks_.size() - 1, size};
  return memory;
}

const void* StreamMemory::upload(const void* host, std::size_t bytes) {
  void* there = allocate(bytes);
  const void* from = host;
  if (bytes <= kMostPinned) from = std::memcpy(pinned(bytes), host, bytes);
  // Of ordinary memory all is read before this returns (CUDA Runtime API, "API synchronization behavior").
  check(cudaMemcpyAsync(there, from, bytes, cudaMemcpyHostToDevice, stream_), "copying to the device");
  return there;
}

unsigned char* StreamMemory::pinned(std::size_t bytes) {
  constexpr std::size_t kStep = 16;
  const std::size_t size = (bytes + kStep - 1) / kStep * kStep;
  if (halves_[half_].memory == nullptr || kPinnedHalf - filled_ < size) next_half();
  unsigned char* memory = halves_[half_].memory + filled_;
  filled_ += size;
  return memory;
}

void StreamMemory::next_half() {
  if (Half& full = halves_[half_]; full.memory != nullptr) {
    check(cudaEventRecord(full.copied, stream_), "marking what was copied");
    half_ = 1 - half_;
  }
  filled_ = 0;
  Half& next = halves_[half_];
  if (next.memory != nullptr) {
    check(cudaEventSynchronize(next.copied), "waiting for copies to the device");
    return;
  }
  check(cudaMallocHost(reinterpret_cast<void**>(&next.memory), kPinnedHalf), "allocating pinned memory");
  check(cudaEventCreateWithFlags(&next.copied, cudaEventDisableTiming), "making an event");
}

}  // namespace assay::cuda
