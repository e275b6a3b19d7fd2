// Shards by their numbers, where an index may name some of them.
#pragma once

#include <span>
#include <string>

#include "core/system/finding.h"

namespace assay {

// As check_shard_numbering() (core/formats/shard_index.h) without the second argument. `indexed`: the names
// in the folder's indexes. Where these name shards of a family, loaders go by them alone (gpt-oss-20b's are
// 00000, 00001 and 00002 "of-00002"), and what is odd about its numbers is worth a note. A set numbered
// 0..N-1 is told by the note index.number_from_zero.
Findings check_shard_numbering(std::span<const std::string> file_names, std::span<const std::string> indexed);

}  // namespace assay
