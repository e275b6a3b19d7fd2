// The codebooks of ggml's IQ block types: points of 8 or 4 small magnitudes, chosen by search, hence stored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace assay {

template <std::size_t points, std::size_t dimensions>
using Grid = std::array<std::array<std::int8_t, dimensions>, points>;

extern const Grid<256, 8> kIq2XxsGrid;
extern const Grid<512, 8> kIq2XsGrid;
extern const Grid<1024, 8> kIq2SGrid;
extern const Grid<256, 4> kIq3XxsGrid;
extern const Grid<512, 4> kIq3SGrid;
extern const Grid<2048, 8> kIq1Grid;  // IQ1_S and IQ1_M; here alone the coordinates are signed: -1, 0, 1

}  // namespace assay
