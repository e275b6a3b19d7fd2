// The product of a tile with a panel by AVX512_BF16, in a file of its own for its compiler flags.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::cpu {

inline constexpr std::size_t kBf16PanelWidth = 32;  // two vectors of 512 bits
// The code of 2⁻⁵⁶: numbers from there on are multiples of 2⁻⁶³, their products and what sums of these come to multiples of
// 2⁻¹²⁶, which is the least normal number of float32.
inline constexpr unsigned kLeastBf16Code = (127 - 56) << 7;

// This CPU, and the system it runs, have what the tile needs.
bool has_bf16_products();
// sums [rows][32] += x [pairs][rows] · panel [pairs][32]; rows: 12, 6, 4, 2 or 1.
void bf16_tile_avx512(std::size_t rows, const std::int32_t* x, const std::int32_t* panel, std::size_t pairs,
                      float* sums);

}  // namespace assay::cpu
