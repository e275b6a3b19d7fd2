// Which row of TEST is which row of REF: padding, chunks, another order of sequences.
//
// Every row is given a symbol: its token (and position) where both dumps have them, else a number that rows
// of an embedding share when they point the same way. Runs of equal symbols are then taken off, the longest
// first, from what is left of both, so that it does not matter in which order sequences come or where padding
// stands. An alignment holds only if it covers the shorter dump whole; otherwise rows are compared as they
// stand, and a shift is a fault to be named, not to be undone. Token ids tell more: where they do not agree,
// the inputs were not the same (token_ids.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dumps/dump.h"

namespace assay::dumps {

inline constexpr std::uint64_t kMatchesNothing = ~std::uint64_t{0};

struct RowMap {
  std::size_t ref_rows = 0, test_rows = 0;
  bool identity = true;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // REF's row, TEST's; by REF's
  std::string said;                                            // what was done; empty: nothing
};

RowMap identity_map(std::size_t rows);
// nullopt where no alignment covers the shorter of the two.
std::optional<RowMap> align(std::span<const std::uint64_t> ref, std::span<const std::uint64_t> test);
// Whatever runs there are, though they leave rows of both; nullopt where the dumps are too long to tell.
std::optional<RowMap> align_partly(std::span<const std::uint64_t> ref, std::span<const std::uint64_t> test);

// Symbols of rows by direction: equal where the angle's cosine exceeds 0.995, which roundings of any 16-bit
// format keep and different tokens do not reach.
std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>> symbols_of(const Activations& ref,
                                                                             const Activations& test);

// The rows of `of` that stand at `place`(pair) of a map.
Activations pick_ref(const RowMap& map, Activations of);
Activations pick_test(const RowMap& map, Activations of);

}  // namespace assay::dumps
