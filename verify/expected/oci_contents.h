// An OCI layout as the list of the files that its layers hold: for a model's folder that was unpacked from it.
#pragma once

#include <optional>
#include <string>

#include "verify/expected/expected.h"

namespace assay {

// Reads the layers of the one model in `layout`, or of the manifest that `pin` (--digest) names: of a raw layer its digest
// is the file's; an archive is unpacked as a stream, and each file in it hashed, while the layer is held against its own
// digest. `root`: the folder its names are relative to. Throws Error::input where a layer or manifest is damaged or missing,
// and where there are several models.
Expectation expect_from_oci_contents(const fs::path& layout, const std::optional<std::string>& pin,
                                     const fs::path& root);

}  // namespace assay
