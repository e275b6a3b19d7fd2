// Values by pairs of 32-bit numbers: an open-addressed table, since tokenizers look up every pair of every text.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace assay {

inline std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

template <class Value>
class PairTable {
 public:
  explicit PairTable(std::size_t expected = 0) : slots_(std::bit_ceil(2 * expected + 2)) {}

  // The last value set for a pair counts. The pair of the two largest numbers is nobody's.
  void set(std::uint64_t pair, const Value& value = {}) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place(pair)];
    count_ += slot.pair == kEmpty ? 1 : 0;
    slot = {pair, value};
  }
  // Null: no such pair.
  const Value* find(std::uint64_t pair) const {
    const Slot& slot = slots_[place(pair)];
    return slot.pair == kEmpty ? nullptr : &slot.value;
  }
  template <class Take>
  void for_each(Take take) const {
    for (const Slot& slot : slots_) {
      if (slot.pair != kEmpty) take(slot.value);
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~0ull;
  struct Slot {
    std::uint64_t pair = kEmpty;
    [[no_unique_address]] Value value = {};
  };

  // Fibonacci hashing, then linear probing.
  std::size_t place(std::uint64_t pair) const {
    const int shift = 64 - std::countr_zero(slots_.size());
    std::size_t at = (pair * 0x9E3779B97F4A7C15ull) >> shift;
    while (slots_[at].pair != kEmpty && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    const std::vector<Slot> before =
        std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(64, 2 * slots_.size())));
    for (const Slot& slot : before) {
      if (slot.pair != kEmpty) slots_[place(slot.pair)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at least twice what is in it
  std::size_t count_ = 0;
};

}  // namespace assay
