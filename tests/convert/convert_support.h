// What the tests of `assay convert` share: checkpoints held against each other byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/formats/checkpoint.h"
#include "core/formats/stream_digest.h"
#include "core/system/file.h"
#include "tests/support/support.h"

namespace assay::test {

inline std::string stored_bytes(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  std::string bytes(tensor.bytes, '\0');
  File::open(checkpoint.files[tensor.file].path)
      .read_exactly(tensor.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

inline std::string sha256(const std::string& bytes) {
  StreamDigest digest(DigestKind::sha256, bytes.size());
  digest.update(std::as_bytes(std::span(bytes)));
  return digest.finish().hex();
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

}  // namespace assay::test
