#include "kernels/selection/matrix_memory.h"

#include <limits>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::size_t kMostIdle = 256 << 20;

}  // namespace

Matrix MatrixMemory::allocate(std::size_t rows, std::size_t columns, Real real) {
  std::size_t bytes = real == Real::f64 ? sizeof(double) : sizeof(float);
  if (__builtin_mul_overflow(rows, bytes, &bytes) || __builtin_mul_overflow(columns, bytes, &bytes) ||
      bytes > std::numeric_limits<std::size_t>::max() / 2)
    throw Error::input("a matrix beyond all memory");
  Block block;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = idle_.find(bytes); found != idle_.end() && !found->second.empty()) {
      block = std::move(found->second.back());
      found->second.pop_back();
      idle_bytes_ -= bytes;
    }
  }
  if (!block) block = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::byte* const begin = block.release();
  const auto give_back = [memory = shared_from_this(), bytes](std::byte* used) {
    memory->take_back(Block(used), bytes);
  };
  return {std::shared_ptr<void>(begin, [give_back](void* used) { give_back(static_cast<std::byte*>(used)); }),
          real, rows, columns};
}

void MatrixMemory::take_back(Block block, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > kMostIdle - idle_bytes_) return;
  idle_[bytes].push_back(std::move(block));
  idle_bytes_ += bytes;
}

}  // namespace assay
