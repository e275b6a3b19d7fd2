// The names in a checksum file, as those of the files below a folder.
#pragma once

#include <filesystem>

#include "core/formats/checksum_manifest.h"

namespace assay {

inline constexpr std::size_t kNamesTried = 1000;  // the first ones tell for all

// Takes "./" away, and, where no listed name is found below `root`, the folders in front of the names that
// are found without them: `sha256sum /data/model/*` and `sha256sum model/*` are of the folder `model`,
// wherever it lies now. Names of other folders are left out then. A note in the manifest's findings tells of
// either.
void fit_names(ChecksumManifest& manifest, const std::filesystem::path& root);

}  // namespace assay
