// Models in OCI layouts (ModelPack, KitOps, `oras` and `skopeo` copies) and in Docker Model Runner's store:
//
//   oci-layout, index.json      manifests by digest, which may be indexes of more
//   models.json, layout.json    Docker Model Runner: ids of manifests, with their tags
//   manifests/sha256/HEX        its manifests
//   blobs/sha256/HEX            everything else
#pragma once

#include <optional>
#include <string>

#include "verify/expected/expected.h"

namespace assay {

bool is_oci_layout(const fs::path& path);

// Every manifest and every layer by its digest; blobs that no manifest names by their own names. Layers are compared as they
// are stored: raw, tar, gzip or zstd. What lies beside its blobs proves that nothing has rotted, unless `pin` (--digest)
// says which manifest is meant: then it and its layers alone are looked at. Throws Error::input, Error::usage.
Expectation expect_from_oci(const fs::path& root, const std::optional<std::string>& pin = std::nullopt);

}  // namespace assay
