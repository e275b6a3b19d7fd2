// A checkpoint as one list of tensors, whatever holds it: one safetensors, a folder of shards, a GGUF and its
// splits, a Hugging Face snapshot. Headers only; no weight is read.
//
// Which files of a folder are the model: model.safetensors that no index names; else the shards that an index
// names and others of their numbered family; without, a numbered family rather than a single file (Mistral's
// consolidated.safetensors holds the same weights once more). What is left aside is a finding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/gguf.h"
#include "core/formats/safetensors.h"
#include "core/formats/shard_index.h"
#include "core/numeric/element_type.h"
#include "core/system/file.h"
#include "core/system/finding.h"

namespace assay {

struct CheckpointTensor {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;  // outermost first (GGUF's order is reversed here)
  std::uint64_t offset = 0;          // absolute, in its file
  std::uint64_t bytes = 0;
  std::uint32_t file = 0;  // index into Checkpoint::files
};

struct CheckpointFile {
  std::string name;  // relative to the checkpoint's folder
  fs::path path;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  // safetensors __metadata__
  std::optional<FileIdentity> identity;                       // as it was when its header was read
};

struct Checkpoint {
  enum class Container { safetensors, gguf } container = Container::safetensors;
  fs::path root;                          // the folder; of a single file, its folder
  std::vector<CheckpointFile> files;      // sorted by name
  std::vector<CheckpointTensor> tensors;  // by file, then offset
  std::optional<ShardIndex> index;
  std::optional<gguf::Header> gguf;    // metadata of the first split
  fs::path config;                     // config.json beside the weights; empty where there is none
  Findings findings;                   // header deviations, index and numbering faults: nothing here is fatal
  std::vector<std::uint32_t> by_name;  // places in `tensors`, by name

  const CheckpointTensor* find(std::string_view name) const;  // the first, where several have the name
};

// `path`: a .safetensors, a .gguf (of a split one, any part), an index, a folder of either, or a hub cache's
// models--org--name. Headers are read `jobs` at a time. Unreadable
// headers become findings when there are several files, and an Error when there is just the one.
Checkpoint open_checkpoint(const fs::path& path, int jobs);

}  // namespace assay
