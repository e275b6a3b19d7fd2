// What the tests of `assay convert` share: checkpoints held against each other byte by byte.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/formats/stream_digest.h"
#include "core/system/file.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {

inline const fs::path kData = source_dir() / "data";

inline std::string stored_bytes(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  std::string bytes(tensor.bytes, '\0');
  File::open(checkpoint.files[tensor.file].path)
      .read_exactly(tensor.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

struct TensorBytes {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

// A folder of one file; no config.json where `config` is empty.
inline void write_checkpoint(const fs::path& folder, const std::vector<TensorBytes>& tensors,
                             const std::string& config) {
  std::string json = "{", buffer;
  for (const TensorBytes& tensor : tensors) {
    json += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        json.size() > 1 ? "," : "", tensor.name, name(tensor.type),
                        fmt::join(tensor.shape, ","), buffer.size(), buffer.size() + tensor.bytes.size());
    buffer += tensor.bytes;
  }
  write_file(folder / "model.safetensors", safetensors_bytes(json + "}", buffer));
  if (!config.empty()) write_file(folder / "config.json", config);
}

inline std::string float32_bytes(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

inline std::string sha256(const std::string& bytes) {
  return digest_of(DigestKind::sha256, std::as_bytes(std::span(bytes))).hex();
}

inline void expect_same_tensors(const fs::path& a, const fs::path& b) {
  const Checkpoint left = open_checkpoint(a, 1), right = open_checkpoint(b, 1);
  EXPECT_EQ(left.tensors.size(), right.tensors.size());
  for (const CheckpointTensor& tensor : left.tensors) {
    const CheckpointTensor* other = right.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.type, other->type) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape) << tensor.name;
    EXPECT_EQ(stored_bytes(left, tensor), stored_bytes(right, *other)) << tensor.name;
  }
}

inline std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const TreeEntry& entry : list_tree(folder)) files[entry.name] = read_file(folder / entry.name);
  return files;
}

inline void expect_ok(const ProcessResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// Converts as `table` says (lines of source, SPEC, tensor, sha256) and holds every tensor named to its
// digest.
inline void expect_digests(const fs::path& table, std::size_t conversions,
                           const std::vector<std::string>& options = {}) {
  const fs::path data = test::source_dir() / "data";
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<std::string, std::string>>> expected;
  std::istringstream lines(read_file(table));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string source, spec, tensor, digest;
    fields >> source >> spec >> tensor >> digest;
    expected[{source, spec}].emplace_back(tensor, digest);
  }
  ASSERT_EQ(expected.size(), conversions);
  const TempDir dir;
  int number = 0;
  for (const auto& [run, tensors] : expected) {
    const fs::path out = dir / std::to_string(number++);
    std::vector<std::string> command = {"convert", data / run.first, out, "--to", run.second};
    command.insert(command.end(), options.begin(), options.end());
    expect_ok(assay(command));
    const Checkpoint made = open_checkpoint(out, 1);
    EXPECT_TRUE(made.findings.empty()) << run.second;
    for (const auto& [name, digest] : tensors) {
      const CheckpointTensor* tensor = made.find(name);
      ASSERT_NE(tensor, nullptr) << run.second << " " << name;
      EXPECT_EQ(sha256(stored_bytes(made, *tensor)), digest) << run.first << " " << run.second << " " << name;
    }
  }
}

// BF16 ones, 8 x 16 each.
inline void write_matrices(const fs::path& folder, const std::vector<std::string>& names,
                           const std::string& config) {
  constexpr std::size_t kBytes = 8 * 16 * 2;
  std::string header, data;
  for (const std::string& name : names) {
    header += fmt::format(R"({}"{}":{{"dtype":"BF16","shape":[8,16],"data_offsets":[{},{}]}})",
                          header.empty() ? "" : ",", name, data.size(), data.size() + kBytes);
    for (std::size_t i = 0; i < kBytes / 2; ++i) data += "\x80\x3f";
  }
  write_file(folder / "model.safetensors", safetensors_bytes("{" + header + "}", data));
  if (!config.empty()) write_file(folder / "config.json", config);
}

}  // namespace assay::test
