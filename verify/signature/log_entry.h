// Rekor, the transparency log of signatures: an entry is in it, and is of this very signature.
#pragma once

#include <string>
#include <string_view>

#include "verify/signature/bundle.h"
#include "verify/signature/trusted_root.h"

namespace assay::signature {

// That the log of the root has the entry: by proof and checkpoint, by its promise, or both; what is there has
// to hold. Versions 0.2 and 0.3 of a bundle have to have the proof. Throws Error::refused.
void check_in_log(const LogEntry& entry, int bundle_version, const TrustedRoot& root);

// Of what the entry has to speak.
struct Logged {
  const Envelope* envelope = nullptr;  // or else:
  std::string message_sha256;
  std::string signature;
  Certificate certificate;
};
// dsse 0.0.1 and 0.0.2, hashedrekord 0.0.1 and 0.0.2, intoto 0.0.2; others are refused by name.
void check_body(const LogEntry& entry, const Logged& logged);

}  // namespace assay::signature
