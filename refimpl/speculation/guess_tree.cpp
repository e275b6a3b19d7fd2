#include "refimpl/speculation/guess_tree.h"

namespace assay {

std::size_t guesses_of(std::span<const std::size_t> shape) {
  std::size_t level = 1, sum = 0;
  for (const std::size_t width : shape) sum += level *= width;
  return sum;
}

}  // namespace assay
