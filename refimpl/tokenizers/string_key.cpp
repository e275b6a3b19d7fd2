#include "refimpl/tokenizers/string_key.h"

#include <random>

namespace assay {

std::uint64_t StringSeed::of_this_process() {
  static const std::uint64_t seed = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32 | device()) | 1;
  }();
  return seed;
}

}  // namespace assay
