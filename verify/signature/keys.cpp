#include "verify/signature/keys.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "core/system/error.h"
#include "verify/signature/encoding.h"

namespace assay::signature {
namespace {

constexpr int kFewestRsaBits = 2048;

using DigestContext = Owned<EVP_MD_CTX, EVP_MD_CTX_free>;

std::string curve_of(const EVP_PKEY* key) {
  char name[64] = {};
  if (EVP_PKEY_get_group_name(key, name, sizeof name, nullptr) != 1) return {};
  const std::string_view curve = name;
  if (curve == "prime256v1" || curve == "P-256") return "P-256";
  if (curve == "secp384r1" || curve == "P-384") return "P-384";
  if (curve == "secp521r1" || curve == "P-521") return "P-521";
  return {};
}

bool is_taken(const EVP_PKEY* key) {
  if (key == nullptr) return false;
  if (EVP_PKEY_is_a(key, "EC") == 1) return !curve_of(key).empty();
  if (EVP_PKEY_is_a(key, "RSA") == 1) return EVP_PKEY_get_bits(key) >= kFewestRsaBits;
  return EVP_PKEY_is_a(key, "ED25519") == 1;
}

// nullptr: the signature's algorithm hashes by itself.
const EVP_MD* hash_for(const EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "ED25519") == 1) return nullptr;
  if (EVP_PKEY_is_a(key, "EC") != 1) return EVP_sha256();
  const std::string curve = curve_of(key);
  return curve == "P-384" ? EVP_sha384() : curve == "P-521" ? EVP_sha512() : EVP_sha256();
}

std::shared_ptr<EVP_PKEY> shared(EVP_PKEY* key) {
  return {key, EVP_PKEY_free};
}

Error not_taken(const std::filesystem::path& source) {
  return Error::input("is of a kind that signs no models")
      .in(source)
      .remedy("give a key on P-256, P-384 or P-521, an Ed25519 key, or RSA of 2048 bits or more");
}

// A key file is asked for no passphrase.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

PublicKey PublicKey::from_pem(std::string_view text, const std::filesystem::path& source) {
  const auto memory = memory_of(text);
  auto key = shared(PEM_read_bio_PUBKEY(memory.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    throw Error::input("holds no public key")
        .in(source)
        .remedy("give it in PEM, BEGIN PUBLIC KEY; of a certificate's issuer, --ca");
  }
  if (!is_taken(key.get())) throw not_taken(source);
  return PublicKey(std::move(key));
}

std::optional<PublicKey> PublicKey::from_der(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  auto key = shared(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  if (!is_taken(key.get()) || at != bytes_of(der) + der.size()) return std::nullopt;
  return PublicKey(std::move(key));
}

std::optional<PublicKey> PublicKey::of(const Certificate& certificate) {
  auto key = shared(X509_get_pubkey(certificate.get()));
  ERR_clear_error();
  if (!is_taken(key.get())) return std::nullopt;
  return PublicKey(std::move(key));
}

bool PublicKey::verifies_with(const EVP_MD* hash, std::string_view message,
                              std::string_view signature) const {
  const DigestContext context(EVP_MD_CTX_new());
  const bool good = EVP_DigestVerifyInit(context.get(), nullptr, hash, nullptr, key_.get()) == 1 &&
                    EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message),
                                     message.size()) == 1;
  ERR_clear_error();
  return good;
}

// Many signers hash with SHA-256 whatever the curve (cosign; model-signing 0.2): that is as good.
bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
  const EVP_MD* hash = hash_for(key_.get());
  if (verifies_with(hash, message, signature)) return true;
  return hash != nullptr && hash != EVP_sha256() && verifies_with(EVP_sha256(), message, signature);
}

bool PublicKey::verifies_sha256(std::string_view digest, std::string_view signature) const {
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(EVP_PKEY_CTX_new(key_.get(), nullptr));
  const bool rsa = EVP_PKEY_is_a(key_.get(), "RSA") == 1;
  const bool good = EVP_PKEY_verify_init(context.get()) == 1 &&
                    (!rsa || EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_PADDING) == 1) &&
                    EVP_PKEY_CTX_set_signature_md(context.get(), EVP_sha256()) == 1 &&
                    EVP_PKEY_verify(context.get(), bytes_of(signature), signature.size(), bytes_of(digest),
                                    digest.size()) == 1;
  ERR_clear_error();
  return good;
}

std::string PublicKey::kind() const {
  if (EVP_PKEY_is_a(key_.get(), "EC") == 1) return "EC " + curve_of(key_.get());
  if (EVP_PKEY_is_a(key_.get(), "RSA") == 1) return "RSA " + std::to_string(EVP_PKEY_get_bits(key_.get()));
  return "Ed25519";
}

std::string PublicKey::der() const {
  return der_of(key_.get(), i2d_PUBKEY);
}

std::string PublicKey::pem() const {
  const Owned<BIO, BIO_free> memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(memory.get(), key_.get());
  char* data = nullptr;
  const long length = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<std::size_t>(length));
}

std::string PublicKey::hint() const {
  return hex(sha256(pem()));
}

PrivateKey PrivateKey::from_pem(std::string_view text, const std::filesystem::path& source) {
  const auto memory = memory_of(text);
  auto key = shared(PEM_read_bio_PrivateKey(memory.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    throw Error::input("holds no private key that can be read without a passphrase")
        .in(source)
        .remedy("give it in PEM, BEGIN PRIVATE KEY; openssl pkey takes a passphrase off");
  }
  if (!is_taken(key.get())) throw not_taken(source);
  return PrivateKey(std::move(key));
}

std::string PrivateKey::sign(std::string_view message) const {
  const DigestContext context(EVP_MD_CTX_new());
  std::size_t length = 0;
  if (EVP_DigestSignInit(context.get(), nullptr, hash_for(key_.get()), nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &length, bytes_of(message), message.size()) != 1)
    throw Error::internal("libcrypto does not sign: " + openssl_reason());
  std::string signature(length, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length,
                     bytes_of(message), message.size()) != 1)
    throw Error::internal("libcrypto does not sign: " + openssl_reason());
  signature.resize(length);
  return signature;
}

}  // namespace assay::signature
