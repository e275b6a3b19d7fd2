#include "core/model/formats/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/model/formats/format.h"
#include "core/system/error.h"

namespace assay {

bool is_word(ElementType type) {
  return type == ElementType::I32 || type == ElementType::U32;
}

// The packing under which a line of `count` values fills `words` words, dense or by whole words.
std::optional<IntPacking> packing_of(std::uint64_t count, std::uint64_t words,
                                     std::optional<std::uint64_t> bits) {
  if (count == 0 || words == 0 || words > count) return std::nullopt;
  for (const IntPacking::Fill fill : {IntPacking::Fill::dense, IntPacking::Fill::whole_words}) {
    for (std::uint32_t b = 1; b <= 8; ++b) {
      const IntPacking packing{b, fill};
      if ((!bits || *bits == b) && packing.words(count) == words) return packing;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> configured_bits(const StoredResolution& resolution) {
  const auto& config = resolution.quantization();
  if (!config) return std::nullopt;
  if (config->bits) return config->bits;
  return config->groups.size() == 1 ? config->groups.front().bits : std::nullopt;
}

bool same_but_last(const StoredShape& a, const StoredShape& b) {
  return a.size() == b.size() && !a.empty() && std::equal(a.begin(), a.end() - 1, b.begin());
}

WeightFormat grouped_int(std::uint64_t bits, std::uint64_t group) {
  const std::string b = std::to_string(bits), g = group == 0 ? "channel" : "g" + std::to_string(group);
  WeightFormat format = WeightFormat::in_blocks(
      "int" + b + "-" + g, "INT" + b + ", a scale each " + (group == 0 ? "row" : g.substr(1)), bits, 1, group,
      2);
  format.word_bytes = 4;
  format.per_matrix_bytes = 16;  // weight_shape, I64[2]
  format.marlin = bits == 4;
  return format;
}

WeightFormat configured_grouped_int(const QuantizationConfig& config) {
  const std::uint64_t bits = said_bits(config);
  if (bits > 8)
    throw Error::input(
        fmt::format("quantization_config says {} bits: integers in groups have 8 of them at most", bits));
  return grouped_int(bits == 0 ? 4 : bits, said_group(config));
}

}  // namespace assay
