// Certificate transparency (RFC 6962): a log has seen the signer's certificate before it was issued.
#pragma once

#include "verify/signature/trusted_root.h"

namespace assay::signature {

// The certificate holds exactly one signed certificate timestamp, by a log of the root. `issuer` is the next
// in its chain. Throws Error::refused.
void check_certificate_log(const Certificate& certificate, const Certificate& issuer,
                           const TrustedRoot& root);

}  // namespace assay::signature
