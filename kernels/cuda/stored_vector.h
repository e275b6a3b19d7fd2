// A vector of a model as it is stored, for kernels that decode it where they use it: a norm's weight, a bias.
#pragma once

#include <cstdint>

namespace assay::cuda {

enum class StoredAs : std::uint8_t { none, f32, bf16, f16 };
struct StoredVector {
  const void* data = nullptr;
  StoredAs type = StoredAs::none;
};

}  // namespace assay::cuda
