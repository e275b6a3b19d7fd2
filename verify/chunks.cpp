#include "verify/chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay {
std::string http_range(const ByteRange& range) {
  return fmt::format("{}-{}", range.begin, range.end - 1);
}

ChunkSink::ChunkSink(std::uint64_t chunk_bytes, std::size_t limit, DigestKind kind)
    : chunk_bytes_(chunk_bytes), limit_(limit), kind_(kind) {
  if (chunk_bytes == 0) throw Error::internal("chunks of no bytes");
}

void ChunkSink::consume(std::span<const std::byte> bytes) {
  while (!bytes.empty() && digests_.size() < limit_) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), chunk_bytes_ - filled_));
    if (!open_) open_.emplace(kind_, 0);
    open_->update(bytes.first(part));
    filled_ += part;
    bytes = bytes.subspan(part);
    if (filled_ == chunk_bytes_) close();
  }
}

void ChunkSink::finish() {
  if (filled_ > 0) close();
}

void ChunkSink::close() {
  digests_.push_back(open_->finish());
  open_.reset();
  filled_ = 0;
}

Digest digest_of_chunks(std::span<const Digest> chunks) {
  StreamDigest all(DigestKind::sha256, 0);
  for (const Digest& chunk : chunks) all.update(std::as_bytes(std::span(chunk.bytes)));
  return {DigestKind::shards, all.finish().bytes};
}

std::vector<ByteRange> damaged_ranges(std::span<const Digest> actual, std::span<const Digest> expected,
                                      std::uint64_t chunk_bytes, std::uint64_t size) {
  std::vector<ByteRange> ranges;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i < actual.size() && actual[i] == expected[i]) continue;
    if (i > size / chunk_bytes) break;
    const std::uint64_t begin = i * chunk_bytes;
    const std::uint64_t end = begin + std::min(chunk_bytes, size - begin);
    if (begin == end) break;
    if (!ranges.empty() && ranges.back().end == begin)
      ranges.back().end = end;
    else
      ranges.push_back({begin, end});
  }
  return ranges;
}

}  // namespace assay
