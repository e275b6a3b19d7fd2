// The greedy choice. How tokens are drawn otherwise: refimpl/sampling.
#pragma once

#include <cstddef>
#include <span>

namespace assay {

std::size_t argmax(std::span<const double> logits);  // the first of equals

}  // namespace assay
