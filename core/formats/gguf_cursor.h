// Takes values off the front of a GGUF header of which only a piece may have been read so far.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/formats/gguf.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::gguf {

// The bytes at hand end before the header does, and the file goes on: caught by read_header().
struct NeedMore {
  std::uint64_t bytes;  // at least so many from the start
};

// Takes values off the front of a header; knows where it is, and how long the whole file is.
class Cursor {
 public:
  Cursor(std::span<const std::byte> prefix, std::uint64_t file_bytes)
      : prefix_(prefix), file_bytes_(file_bytes) {}

  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return file_bytes_ - at_; }

  std::string_view bytes(std::uint64_t count, std::string_view what) {
    if (count > left()) {
      throw Error::input(fmt::format("file ends inside {}: {} bytes wanted, {} left", what, count, left()))
          .at(at_)
          .remedy("fetch the file again: it is truncated or not what it claims");
    }
    if (at_ + count > kMaxHeaderBytes) {
      throw Error::input(fmt::format("header is longer than {}", human_bytes(kMaxHeaderBytes))).at(at_);
    }
    if (at_ + count > prefix_.size()) throw NeedMore{at_ + count};
    const std::string_view taken(reinterpret_cast<const char*>(prefix_.data()) + at_, count);
    at_ += count;
    return taken;
  }

  template <class T>
  T value(std::string_view what) {
    T result;
    std::memcpy(&result, bytes(sizeof(T), what).data(), sizeof(T));
    return result;
  }

  // u64 length and bytes.
  std::string_view text(std::string_view what) {
    const std::uint64_t start = at_;
    const auto length = value<std::uint64_t>(what);
    if (length > kMaxStringBytes) {
      throw Error::input(
          fmt::format("{} is {} bytes long; the loader takes at most {}", what, length, kMaxStringBytes))
          .at(start);
    }
    return bytes(length, what);
  }

 private:
  std::span<const std::byte> prefix_;
  std::uint64_t file_bytes_;
  std::uint64_t at_ = 0;
};

}  // namespace assay::gguf
