#include "verify/receipt_mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <optional>

#include "core/formats/digest.h"
#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {
namespace {

constexpr std::uint64_t kMaxKeyBytes = 64u << 10;
constexpr std::size_t kMinKeyBytes = 16;  // 128 bits
constexpr std::size_t kDigits = 64;
constexpr std::string_view kBefore = "\"mac\": \"";

// Where the code's digits stand. No name in the receipt can imitate it: its quotes would be escaped.
std::optional<std::size_t> find_code(std::string_view text) {
  const auto at = text.rfind(kBefore);
  if (at == text.npos || at + kBefore.size() + kDigits > text.size()) return std::nullopt;
  return at + kBefore.size();
}

std::string code_of(std::string_view text, std::string_view key) {
  Digest digest{DigestKind::sha256, {}};
  unsigned int length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(digest.bytes.data()), &length) == nullptr) {
    throw Error::internal("OpenSSL refuses to compute an HMAC");
  }
  return digest.hex();
}

}  // namespace

std::string read_receipt_key(const std::filesystem::path& file) {
  std::string key = read_small_file(file, kMaxKeyBytes);
  if (key.size() < kMinKeyBytes) {
    throw Error::usage("is too short for a key: at least 16 bytes are needed")
        .in(file)
        .remedy("make one with 'openssl rand -hex 32'");
  }
  return key;
}

std::string mac_placeholder() {
  return std::string(kDigits, '0');
}

std::string sealed(std::string text, std::string_view key) {
  const auto at = find_code(text);
  if (!at) throw Error::internal("a receipt without a place for its code");
  return text.replace(*at, kDigits, code_of(text, key));
}

Seal check_seal(std::string text, std::string_view key) {
  const auto at = find_code(text);
  if (!at) return Seal::none;
  const std::string said = text.substr(*at, kDigits);
  const std::string code = code_of(text.replace(*at, kDigits, mac_placeholder()), key);
  return CRYPTO_memcmp(said.data(), code.data(), kDigits) == 0 ? Seal::whole : Seal::broken;
}

}  // namespace assay
