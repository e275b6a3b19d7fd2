// The numbers of a safetensors file, as doubles.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay::test {

struct Numbers {
  std::vector<std::uint64_t> shape;
  std::vector<double> values;
};
std::map<std::string, Numbers> read_tensors(const std::filesystem::path& safetensors);

}  // namespace assay::test
