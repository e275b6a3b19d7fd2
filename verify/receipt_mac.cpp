#include "verify/receipt_mac.h"

#include <openssl/crypto.h>

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
std::optional<std::size_t> find_mac(std::string_view text) {
  const auto at = text.rfind(kBefore);
  if (at == text.npos || at + kBefore.size() + kDigits > text.size()) return std::nullopt;
  return at + kBefore.size();
}

void require(int done) {
  if (done != 1) throw Error::internal("OpenSSL refuses to compute an HMAC");
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

TextCode::TextCode(std::string_view key) : context_(EVP_MD_CTX_new()) {
  struct FreeKey {
    void operator()(EVP_PKEY* given) const { EVP_PKEY_free(given); }
  };
  const std::unique_ptr<EVP_PKEY, FreeKey> secret(EVP_PKEY_new_raw_private_key(
      EVP_PKEY_HMAC, nullptr, reinterpret_cast<const unsigned char*>(key.data()), key.size()));
  require(secret != nullptr ? EVP_DigestSignInit(context_.get(), nullptr, EVP_sha256(), nullptr, secret.get())
                            : 0);
}

void TextCode::add(std::string_view text) {
  require(EVP_DigestSignUpdate(context_.get(), text.data(), text.size()));
}

std::string TextCode::hex() {
  Digest digest{DigestKind::sha256, {}};
  std::size_t length = digest.bytes.size();
  require(EVP_DigestSignFinal(context_.get(), digest.bytes.data(), &length));
  return digest.hex();
}

void SealedText::write(std::string piece) {
  if (!last_.empty()) {
    code_.add(last_);
    write_(last_);
  }
  last_ = std::move(piece);
}

void SealedText::finish() {
  const auto at = find_mac(last_);
  if (!at) throw Error::internal("a receipt without a place for its code");
  code_.add(last_);
  write_(last_.replace(*at, kDigits, code_.hex()));
}

Seal check_seal(std::string_view text, std::string_view key) {
  const auto at = find_mac(text);
  if (!at) return Seal::none;
  const std::string said(text.substr(*at, kDigits));
  TextCode code(key);
  code.add(text.substr(0, *at));
  code.add(mac_placeholder());
  code.add(text.substr(*at + kDigits));
  return CRYPTO_memcmp(said.data(), code.hex().data(), kDigits) == 0 ? Seal::whole : Seal::broken;
}

}  // namespace assay
