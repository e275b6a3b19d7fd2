// A file in equal pieces, each with its own digest: so that damage can be named, and mended, range by range.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/formats/digest.h"
#include "core/formats/hash/hasher.h"

namespace assay {

struct ByteRange {
  std::uint64_t begin = 0, end = 0;  // end exclusive
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
// "16777216-33554431", the last byte included: what `curl -r` and HTTP's Range take.
std::string http_range(const ByteRange& range);

// Digests every `chunk_bytes` of the file it listens to; the last chunk may be shorter, an empty file has
// none. What comes after `limit` chunks is let pass.
class ChunkSink : public ByteSink {
 public:
  explicit ChunkSink(std::uint64_t chunk_bytes, std::size_t limit = SIZE_MAX,
                     DigestKind kind = DigestKind::sha256);
  void consume(std::span<const std::byte> bytes) override;
  void finish() override;
  const std::vector<Digest>& digests() const { return digests_; }

 private:
  void close();
  std::uint64_t chunk_bytes_;
  std::size_t limit_;
  DigestKind kind_;
  std::uint64_t filled_ = 0;  // of the open chunk
  std::optional<StreamDigest> open_;
  std::vector<Digest> digests_;
};

// Of DigestKind::shards: what stands for all of them.
Digest digest_of_chunks(std::span<const Digest> chunks);

// Where `actual` differs from `expected`, neighbouring chunks joined. `size` is that of the file as it should
// be; what it has beyond that is not a range to mend.
std::vector<ByteRange> damaged_ranges(std::span<const Digest> actual, std::span<const Digest> expected,
                                      std::uint64_t chunk_bytes, std::uint64_t size);

}  // namespace assay
