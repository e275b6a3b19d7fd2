// Tables of positions that are sines (Vaswani et al. 2017, section 3.5), as two classes of transformers make them. The first
// half of a row are sines, the other cosines.
#pragma once

#include <cstdint>
#include <optional>

#include "refimpl/models/own_weight.h"

namespace assay {

//   angle of pair j of a row of d at place p:  p / 10000^(2j / d)                          CTRL
//                                              p / 10000^(j / (d/2 - 1)), d odd: a 0 behind  fairseq (XGLM)
enum class SineForm : std::uint8_t { none, ctrl, fairseq };

// `silent`: a row of zeros.
OwnWeight sine_positions(SineForm form, std::size_t rows, std::size_t width,
                         std::optional<std::size_t> silent);

}  // namespace assay
