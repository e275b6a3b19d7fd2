// Signing, by a key or by a certificate: the same bundles that model-signing writes, and cosign for files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "verify/signature/keys.h"
#include "verify/signature/openssl.h"
#include "verify/signature/verify_bundle.h"

namespace assay::signature {

struct SigningKey {
  PrivateKey key;
  Certificates chain;  // the signer's first; empty: by the key alone
  std::string words;   // for people: who signs
};

// `certificate`: PEM, the signer's first and those above it, the root excepted. Throws Error::input; also for a key
// that is not on one of OMS's curves, or not the certificate's, and for a certificate that is not for signing.
SigningKey read_signing_key(const std::filesystem::path& key,
                            const std::optional<std::filesystem::path>& certificate);

// As what it signs is verified: by its own key, or by a certificate that leads to the last of its chain.
Method method_of(const SigningKey& key);

// Bundles, in JSON. Each is verified before it is handed out.
std::string sign_statement(std::string_view payload, const SigningKey& key);
std::string sign_text(std::string_view text, const SigningKey& key);

}  // namespace assay::signature
