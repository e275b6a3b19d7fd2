// One file being hashed: where it is read, how far it has come, and what has been found.
#pragma once

#include <optional>
#include <span>

#include "core/formats/hash/file_reader.h"
#include "core/formats/hash/hasher.h"
#include "core/formats/hash/message.h"
#include "core/formats/stream_digest.h"

namespace assay {

class Lane {
 public:
  Lane(ReadPool& pool, Wakeup& wakeup, bool keep_cache, std::size_t stagger)
      : reader_(pool, wakeup, keep_cache, stagger) {}

  // Starts a file. A failure to open it is an ended lane with an error.
  void start(std::size_t index, HashJob job);

  enum class Step {
    blocks,   // message() has blocks to be compressed
    waiting,  // for the disk
    ended,    // result() is final
  };
  // Fetches bytes, feeds the sink, and hashes what needs no other lane, until one of these holds.
  Step prepare(Progress* progress, bool idle_cores);

  bool busy() const { return job_.has_value(); }
  sha256::Message& message() { return message_; }

  std::size_t index() const { return index_; }
  HashResult take_result();  // and be free for another file

 private:
  std::span<std::byte> room() const;
  void accept(std::span<const std::byte> chunk);
  void finish();
  void fail(Error error);

  FileReader reader_;
  std::optional<HashJob> job_;
  std::size_t index_ = 0;
  HashResult result_;
  bool ended_ = false;

  sha256::Message message_;
  std::optional<StreamDigest> apart_;  // of another kind than SHA-256, which goes alone
};

}  // namespace assay
