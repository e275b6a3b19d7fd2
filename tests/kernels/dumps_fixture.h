// Dumps made for tests: activations of a small imaginary model, written and compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/formats/npy.h"
#include "core/formats/safetensors.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "kernels/dumps/compare.h"
#include "tests/support/support.h"

namespace assay::dumps {

inline constexpr std::size_t kTokens = 12, kHidden = 32, kHeads = 4, kLayers = 4, kVocabulary = 40;

struct Array {
  std::vector<std::uint64_t> shape;
  std::vector<double> values;
  std::optional<ElementType> type = {};  // in the file; none: that of the dump
  double& at(std::size_t i, std::size_t j) { return values[i * shape.back() + j]; }
};
using Arrays = std::map<std::string, Array>;

inline Array made(std::mt19937_64& random, std::size_t rows, std::size_t width, double scale = 1) {
  std::normal_distribution<double> normal(0, scale);
  Array a = {{rows, width}, std::vector<double>(rows * width)};
  for (double& value : a.values) value = static_cast<float>(normal(random));
  return a;
}

// The taps of a model of kLayers layers, all different from each other.
inline Arrays made_dump(std::size_t tokens = kTokens, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Arrays dump;
  dump["embed"] = made(random, tokens, kHidden);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (const char* tap :
         {"attn_norm", "q_proj", "q", "k", "v", "attn_context", "attn_out", "mlp_out", "out"})
      dump["layers." + std::to_string(layer) + "." + tap] =
          made(random, tokens, kHidden, 1.0 + static_cast<double>(layer));
  }
  dump["final_norm"] = made(random, tokens, kHidden);
  dump["logits"] = made(random, tokens, kVocabulary, 3);
  return dump;
}

inline std::vector<std::byte> encoded(const Array& array, ElementType type) {
  std::vector<std::byte> bytes(*storage_bytes(type, array.values.size()));
  if (type == ElementType::F64) {
    std::memcpy(bytes.data(), array.values.data(), bytes.size());
    return bytes;
  }
  if (type == ElementType::I64) {
    const std::vector<std::int64_t> whole(array.values.begin(), array.values.end());
    std::memcpy(bytes.data(), whole.data(), bytes.size());
    return bytes;
  }
  const std::vector<float> narrow(array.values.begin(), array.values.end());
  encode(type, narrow, Overflow::special, bytes.data());
  return bytes;
}

inline void write_dump(const fs::path& path, const Arrays& arrays, ElementType type = ElementType::F32) {
  std::vector<safetensors::Tensor> tensors;
  for (const auto& [name, array] : arrays) tensors.push_back({name, array.type.value_or(type), array.shape});
  fs::create_directories(path.parent_path());
  AtomicFile file(path);
  file.write(safetensors::serialize_header(tensors, {}));
  for (const auto& [name, array] : arrays) file.write(encoded(array, array.type.value_or(type)));
  file.commit();
}

inline void write_npy(const fs::path& path, const Array& array, ElementType type = ElementType::F32) {
  fs::create_directories(path.parent_path());
  AtomicFile file(path);
  file.write(npy::serialize_header(type, array.shape));
  file.write(encoded(array, type));
  file.commit();
}

inline const TapResult& tap(const DumpComparison& found, const std::string& name) {
  for (const TapResult& result : found.taps) {
    if (result.name == name) return result;
  }
  ADD_FAILURE() << "no tap " << name;
  static const TapResult none;
  return none;
}

inline std::string code(const TapResult& result) {
  return result.diagnosis ? result.diagnosis->code : "";
}

// In a folder of its own: REF and TEST, and what compare says of them.
class Dumps : public ::testing::Test {
 protected:
  DumpComparison compare(const Arrays& ref, const Arrays& test, const std::string& map = "") {
    write_dump(folder_ / "ref.safetensors", ref);
    write_dump(folder_ / "test.safetensors", test);
    return compare_with(folder_ / "test.safetensors", map);
  }
  DumpComparison compare_with(const fs::path& test, const std::string& map = "") {
    request_.ref = folder_ / "ref.safetensors";
    request_.test = test;
    request_.map = "";
    if (!map.empty()) {
      test::write_file(folder_ / "names.map", map);
      request_.map = folder_ / "names.map";
    }
    return compare_dumps(request_);
  }
  test::TempDir folder_;
  CompareRequest request_;
};

// Columns of every row in another order: out[j] = in[from(j)].
inline Array columns(const Array& in, const std::function<std::size_t(std::size_t)>& from) {
  Array out = in;
  const std::size_t width = in.shape.back();
  for (std::size_t i = 0; i < in.shape.front(); ++i) {
    for (std::size_t j = 0; j < width; ++j) out.values[i * width + j] = in.values[i * width + from(j)];
  }
  return out;
}
inline Array rows(const Array& in, const std::function<std::size_t(std::size_t)>& from) {
  Array out = in;
  const std::size_t width = in.shape.back();
  for (std::size_t i = 0; i < in.shape.front(); ++i)
    std::copy_n(in.values.begin() + static_cast<std::ptrdiff_t>(from(i) * width), width,
                out.values.begin() + static_cast<std::ptrdiff_t>(i * width));
  return out;
}
inline void each(Array& array, const std::function<double(double)>& f) {
  for (double& value : array.values) value = f(value);
}
inline Array transposed(const Array& in) {  // transposed, in its own shape
  Array out = {{in.shape[1], in.shape[0]}, in.values};
  for (std::size_t i = 0; i < in.shape[0]; ++i) {
    for (std::size_t j = 0; j < in.shape[1]; ++j)
      out.values[j * in.shape[0] + i] = in.values[i * in.shape[1] + j];
  }
  return out;
}

}  // namespace assay::dumps
