#include "verify/claims/claim_digest.h"

#include <fmt/format.h>

#include <array>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

struct ClaimAlgorithm {
  std::string_view name;
  const char* openssl;  // nullptr: not one of OpenSSL's
  std::size_t digits;
};

constexpr ClaimAlgorithm kClaimAlgorithms[] = {
    {"sha256", "SHA2-256", 64},         {"sha1", "SHA1", 40},         {"md5", "MD5", 32},
    {"sha224", "SHA2-224", 56},         {"sha384", "SHA2-384", 96},   {"sha512", "SHA2-512", 128},
    {"sha3-256", "SHA3-256", 64},       {"sha3-384", "SHA3-384", 96}, {"sha3-512", "SHA3-512", 128},
    {"blake2b512", "BLAKE2B-512", 128}, {"xxh64", nullptr, 16},       {"uuid", "SHA1", 32},
};

const ClaimAlgorithm* find_algorithm(std::string_view name) {
  for (const ClaimAlgorithm& one : kClaimAlgorithms) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

// uuid5(NAMESPACE_URL, "en.wikipedia.org/wiki/Llama.cpp"), as gguf-hash has it.
constexpr std::array<unsigned char, 16> kLlamaNamespace = {0xef, 0x00, 0x12, 0x06, 0xda, 0xdc, 0x5f, 0x6d,
                                                           0xa1, 0x5f, 0x33, 0x59, 0xe5, 0x77, 0xd4, 0xe5};

}  // namespace

std::size_t claim_digits(std::string_view algorithm) {
  const ClaimAlgorithm* const known = find_algorithm(algorithm);
  return known != nullptr ? known->digits : 0;
}

ClaimDigest::ClaimDigest(std::string_view algorithm) : uuid_(algorithm == "uuid") {
  const ClaimAlgorithm* const known = find_algorithm(algorithm);
  if (known == nullptr) throw Error::internal(fmt::format("there is no digest {}", algorithm));
  if (known->openssl == nullptr) {
    xxh64_.emplace();
    return;
  }
  const std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> rule(EVP_MD_fetch(nullptr, known->openssl, nullptr),
                                                             &EVP_MD_free);
  context_.reset(EVP_MD_CTX_new());
  if (rule == nullptr || context_ == nullptr || EVP_DigestInit_ex(context_.get(), rule.get(), nullptr) != 1)
    throw Error::input(fmt::format("OpenSSL here does not offer {}", known->openssl))
        .remedy("check the OpenSSL configuration (FIPS mode?)");
  if (uuid_) EVP_DigestUpdate(context_.get(), kLlamaNamespace.data(), kLlamaNamespace.size());
}

void ClaimDigest::update(std::span<const std::byte> bytes) {
  if (xxh64_)
    xxh64_->update(bytes);
  else
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string ClaimDigest::finish() {
  if (xxh64_) return fmt::format("{:016x}", xxh64_->finish());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
  if (uuid_) {  // RFC 9562, 5.5
    length = 16;
    digest[6] = static_cast<unsigned char>((digest[6] & 0x0f) | 0x50);
    digest[8] = static_cast<unsigned char>((digest[8] & 0x3f) | 0x80);
  }
  return to_hex(std::span<const std::uint8_t>(digest.data(), length));
}

}  // namespace assay
