// Integers of 1 to 8 bits in 32-bit words, lowest bits first.
//
//   dense        value i of a line takes bits i·b … i·b + b - 1 of the line's bits: 32 values in b words
//                (GPTQ, compressed-tensors, MLX)
//   whole words  floor(32/b) values a word, none across two words (older compressed-tensors); where b divides
//                32 that is the same
//   AWQ          4 bits, eight values a word: nibble i holds value kAwqOrder[i] of the eight
//
// Sources: GPTQModel `pack_original`, compressed-tensors `pack_to_int32`, AutoAWQ
// `WQLinear_GEMM.from_linear`.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace assay {

inline constexpr std::array<std::uint32_t, 8> kAwqOrder = {0, 2, 4, 6, 1, 3, 5, 7};

struct IntPacking {
  enum class Fill : std::uint8_t { dense, whole_words, awq };
  std::uint32_t bits = 4;
  Fill fill = Fill::dense;

  // Words that hold a line of `count` values.
  std::uint64_t words(std::uint64_t count) const {
    const std::uint64_t per_word = 32 / bits;
    if (fill == Fill::whole_words) return count / per_word + (count % per_word != 0 ? 1 : 0);
    return count / 32 * bits + (count % 32 * bits + 31) / 32;
  }
  std::uint32_t mask() const { return (1u << bits) - 1; }
  // The word that value i of a line begins in.
  std::uint64_t first_word(std::uint64_t i) const {
    return fill == Fill::whole_words ? i / (32 / bits) : i / 32 * bits + i % 32 * bits / 32;
  }
};

// Values [begin, begin + out.size()) of a line; words[0] is word first_word(begin) of the line.
void unpack_line(const IntPacking& packing, std::span<const std::uint32_t> words, std::uint64_t begin,
                 std::span<std::uint8_t> out);

// Value `i` of every one of out.size() lines that run side by side: words[k] and next[k] are words
// first_word(i) and first_word(i) + 1 of line k (next is not read where value i ends within its word).
void unpack_across(const IntPacking& packing, std::span<const std::uint32_t> words,
                   std::span<const std::uint32_t> next, std::uint64_t i, std::span<std::uint8_t> out);
// Whether value i runs over into the next word.
bool runs_over(const IntPacking& packing, std::uint64_t i);

// A whole line; `words` holds packing.words(values.size()). Values have no bits above `bits`.
void pack_line(const IntPacking& packing, std::span<const std::uint8_t> values,
               std::span<std::uint32_t> words);

}  // namespace assay
