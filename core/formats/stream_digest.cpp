#include "core/formats/stream_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/system/error.h"

namespace assay {

namespace {

const EVP_MD* algorithm_of(DigestKind kind) {
  switch (kind) {
    case DigestKind::sha256: return EVP_sha256();
    case DigestKind::git_sha1: return EVP_sha1();
    case DigestKind::blake2b: return EVP_blake2b512();
    case DigestKind::sha384: return EVP_sha384();
    case DigestKind::sha512: return EVP_sha512();
    default: throw Error::internal("a stream has no digest of that kind");
  }
}

}  // namespace

StreamDigest::StreamDigest(DigestKind kind, std::uint64_t length) : kind_(kind) {
  if (kind == DigestKind::blake3) {
    blake3_.emplace();
    return;
  }
  context_.reset(EVP_MD_CTX_new());
  const EVP_MD* const algorithm = algorithm_of(kind);
  if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), algorithm, nullptr) != 1) {
    throw Error::input(fmt::format("OpenSSL here does not offer {}", EVP_MD_get0_name(algorithm)))
        .remedy("check the OpenSSL configuration (FIPS mode?)");
  }
  if (kind != DigestKind::git_sha1) return;
  const std::string header = fmt::format("blob {}", length);
  EVP_DigestUpdate(context_.get(), header.c_str(), header.size() + 1);  // its NUL belongs to it
}

void StreamDigest::update(std::span<const std::byte> bytes) {
  if (blake3_)
    blake3_->update(bytes);
  else
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

Digest StreamDigest::finish() {
  if (blake3_) return {kind_, blake3_->finish()};
  std::array<std::byte, 64> long_digest;
  Digest digest{kind_, {}};
  if (kind_ == DigestKind::sha256 || kind_ == DigestKind::git_sha1) {
    EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), nullptr);
    return digest;
  }
  unsigned length = 0;
  EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(long_digest.data()), &length);
  digest.bytes = digest_of(DigestKind::sha256, std::span(long_digest).first(length)).bytes;
  return digest;
}

Digest digest_of(DigestKind kind, std::span<const std::byte> bytes) {
  StreamDigest stream(kind, bytes.size());
  stream.update(bytes);
  return stream.finish();
}

Digest sha256_of_file(const File& file) {
  return sha256_of_range(file, 0, file.size());
}

Digest sha256_of_range(const File& file, std::uint64_t begin, std::uint64_t bytes) {
  StreamDigest digest(DigestKind::sha256, bytes);
  std::vector<std::byte> buffer(std::min<std::uint64_t>(1 << 20, bytes));
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t n = file.read_at(
        begin + done, std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), bytes - done)));
    if (n == 0) throw Error::input("the file ends early").in(file.path());
    digest.update(std::span(buffer).first(n));
    done += n;
  }
  return digest.finish();
}

}  // namespace assay
