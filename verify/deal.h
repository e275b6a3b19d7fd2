// One copy of a model, read by many ranks: which of them reads what. Every rank works it out by itself, from the same
// list, and all come to the same.
//
// Files go to ranks by size, the largest first, each to whoever has least. What is larger than a sixteenth of a rank's
// share and has digests of its chunks is cut: its chunks fill up what the others left, in one run for each rank. What
// is no weight and no burden stays with rank 0, which looks at the folder as a whole.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/stream_digest.h"
#include "verify/chunks.h"
#include "verify/expected/expected.h"

namespace assay {

struct NodeShare {
  std::uint32_t rank = 0, ranks = 1;
};

struct Dealt {
  std::vector<char> mine;                               // of each file of the expectation
  std::map<std::string, std::vector<ByteRange>> parts;  // of files that were cut: what of them is mine
  std::uint64_t bytes = 0, total = 0;                   // mine, and everybody's
  std::string uncut;              // the largest file that no rank can share, where it is more
  std::uint64_t uncut_bytes = 0;  // than anybody's share
};

// Of the files that `accepted` takes. Sizes are the expected ones, else those on disk.
Dealt deal_out(const Expectation& expectation, const NodeShare& share,
               const std::function<bool(const std::string&)>& accepted);

// What all who speak of the same list of files agree on: SHA-256 over the names, digests and sizes of what is expected.
class ListDigest {
 public:
  void add(std::string_view name, const Digest& expected, KnownSize size);  // in order of names
  std::string hex();                                                        // once, at the end

 private:
  StreamDigest digest_{DigestKind::sha256, 0};
};

// Bytes [0, size) in spans of chunks, each of which starts and ends where a chunk does.
std::vector<ByteRange> chunks_of(const ByteRange& span, std::uint64_t chunk_bytes);

}  // namespace assay
