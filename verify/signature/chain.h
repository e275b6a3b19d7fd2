// Certificates: the way from a signer to somebody who is trusted, and what a certificate says of the signer.
#pragma once

#include <cstdint>
#include <string>

#include "verify/signature/openssl.h"

namespace assay::signature {

// The chain from `leaf`, itself included, to one of `anchors`, by way of `others`, each certificate valid at
// `time`. An anchor is trusted as it stands, self-signed or not. Throws Error::refused with libcrypto's reason.
Certificates build_chain(const Certificate& leaf, const Certificates& others, const Certificates& anchors,
                         std::int64_t time);

// Whether one of these, or it itself, has signed it. Says nothing of trust: only that it is what somebody issued.
bool is_issued_by_one_of(const Certificate& certificate, const Certificates& issuers);

std::int64_t not_before(const Certificate& certificate);  // seconds
std::int64_t not_after(const Certificate& certificate);

bool may_sign(const Certificate& certificate);        // KeyUsage has digitalSignature
bool is_code_signer(const Certificate& certificate);  // ExtendedKeyUsage has codeSigning
bool is_self_signed(const Certificate& certificate);

// Fulcio's: the e-mail address, URI or user name that it is for, and who asserted that.
struct Identity {
  std::string subject, issuer;
};
Identity identity_of(const Certificate& certificate);

}  // namespace assay::signature
