// Numbers about a tensor, gathered while its bytes pass by: how many NaN, Inf, zeros; smallest, largest.
//
//   TensorStatistics statistics(ElementType::BF16);
//   while (read(piece)) statistics.update(piece);        // pieces of any length, cut anywhere
//   if (statistics.numbers().nan != 0) ...
//
// Several gigabytes a second on one core, so that it may run in the same pass as hashing. The result depends
// neither on where the pieces were cut nor on the instruction set it ran on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/numeric/element_type.h"
#include "core/numeric/tally.h"

namespace assay {

// Counted per value as decode() would give it: GGUF blocks and packed floats by their elements, C64 by its
// two parts. Integers and BOOL have no nan, inf or subnormal.
struct Numbers {
  std::uint64_t count = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t zero = 0;       // +0 and -0
  std::uint64_t subnormal = 0;  // of the stored type; of float32 for GGUF blocks
  std::uint64_t negative = 0;   // below zero, -Inf included
  // Over the finite values; 0 when there are none. Never -0. U64 and I64 are rounded to double.
  double min = 0, max = 0;
  double amax = 0;  // largest magnitude

  std::uint64_t finite() const { return count - nan - inf; }
  bool operator==(const Numbers&) const = default;
};

class TensorStatistics {
 public:
  explicit TensorStatistics(ElementType type);
  void update(std::span<const std::byte> piece);

  // Of all whole blocks seen so far.
  Numbers numbers() const;
  // Bytes at the end that do not fill a block: not 0 after the last piece means the tensor is cut short.
  std::size_t leftover_bytes() const { return partial_.size(); }

 private:
  enum class Method { floats, integers, histogram, dequantized };
  static Method method_for(ElementType type);
  void take_blocks(std::span<const std::byte> blocks);
  void take_histogram(std::span<const std::byte> blocks);
  void take_dequantized(std::span<const std::byte> blocks);
  Numbers from_tally() const;
  Numbers from_histogram() const;

  ElementType type_;
  Method method_;
  Tally tally_;
  std::vector<std::array<std::uint64_t, 256>>
      histograms_;                  // four, so that equal neighbours do not wait for each other
  std::vector<std::byte> partial_;  // the beginning of a block
  std::vector<float> values_;       // scratch for dequantized blocks
};

}  // namespace assay
