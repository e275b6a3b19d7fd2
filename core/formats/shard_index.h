// `model.safetensors.index.json`: which shard holds which tensor; and the shard numbering in file names.
//
//   {"metadata": {"total_size": 688574839360},
//    "weight_map": {"lm_head.weight": "model-00160-of-000163.safetensors"}}
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/safetensors.h"
#include "core/system/finding.h"

namespace assay {

struct ShardIndex {
  std::optional<std::uint64_t> total_size;                     // bytes of all tensors, as the index claims
  std::map<std::string, std::string, std::less<>> weight_map;  // tensor -> file name (no folder)
  std::vector<std::string> shards() const;                     // distinct file names, sorted
};

inline constexpr std::uint64_t kMaxIndexBytes = 512ull << 20;  // 497,000 tensors take 60 MB

// Refuses unsafe shard names, shards in other folders and duplicate tensors, with a clear Error. The text is
// read as a stream of events: a large index costs its own bytes and the map's.
ShardIndex parse_shard_index(std::string_view text, const fs::path& source);
ShardIndex read_shard_index(const fs::path& path);

// "model-00001-of-000163.safetensors" -> {"model", 1, 163, ".safetensors"}; also GGUF's
// "-00001-of-00003.gguf".
struct ShardName {
  std::string stem;
  std::uint64_t number = 0, count = 0;
  std::string extension;
};
std::optional<ShardName> parse_shard_name(std::string_view file_name);

// Numbering 1..N of every family of shard names among `file_names`. Codes index.number_missing,
// index.number_out_of_range, index.number_twice, index.counts_differ.
Findings check_shard_numbering(std::span<const std::string> file_names);

// Index against the headers of the shards that could be read: shard missing, tensor not in the shard it
// names, tensor in another shard, tensor in two shards, tensor in no index, shard in no index, total_size
// wrong. Codes index.shard_missing, index.tensor_missing, index.tensor_misplaced, index.tensor_twice,
// index.tensor_unlisted, index.shard_unlisted, index.total_size (docs/findings.md). A code that would be
// repeated without end is told a few times, and the rest counted.
struct ShardHeader {
  std::string file_name;
  const safetensors::Header* header;  // nullptr: present but unreadable (reported elsewhere)
};
Findings check_shard_index(const ShardIndex& index, std::string_view index_name,
                           std::span<const ShardHeader> shards);

}  // namespace assay
