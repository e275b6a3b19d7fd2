// Xet's hash of a file, by the chunker of today and by that of before September 2025.
#pragma once

#include "core/formats/digest.h"

namespace assay {

struct XetDigests {
  Digest current{DigestKind::xet, {}}, older{DigestKind::xet, {}};
  bool include(const Digest& digest) const { return digest == current || digest == older; }
  friend bool operator==(const XetDigests&, const XetDigests&) = default;
};

}  // namespace assay
