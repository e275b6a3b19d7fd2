// The numbers of a safetensors file that fits in memory, as doubles, by tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay {

struct TensorValues {
  std::vector<std::uint64_t> shape;
  std::vector<double> values;
};
// Throws Error::io, and Error::input for what is no safetensors file.
std::map<std::string, TensorValues> read_tensor_values(const std::filesystem::path& safetensors);

}  // namespace assay
