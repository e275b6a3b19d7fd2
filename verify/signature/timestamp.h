// RFC 3161: a time stamp authority has seen a signature at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "verify/signature/trusted_root.h"

namespace assay::signature {

// When `message` was seen, in seconds, by an authority of the root that was trusted, and whose certificates
// were valid, at that time. Throws Error::refused.
std::int64_t check_timestamp(std::string_view response, std::string_view message, const TrustedRoot& root);

}  // namespace assay::signature
