// ALiBi (arXiv 2108.12409): heads whose scores get a bias of the distance between query and key instead of positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "refimpl/models/biased_attention.h"

namespace assay {

// What a head's slope is times in the bias of a score: the key's position, as kernels know it; the same in bfloat16,
// scaled as scores are (Falcon); minus the root of the distance (Step 1).
enum class SlopeForm : std::uint8_t { linear, rounded, root };

// Of 2ⁿ heads the powers of 2^(-exponent / 2ⁿ); of others these, then every second one of twice as many.
std::vector<double> alibi_slopes(std::size_t heads, double exponent);

// Of the forms that no kernel knows; `slopes` has one of each head and outlives what is given, `scale` is the scores'.
ScoreBiases slope_biases(SlopeForm form, const std::vector<double>& slopes, double scale);

}  // namespace assay
