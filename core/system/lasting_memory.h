// Memory whose bytes stay as they are until it is given back: that of a mapped file. Whoever keeps something made of
// such bytes knows them by a number that is never given twice, where an address may come to hold another file.
//
//   LastingMemory held(bytes);                                        the owner, for as long as they stay
//   if (std::uint64_t number = lasting_number(codes, row_bytes)) …    whoever looks at some of them
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace assay {

class LastingMemory {
 public:
  LastingMemory() = default;  // of nothing
  explicit LastingMemory(std::span<const std::byte> bytes);
  LastingMemory(LastingMemory&& other) noexcept;
  LastingMemory& operator=(LastingMemory&& other) noexcept;
  ~LastingMemory();

 private:
  const std::byte* begin_ = nullptr;
};

// The memory in which all of these bytes lie; 0: they do not lie in one.
std::uint64_t lasting_number(const void* begin, std::size_t bytes);

// How often memory was given back so far, and whether one has not been yet.
std::uint64_t lasting_memory_returned();
bool still_lasts(std::uint64_t number);

}  // namespace assay
