// Packed integers against their definition, bit by bit.
#include "core/numeric/packed_ints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

namespace assay {
namespace {

using Fill = IntPacking::Fill;

std::vector<std::uint8_t> numbers(std::size_t count, std::uint32_t bits) {
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<std::uint8_t>((i * 37 + i / 3 + 5) & ((1u << bits) - 1));
  return values;
}

// Bit `bit` of value i of a line: its place among the line's bits.
std::size_t place(const IntPacking& packing, std::size_t i, std::uint32_t bit) {
  if (packing.fill == Fill::dense) return i * packing.bits + bit;
  const std::size_t per_word = 32 / packing.bits;
  std::size_t within = i % per_word;
  if (packing.fill == Fill::awq) {  // nibble n holds value kAwqOrder[n]
    std::size_t nibble = 0;
    while (kAwqOrder[nibble] != within) ++nibble;
    within = nibble;
  }
  return i / per_word * 32 + within * packing.bits + bit;
}

std::vector<std::uint32_t> packed(const IntPacking& packing, const std::vector<std::uint8_t>& values) {
  std::vector<std::uint32_t> words(packing.words(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::uint32_t bit = 0; bit < packing.bits; ++bit) {
      const std::size_t at = place(packing, i, bit);
      words.at(at / 32) |= static_cast<std::uint32_t>(values[i] >> bit & 1) << at % 32;
    }
  }
  return words;
}

std::vector<IntPacking> packings() {
  std::vector<IntPacking> all = {{4, Fill::awq}};
  for (std::uint32_t bits = 1; bits <= 8; ++bits) {
    all.push_back({bits, Fill::dense});
    all.push_back({bits, Fill::whole_words});
  }
  return all;
}

TEST(PackedInts, LinesTakeAsManyWordsAsTheyNeed) {
  EXPECT_EQ((IntPacking{3, Fill::dense}.words(32)), 3U);
  EXPECT_EQ((IntPacking{3, Fill::dense}.words(33)), 4U);
  EXPECT_EQ((IntPacking{3, Fill::dense}.words(11)), 2U);
  EXPECT_EQ((IntPacking{3, Fill::whole_words}.words(10)), 1U);
  EXPECT_EQ((IntPacking{3, Fill::whole_words}.words(11)), 2U);
  EXPECT_EQ((IntPacking{4, Fill::awq}.words(16)), 2U);
  EXPECT_EQ((IntPacking{8, Fill::dense}.mask()), 255U);
}

TEST(PackedInts, PackAndUnpackWholeLines) {
  for (const IntPacking& packing : packings()) {
    for (const std::size_t count : {8, 40, 64, 83, 127}) {
      if (packing.fill == Fill::awq && count % 8 != 0) continue;
      const std::vector<std::uint8_t> values = numbers(count, packing.bits);
      const std::vector<std::uint32_t> expected = packed(packing, values);
      std::vector<std::uint32_t> words(expected.size(), 0xFFFFFFFF);
      pack_line(packing, values, words);
      EXPECT_EQ(words, expected) << packing.bits << " bits, " << count;
      std::vector<std::uint8_t> back(count);
      unpack_line(packing, expected, 0, back);
      EXPECT_EQ(back, values) << packing.bits << " bits, " << count;
    }
  }
}

TEST(PackedInts, UnpackFromAnywhere) {
  for (const IntPacking& packing : packings()) {
    const std::vector<std::uint8_t> values = numbers(120, packing.bits);
    const std::vector<std::uint32_t> words = packed(packing, values);
    for (const std::size_t begin : {1, 4, 8, 10, 13, 31, 32, 33, 64, 77}) {
      const std::uint64_t first = packing.first_word(begin);
      EXPECT_EQ(first, packing.fill == Fill::awq ? begin / 8 : place(packing, begin, 0) / 32);
      std::vector<std::uint8_t> out(29);
      unpack_line(packing, std::span(words).subspan(first), begin, out);
      EXPECT_EQ(out, std::vector<std::uint8_t>(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                               values.begin() + static_cast<std::ptrdiff_t>(begin + 29)))
          << packing.bits << " bits from " << begin;
    }
  }
}

// Three lines side by side: word w of line k is words[w][k].
TEST(PackedInts, UnpackAcrossLines) {
  for (const IntPacking& packing : packings()) {
    std::vector<std::vector<std::uint8_t>> lines;
    std::vector<std::vector<std::uint32_t>> words;
    for (std::size_t k = 0; k < 3; ++k) {
      lines.push_back(numbers(72 + 8 * k, packing.bits));
      std::reverse(lines.back().begin(), lines.back().end());
      lines.back().resize(72);
      words.push_back(packed(packing, lines.back()));
    }
    for (std::size_t i = 0; i < 72; ++i) {
      const std::uint64_t at = packing.first_word(i);
      const bool over = place(packing, i, packing.bits - 1) / 32 != place(packing, i, 0) / 32;
      EXPECT_EQ(runs_over(packing, i), over) << packing.bits << " bits, " << i;
      std::vector<std::uint32_t> here, next;
      for (const auto& line : words) {
        here.push_back(line.at(at));
        next.push_back(over ? line.at(at + 1) : 0xAAAAAAAA);
      }
      std::vector<std::uint8_t> out(3);
      unpack_across(packing, here, next, i, out);
      EXPECT_EQ(out, (std::vector<std::uint8_t>{lines[0][i], lines[1][i], lines[2][i]}))
          << packing.bits << " bits, " << i;
    }
  }
}

}  // namespace
}  // namespace assay
