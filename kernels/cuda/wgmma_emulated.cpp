#include "kernels/cuda/wgmma_emulated.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/system/error.h"
#include "kernels/cuda/device_limits.h"

namespace assay::cuda::emulator {
namespace {

constexpr unsigned kStepBytes = 32;

std::uint32_t field(std::uint64_t descriptor, unsigned bit) {
  return static_cast<std::uint32_t>(descriptor >> bit & 0x3FFF) << 4;
}
const std::byte* swizzled(std::uint64_t descriptor, std::uint32_t address, Where where) {
  if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0)
    throw Error::internal("a matrix descriptor of another layout than 128-byte swizzling, aligned");
  const std::byte* place = shared_memory() + (address ^ (address >> 7 & 7) << 4);
  require_shared(place, 1, 1, where);
  return place;
}

// Byte `byte` of row `row` of an operand whose rows are its columns in the product, or those of the result.
const std::byte* across(std::uint64_t descriptor, unsigned row, unsigned byte, Where where) {
  return swizzled(descriptor, field(descriptor, 0) + row / 8 * field(descriptor, 32) + row % 8 * 128 + byte,
                  where);
}
// Column `column` of row `term`, of 16 bits, of an operand whose rows are terms.
const std::byte* down(std::uint64_t descriptor, unsigned term, unsigned column, Where where) {
  const std::uint32_t group = column / 64 * field(descriptor, 16) + term / 8 * field(descriptor, 32);
  return swizzled(descriptor, field(descriptor, 0) + group + term % 8 * 128 + column % 64 * 2, where);
}

double product_of(const WgmmaProduct& p, unsigned row, unsigned column, Where where) {
  double sum = 0;
  const auto size = static_cast<unsigned>(p.element_bytes);
  for (unsigned term = 0; term < kStepBytes / size; ++term) {
    const std::byte* b = p.down ? down(p.b, term, column, where) : across(p.b, column, term * size, where);
    sum += p.value(across(p.a, row, term * size, where)) * p.value(b);
  }
  return sum;
}

}  // namespace

void WgmmaQueue::begin(const WgmmaProduct& product, Where where) {
  // Descriptors are those of the warp, not of a thread.
  const std::uint64_t mine[4] = {product.a, product.b, product.added ? 1u : 0u, product.down ? 1u : 0u};
  const std::byte* board = exchange(mine, sizeof mine, "wgmma", where);
  for (unsigned lane = 1; lane < kWarp; ++lane) {
    if (std::memcmp(board, board + lane * sizeof mine, sizeof mine) != 0)
      throw Error::internal("threads of a warp begin different wgmma");
  }
  Begun begun = {product, {}};
  std::copy_n(product.d, product.sums, begun.before);
  // What an earlier product of the same D, not yet waited for, will leave there is taken from there.
  std::fill_n(product.d, product.sums, std::numeric_limits<float>::quiet_NaN());
  open_.push_back(begun);
}

void WgmmaQueue::commit() {
  groups_.push_back(std::exchange(open_, {}));
}

void WgmmaQueue::wait(std::size_t groups_left, Where where) {
  exchange(nullptr, 0, "wgmma.wait_group", where);
  const unsigned warp = thread_id() / kWarp % 4, lane = thread_id() % kWarp;
  while (groups_.size() > groups_left) {
    std::vector<const float*> continued;  // D of which this group has products already
    for (const Begun& begun : groups_.front()) {
      const WgmmaProduct& p = begun.product;
      const bool goes_on = std::find(continued.begin(), continued.end(), p.d) != continued.end();
      for (unsigned i = 0; i < p.sums; ++i) {
        const unsigned row = 16 * warp + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        const float before = goes_on ? p.d[i] : begun.before[i];
        p.d[i] = static_cast<float>((p.added ? static_cast<double>(before) : 0.0) +
                                    product_of(p, row, column, where));
      }
      continued.push_back(p.d);
    }
    groups_.erase(groups_.begin());
  }
}

}  // namespace assay::cuda::emulator
