// Digests by OpenSSL's EVP, and BLAKE3, one stream at a time: what is small, and what others are compared with.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/formats/blake3.h"
#include "core/formats/digest.h"
#include "core/system/file.h"

namespace assay {

class StreamDigest {
 public:
  // `length` of the whole message: a git object id begins with it. Not of DigestKind::shards and xet, which are
  // made of other digests.
  StreamDigest(DigestKind kind, std::uint64_t length);
  void update(std::span<const std::byte> bytes);
  Digest finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  DigestKind kind_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
  std::optional<Blake3> blake3_;
};

// One buffer in memory.
Digest digest_of(DigestKind kind, std::span<const std::byte> bytes);
// A whole file, through the page cache: of what has just been written.
Digest sha256_of_file(const File& file);
Digest sha256_of_range(const File& file, std::uint64_t begin, std::uint64_t bytes);

}  // namespace assay
