// Files that were dealt out by their chunks: of each, the chunks of this rank are read and compared.
#pragma once

#include "verify/verify.h"

namespace assay {

// Of the files in `report.parts`. Their status stands then, and which of their ranges are damaged.
void read_parts(VerifyReport& report, const VerifyOptions& options, VerifyObserver& observer);

}  // namespace assay
