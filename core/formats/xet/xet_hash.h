// Xet's hash of a file (huggingface/xet-core), in both dialects that hubs have listed.
//
// The bytes are cut into chunks of 8 to 128 KiB where their contents say so, each chunk is hashed by BLAKE3, and
// a tree over these gives the file's. Until September 2025 (xet-core PR #487) a chunk could also end up to
// 64 bytes before the shortest length, by chance: files uploaded before have hashes of that older dialect.
//
//   XetHasher hasher(jobs);  hasher.update(bytes);  hasher.finish();   // {current, older}
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/formats/xet/gear.h"
#include "core/formats/xet/tree.h"
#include "core/formats/xet/xet_digests.h"
#include "core/system/errands.h"

namespace assay {

class XetHasher {
 public:
  // `jobs`: threads that may work at one file: the caller finds the cuts, others hash what is between them.
  explicit XetHasher(int jobs = 1);
  void update(std::span<const std::byte> bytes);
  // Where the next bytes may be put, to be given to update() there: they are not copied then.
  std::span<std::byte> room();
  XetDigests finish();

 private:
  struct Chunk {
    std::size_t begin = 0, end = 0;  // in bytes_
    friend auto operator<=>(const Chunk&, const Chunk&) = default;
  };
  struct Dialect {
    bool older = false;
    std::size_t begin = 0;  // of the chunk that is open, in bytes_
    std::vector<Chunk> cut = {};
    xet::HashTree tree = {};
  };
  struct Cuts {  // that were found at once
    std::vector<Chunk> current = {}, older = {}, both = {};
    std::vector<std::span<const std::byte>> messages = {};  // of `both`
    std::vector<xet::Hash> hashes = {};                     // as many
  };

  void work(bool last);
  void mark();
  void cut(Dialect& dialect, bool last) const;
  std::optional<std::size_t> end_of(const Dialect& dialect, bool last) const;
  void hash_cuts();
  void settle();
  void drop_done();

  std::span<const std::byte> part(std::size_t begin, std::size_t end) const {
    return {&bytes_[begin], end - begin};
  }

  const std::size_t most_;              // bytes held
  std::unique_ptr<std::byte[]> bytes_;  // from the first on that no dialect has hashed
  std::size_t filled_ = 0;              // of bytes_
  std::vector<std::uint64_t> marks_;    // of what is searched at once
  xet::CutEnds ends_;
  std::size_t marked_ = 0;  // of bytes_
  std::uint64_t rolled_ = 0;
  Dialect current_{.older = false}, older_{.older = true};
  std::deque<Cuts> open_;  // whose hashes are not in the trees yet
  Errands errands_;        // after what its threads use
};

}  // namespace assay
