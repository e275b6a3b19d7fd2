#include "verify/chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay {
namespace {

void check(int result) {
  if (result != 1) throw Error::internal("OpenSSL refuses to compute SHA-256");
}

}  // namespace

std::string http_range(const ByteRange& range) {
  return fmt::format("{}-{}", range.begin, range.end - 1);
}

ChunkSink::ChunkSink(std::uint64_t chunk_bytes, std::size_t limit)
    : chunk_bytes_(chunk_bytes), limit_(limit), context_(EVP_MD_CTX_new()) {
  if (chunk_bytes == 0) throw Error::internal("chunks of no bytes");
  check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void ChunkSink::consume(std::span<const std::byte> bytes) {
  while (!bytes.empty() && digests_.size() < limit_) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), chunk_bytes_ - filled_));
    check(EVP_DigestUpdate(context_.get(), bytes.data(), part));
    filled_ += part;
    bytes = bytes.subspan(part);
    if (filled_ == chunk_bytes_) close();
  }
}

void ChunkSink::finish() {
  if (filled_ > 0) close();
}

void ChunkSink::close() {
  Digest digest;
  check(EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), nullptr));
  check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  digests_.push_back(digest);
  filled_ = 0;
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
