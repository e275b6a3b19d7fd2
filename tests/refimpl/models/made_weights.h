// The weights of data/tiny_models/kin.py, which anybody can make of a tensor's name and shape.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "core/model/module_tree.h"
#include "core/numeric/codec.h"
#include "tests/support/support.h"

namespace assay::test {

// Steps of 1/64 from -1 on: SplitMix64 of the name's FNV-1a.
inline std::vector<double> made_numbers(const std::string& name, std::size_t count) {
  std::uint64_t seed = 0xCBF29CE484222325;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::vector<double> numbers;
  for (std::uint64_t i = 1; i <= count; ++i) {
    std::uint64_t z = seed + i * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    numbers.push_back(static_cast<double>(z >> 57) / 64 - 1);
  }
  return numbers;
}

inline std::vector<double> made_weight(const std::string& name, const std::vector<std::uint64_t>& shape) {
  static const std::regex plain("sinks?(_bias)?$"), table("embed|wte|wpe|tok_embeddings");
  std::size_t count = 1;
  for (const std::uint64_t size : shape) count *= size;
  std::vector<double> numbers = made_numbers(name, count);
  const auto bits = [](std::uint64_t x) {
    int n = 0;
    for (; x != 0; x >>= 1) ++n;
    return n;
  };
  const bool is_plain = std::regex_search(name, plain) || std::regex_search(name, table);
  for (double& x : numbers) {
    if (name.ends_with("bias"))
      x /= 4;
    else if (is_plain)
      continue;
    else if (shape.size() < 2)
      x = 1 + x / 2;
    else
      x = std::ldexp(x, 1 - (bits(shape.back()) - 1) / 2);
  }
  return numbers;
}

// config.json and model.safetensors (BF16) of what the config describes; weights(name, spec) are a tensor's numbers.
template <class Weights>
void put_model(const fs::path& folder, const std::string& config, const Weights& weights) {
  write_file(folder / "config.json", config);
  const ModuleTree tree = describe(ModelConfig::read(folder / "config.json"));
  nlohmann::json header = nlohmann::json::object();
  std::string bytes;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    if (spec.storage != Storage::own) return;
    const std::size_t begin = bytes.size();
    for (const double x : weights(name, spec)) {
      const auto code = static_cast<std::uint16_t>(encode(kBF16, static_cast<float>(x), Overflow::special));
      bytes.push_back(static_cast<char>(code & 0xFF));
      bytes.push_back(static_cast<char>(code >> 8));
    }
    header[name] = {{"dtype", "BF16"}, {"shape", spec.shape}, {"data_offsets", {begin, bytes.size()}}};
  });
  write_file(folder / "model.safetensors", safetensors_bytes(header.dump(), bytes));
}
inline void put_made_model(const fs::path& folder, const std::string& config) {
  put_model(folder, config,
            [](const std::string& name, const TensorSpec& spec) { return made_weight(name, spec.shape); });
}

}  // namespace assay::test
