// Fields that most entries of a long list leave empty, in one word each: a manifest may name a million files.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace assay {

// A value on the heap, copied like a value; none is there until it is asked for or given.
template <typename T>
class Box {
 public:
  Box() = default;
  Box(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Box(const Box& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Box(Box&&) noexcept = default;
  Box& operator=(const Box& other) { return *this = Box(other); }
  Box& operator=(Box&&) noexcept = default;
  ~Box() = default;

  explicit operator bool() const { return value_ != nullptr; }
  // Where there is none: an empty one.
  const T& operator*() const {
    static const T none{};
    return value_ ? *value_ : none;
  }
  const T* operator->() const { return &**this; }
  friend bool operator==(const Box& a, const Box& b) { return *a == *b; }
  T& make() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }

 private:
  std::unique_ptr<T> value_;
};

template <typename T>
Box<T> boxed(const std::optional<T>& value) {
  return value ? Box<T>(*value) : Box<T>();
}

// The size of a file, where it is known. No file is 2^64 - 1 bytes long, which stands for "not known"; whoever
// claims that length is taken to mean one byte less, and is as wrong.
class KnownSize {
 public:
  KnownSize() = default;
  KnownSize(std::uint64_t size) : size_(size == kUnknown ? kUnknown - 1 : size) {}
  KnownSize(const std::optional<std::uint64_t>& size) : KnownSize(size ? KnownSize(*size) : KnownSize()) {}

  explicit operator bool() const { return size_ != kUnknown; }
  std::uint64_t operator*() const { return size_; }
  std::uint64_t value_or(std::uint64_t other) const { return *this ? size_ : other; }
  operator std::optional<std::uint64_t>() const { return *this ? std::optional(size_) : std::nullopt; }
  void reset() { size_ = kUnknown; }
  friend bool operator==(const KnownSize&, const KnownSize&) = default;

 private:
  static constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t size_ = kUnknown;
};

}  // namespace assay
