// Bytes that end where memory ends: the page behind them cannot be touched, and where they are operand for
// reading only, neither can they be written. Which of that a fault's address was, is told by a table that a
// signal handler may read.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace assay {

// What memory holds before a kernel writes there: no result looks like it.
inline constexpr std::byte kPattern{0xA5};

class GuardedBytes {
 public:
  // A copy of `size` bytes at `source`, or (null) a pattern no result looks like.
  GuardedBytes(const void* source, std::size_t size, bool writable);
  GuardedBytes(GuardedBytes&& other) noexcept;
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes();

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  // Other contents at the same address, though the kernel may only read them.
  void rewrite(const std::function<void(std::span<std::byte>)>& change);
  // Nothing was written just before them.
  bool intact() const;

 private:
  std::byte* map_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t mapped_ = 0, size_ = 0;
  bool writable_ = true;
};

// What lies at an address, for a message: "just behind memory that was operand". Null: nothing of ours.
// Safe in signal handlers.
const char* guarded_place(const void* address);

}  // namespace assay
