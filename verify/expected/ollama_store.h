// Ollama's store of models, as ollama/ollama's manifest/ lays it out:
//
//   models/manifests/HOST/NAMESPACE/MODEL/TAG    JSON: layers {mediaType, digest, size, name}, config
//   models/blobs/sha256-HEX                      what the layers name, each once
//   models/blobs/sha256-HEX-partial, …-partial-N what is left of a download
#pragma once

#include <optional>
#include <string>

#include "verify/expected/expected.h"

namespace assay {

// The store that holds `path`: the folder `models` itself or the one above it, its folders of manifests and blobs, one
// of their files, a model's folder. By its shape, without following links.
std::optional<fs::path> ollama_store_of(const fs::path& path);

// Of the manifests at or below `path` every layer; of the whole store also blobs that no manifest names, by their own
// names. A manifest lies beside its blobs: it proves that nothing has rotted, unless `pin` (--digest, "sha256:HEX") says
// what the manifest itself has to be. Throws Error::input for a path that holds no manifest, Error::usage for a pin of
// several manifests.
Expectation expect_from_ollama(const fs::path& path, const std::optional<std::string>& pin = std::nullopt);

}  // namespace assay
