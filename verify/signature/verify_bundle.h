// Whether a bundle was signed by whom the user trusts, in the way the user names. A bundle never chooses how
// it is verified.
//
//   key           by this public key
//   certificate   by a certificate that leads to one of these
//   keyless       by this identity, as this issuer had it, for a certificate of Sigstore's; traced back to a root
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "verify/signature/bundle.h"
#include "verify/signature/chain.h"
#include "verify/signature/keys.h"
#include "verify/signature/trusted_root.h"

namespace assay::signature {

struct ByKey {
  PublicKey key;
  std::string file;  // for people
};
struct ByCertificate {
  Certificates anchors;
};
struct Keyless {
  Identity demanded;
  const TrustedRoot* root = nullptr;
};
using Method = std::variant<ByKey, ByCertificate, Keyless>;
std::string_view name_of(const Method& method);  // "key", "certificate", "keyless"

// What is known once a bundle is verified.
struct Signer {
  std::string method;                    // name_of() it
  std::string words;                     // "key EC P-256 5e1f… (lab.pub)": for the trust line
  Identity identity = {};                // keyless
  std::string certificate = {};          // SHA-256 of it, hex; of a key, its hint
  std::vector<std::int64_t> times = {};  // keyless: when, in seconds, by each witness
  std::string root = {};                 // keyless: whose
  bool expired = false;                  // certificate: no longer valid today
};

// Throws Error::refused with the reason, in words that follow "the signature is not good: ".
// `message`: what a bundle without an envelope is of.
Signer verify_bundle(const Bundle& bundle, const Method& method,
                     const std::optional<std::string_view>& message = std::nullopt);

}  // namespace assay::signature
