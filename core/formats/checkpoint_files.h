// Which files a checkpoint consists of: decided from names alone, before anything but an index is read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/formats/checkpoint.h"

namespace assay {

struct CheckpointFiles {
  Checkpoint::Container container = Checkpoint::Container::safetensors;
  fs::path root;
  std::vector<std::string> names;  // below root, sorted
  std::string index_name;          // empty: none
  std::optional<ShardIndex> index;
  Findings findings;
};

// Throws Error::input where there is no model, or several and no way to choose.
CheckpointFiles choose_checkpoint_files(const fs::path& path);

}  // namespace assay
