#include "refimpl/fingerprint/hidden_size.h"

namespace assay {

HiddenSize hidden_size_of(std::size_t rank, std::size_t rank_of_differences) {
  const bool offset = rank > rank_of_differences;
  const bool even = rank_of_differences % 2 == 0;
  if (even && !offset) return {rank, "an RMS norm, a head without bias"};
  if (even) return {rank_of_differences, "an RMS norm, a head with a bias"};
  if (offset) return {rank, "a layer norm, which takes a direction, and a bias, which gives one"};
  return {rank + 1, "a layer norm without bias: it takes a direction"};
}

}  // namespace assay
