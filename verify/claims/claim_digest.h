// The digests that claims are made with: those of OpenSSL by name, and those that gguf-hash adds.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "verify/claims/xxh64.h"

namespace assay {

// "sha256", "sha1", "md5", "sha224", "sha384", "sha512", "sha3-256", "sha3-384", "sha3-512", "blake2b512", "xxh64",
// "uuid" (version 5, from SHA-1, in the namespace of llama.cpp). Hexadecimal digits of such a digest; 0 of any other name.
std::size_t claim_digits(std::string_view algorithm);

class ClaimDigest {
 public:
  // Throws Error::input where OpenSSL does not offer it, Error::internal for another name.
  explicit ClaimDigest(std::string_view algorithm);
  void update(std::span<const std::byte> bytes);
  std::string finish();  // lower-case digits

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  bool uuid_ = false;
  std::optional<Xxh64> xxh64_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace assay
