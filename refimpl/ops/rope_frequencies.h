// How fast each pair of a head rotates, and how cos and sin are scaled, for a sequence of some length.
// Formulas: rope_frequencies.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include "core/model/hyperparameters.h"

namespace assay {

struct RopeFrequencies {
  std::vector<double> inverse;  // radians a position, one a pair: rotary_dim / 2
  double scale = 1;             // of cos and sin
};
RopeFrequencies rope_frequencies(const RopeRule& rule, std::size_t sequence_length);

}  // namespace assay
