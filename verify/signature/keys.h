// Public and private keys: which are taken, and what a signature of each kind is.
//
//   EC P-256, P-384, P-521   ECDSA over SHA-256, SHA-384, SHA-512
//   Ed25519                  as it is
//   RSA, 2048 bits or more   PKCS #1 v1.5 over SHA-256
#pragma once

#include <openssl/evp.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "verify/signature/openssl.h"

namespace assay::signature {

class PublicKey {
 public:
  // Throws Error::input for what is no public key, or none of those above. A PEM certificate is refused: its
  // key is not to be trusted without its issuer.
  static PublicKey from_pem(std::string_view text, const std::filesystem::path& source);
  // SubjectPublicKeyInfo, whole; nullopt where it is not, or of a kind that is not taken.
  static std::optional<PublicKey> from_der(std::string_view der);
  static std::optional<PublicKey> of(const Certificate& certificate);

  bool verifies(std::string_view message, std::string_view signature) const;
  // Of a message of which only the SHA-256 is known: EC and RSA.
  bool verifies_sha256(std::string_view digest, std::string_view signature) const;

  std::string kind() const;  // "EC P-256"
  std::string der() const;
  std::string pem() const;
  // SHA-256 of the PEM text, in hex: what OMS calls the key's hint.
  std::string hint() const;

 private:
  friend class PrivateKey;
  explicit PublicKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}
  bool verifies_with(const EVP_MD* hash, std::string_view message, std::string_view signature) const;
  std::shared_ptr<EVP_PKEY> key_;
};

class PrivateKey {
 public:
  // Throws Error::input; of an encrypted key too: assay asks for no passphrase.
  static PrivateKey from_pem(std::string_view text, const std::filesystem::path& source);
  std::string sign(std::string_view message) const;
  PublicKey public_key() const { return PublicKey(key_); }

 private:
  explicit PrivateKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}
  std::shared_ptr<EVP_PKEY> key_;
};

}  // namespace assay::signature
