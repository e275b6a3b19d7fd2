// RamaLama's store of models, as containers/ramalama's model_store/ lays it out:
//
//   store/SOURCE/ORG/MODEL/refs/TAG.json        {hash, files: [{hash, name, type}]}; plain lines before 0.8
//   store/SOURCE/ORG/MODEL/blobs/sha256-HEX     what the files are
//   store/SOURCE/ORG/MODEL/snapshots/HASH/NAME  links to them, or copies
//
// Not every blob is called by its contents: of what its source gives no SHA-256 of (a config.json, a model behind a URL,
// further parts of a GGUF file) RamaLama takes the SHA-256 of the *name*. Such a file nobody vouches for.
#pragma once

#include <optional>
#include <vector>

#include "verify/expected/expected.h"

namespace assay {

// The folders of models at or below `path`, or the one that holds it; none: it is no such store.
std::vector<fs::path> ramalama_models_at(const fs::path& path);

Expectation expect_from_ramalama(const fs::path& path, const std::vector<fs::path>& models);

}  // namespace assay
