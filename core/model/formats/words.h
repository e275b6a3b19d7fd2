// What formats of integers in 32-bit words share.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/formats/resolve.h"
#include "core/model/weight_format.h"
#include "core/numeric/packed_ints.h"

namespace assay {

bool is_word(ElementType type);
// The packing under which a line of `count` values fills `words` words, dense or by whole words.
std::optional<IntPacking> packing_of(std::uint64_t count, std::uint64_t words,
                                     std::optional<std::uint64_t> bits = std::nullopt);
// Of all weights, where the config says.
std::optional<std::uint64_t> configured_bits(const StoredResolution& resolution);
bool same_but_last(const StoredShape& a, const StoredShape& b);

// A BF16 scale for each group of columns, or for a row (0).
WeightFormat grouped_int(std::uint64_t bits, std::uint64_t group);
// As the config has bits and group: 4 where it has none.
WeightFormat configured_grouped_int(const QuantizationConfig& config);

}  // namespace assay
