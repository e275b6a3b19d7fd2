#include "core/numeric/packed_ints.h"

#include <algorithm>

namespace assay {
namespace {

// Where value i of a line begins.
struct Place {
  std::uint64_t word;
  std::uint32_t shift;
};
Place place_of(const IntPacking& packing, std::uint64_t i) {
  const std::uint32_t bits = packing.bits;
  switch (packing.fill) {
    case IntPacking::Fill::whole_words: {
      const std::uint32_t per_word = 32 / bits;
      return {i / per_word, static_cast<std::uint32_t>(i % per_word) * bits};
    }
    case IntPacking::Fill::awq: {
      // kAwqOrder turned round: even values fill the lower half of the word, odd ones the upper half.
      const auto within = static_cast<std::uint32_t>(i % 8);
      return {i / 8, 4 * (within / 2 + within % 2 * 4)};
    }
    case IntPacking::Fill::dense: break;
  }
  const auto within = static_cast<std::uint32_t>(i % 32) * bits;
  return {i / 32 * bits + within / 32, within % 32};
}

}  // namespace

bool runs_over(const IntPacking& packing, std::uint64_t i) {
  return place_of(packing, i).shift + packing.bits > 32;
}

void unpack_line(const IntPacking& packing, std::span<const std::uint32_t> words, std::uint64_t begin,
                 std::span<std::uint8_t> out) {
  const std::uint64_t first = packing.first_word(begin);
  std::uint64_t i = 0;
  if (packing.bits == 4 && begin % 8 == 0) {  // the common case, in a loop that vectorizes
    const bool awq = packing.fill == IntPacking::Fill::awq;
    for (; i + 8 <= out.size(); i += 8) {
      const std::uint32_t word = words[i / 8];
      for (std::uint32_t k = 0; k < 8; ++k) {
        const std::uint32_t nibble = awq ? k / 2 + k % 2 * 4 : k;
        out[i + k] = static_cast<std::uint8_t>(word >> (4 * nibble) & 0xF);
      }
    }
  }
  for (; i < out.size(); ++i) {
    const Place place = place_of(packing, begin + i);
    std::uint32_t value = words[place.word - first] >> place.shift;
    if (place.shift + packing.bits > 32) value |= words[place.word - first + 1] << (32 - place.shift);
    out[i] = static_cast<std::uint8_t>(value & packing.mask());
  }
}

void unpack_across(const IntPacking& packing, std::span<const std::uint32_t> words,
                   std::span<const std::uint32_t> next, std::uint64_t i, std::span<std::uint8_t> out) {
  const std::uint32_t shift = place_of(packing, i).shift, mask = packing.mask();
  if (shift + packing.bits <= 32) {
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<std::uint8_t>(words[k] >> shift & mask);
    return;
  }
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = static_cast<std::uint8_t>((words[k] >> shift | next[k] << (32 - shift)) & mask);
}

void pack_line(const IntPacking& packing, std::span<const std::uint8_t> values,
               std::span<std::uint32_t> words) {
  std::fill(words.begin(), words.end(), 0);
  std::uint64_t i = 0;
  if (packing.bits == 4 && packing.fill == IntPacking::Fill::dense) {
    for (; i + 8 <= values.size(); i += 8) {
      std::uint32_t word = 0;
      for (std::uint32_t k = 0; k < 8; ++k) word |= std::uint32_t{values[i + k]} << (4 * k);
      words[i / 8] = word;
    }
  }
  for (; i < values.size(); ++i) {
    const Place place = place_of(packing, i);
    words[place.word] |= std::uint32_t{values[i]} << place.shift;
    if (place.shift + packing.bits > 32)
      words[place.word + 1] |= std::uint32_t{values[i]} >> (32 - place.shift);
  }
}

}  // namespace assay
