#include "kernels/cuda/wgmma_emulated.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/system/error.h"
#include "kernels/cuda/device_limits.h"

namespace assay::cuda::emulator {
namespace {

constexpr unsigned kStepBytes = 32, kSums = 64;

// Byte `byte` of row `row` of the operand that a descriptor tells of.
const std::byte* at(std::uint64_t descriptor, unsigned row, unsigned byte, Where where) {
  const auto field = [&](unsigned bit) {
    return static_cast<std::uint32_t>(descriptor >> bit & 0x3FFF) << 4;
  };
  if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0)
    throw Error::internal("a matrix descriptor of another layout than 128-byte swizzling, aligned");
  std::uint32_t address = field(0) + row / 8 * field(32) + row % 8 * 128 + byte;
  address ^= (address >> 7 & 7) << 4;
  const std::byte* place = shared_memory() + address;
  require_shared(place, 1, 1, where);
  return place;
}

double product_of(const WgmmaProduct& p, unsigned row, unsigned column, Where where) {
  double sum = 0;
  for (unsigned byte = 0; byte < kStepBytes; byte += static_cast<unsigned>(p.element_bytes))
    sum += p.value(at(p.a, row, byte, where)) * p.value(at(p.b, column, byte, where));
  return sum;
}

}  // namespace

void WgmmaQueue::begin(const WgmmaProduct& product, Where where) {
  // Descriptors are those of the warp, not of a thread.
  const std::uint64_t mine[3] = {product.a, product.b, product.added ? 1u : 0u};
  const std::byte* board = exchange(mine, sizeof mine, "wgmma", where);
  for (unsigned lane = 1; lane < kWarp; ++lane) {
    if (std::memcmp(board, board + lane * sizeof mine, sizeof mine) != 0)
      throw Error::internal("threads of a warp begin different wgmma");
  }
  Begun begun = {product, {}};
  std::copy_n(product.d, kSums, begun.before);
  // What an earlier product of the same D, not yet waited for, will leave there is taken from there.
  std::fill_n(product.d, kSums, std::numeric_limits<float>::quiet_NaN());
  open_.push_back(begun);
}

void WgmmaQueue::commit() {
  groups_.push_back(std::exchange(open_, {}));
}

void WgmmaQueue::wait(std::size_t groups_left, Where where) {
  exchange(nullptr, 0, "wgmma.wait_group", where);
  const unsigned warp = thread_id() / kWarp % 4, lane = thread_id() % kWarp;
  while (groups_.size() > groups_left) {
    const float* continued = nullptr;
    for (const Begun& begun : groups_.front()) {
      const WgmmaProduct& p = begun.product;
      for (unsigned i = 0; i < kSums; ++i) {
        const unsigned row = 16 * warp + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        const float before = continued == p.d ? p.d[i] : begun.before[i];
        p.d[i] = static_cast<float>((p.added ? static_cast<double>(before) : 0.0) +
                                    product_of(p, row, column, where));
      }
      continued = p.d;
    }
    groups_.erase(groups_.begin());
  }
}

}  // namespace assay::cuda::emulator
