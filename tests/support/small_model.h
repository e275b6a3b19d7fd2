// A model of some kilobytes as it lies on disk: three shards, their index, a config; and the same as a git
// clone whose commit holds LFS pointers, as `git lfs` leaves it after a pull.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::test {

struct SmallModel {
  std::filesystem::path folder;
  std::vector<std::string> shards;  // file names
};

// Writes the files; shards hold pseudo-random BF16 numbers (finite) that differ from shard to shard.
SmallModel write_small_model(const std::filesystem::path& folder);

// Turns `folder` into a git repository whose HEAD holds pointers for *.safetensors and the other files as
// they are. The working tree keeps the real files. Needs `git`.
void commit_with_pointers(const std::filesystem::path& folder);

// sha256 by the openssl program: an opinion that is not ours.
std::string sha256_by_openssl(const std::filesystem::path& file);

}  // namespace assay::test
