#include "refimpl/ops/sample.h"

#include <algorithm>

namespace assay {

std::size_t argmax(std::span<const double> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace assay
