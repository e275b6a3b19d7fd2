#include "core/formats/stream_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/system/error.h"

namespace assay {

StreamDigest::StreamDigest(DigestKind kind, std::uint64_t length) : kind_(kind), context_(EVP_MD_CTX_new()) {
  const EVP_MD* const algorithm = kind == DigestKind::sha256 ? EVP_sha256() : EVP_sha1();
  if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), algorithm, nullptr) != 1) {
    throw Error::input("OpenSSL here does not offer " +
                       std::string(kind == DigestKind::sha256 ? "SHA-256" : "SHA-1"))
        .remedy("check the OpenSSL configuration (FIPS mode?)");
  }
  if (kind != DigestKind::git_sha1) return;
  const std::string header = fmt::format("blob {}", length);
  EVP_DigestUpdate(context_.get(), header.c_str(), header.size() + 1);  // its NUL belongs to it
}

void StreamDigest::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

Digest StreamDigest::finish() {
  Digest digest{kind_, {}};
  EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), nullptr);
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
