// A Hugging Face cache as huggingface_hub lays it out (its docs, "Understand caching"):
//
//   models--org--name/
//     refs/main                             the commit's id
//     snapshots/<commit>/config.json     -> ../../blobs/<40 hex: git object id>
//     snapshots/<commit>/model.safetensors  -> ../../blobs/<64 hex: sha256>
//     blobs/<hex>, blobs/<hex>.incomplete, blobs/<hex>.<8 hex>.incomplete
//     trees/<commit>.json                   every file of the commit, since huggingface_hub 1.22
//     .no_exist/<commit>/…                  files the hub was asked for and did not have
#pragma once

#include <optional>
#include <string>

#include "verify/expected/expected.h"

namespace assay {

enum class HubCachePlace { cache, model, snapshot, blobs, blob };
// What `path` is: the folder of many models--…, one of them, a snapshot (or something in it), the folder of
// blobs, one of them; by its shape, without following links. A folder `blobs` that was copied out of its
// cache is known by its files: all of them have digests for names.
std::optional<HubCachePlace> hub_cache_place(const fs::path& path);

// `path`: any of the above. One snapshot becomes the root; several keep their path below the model's or the
// cache's folder. A name's bytes are looked for in the blob it links to, so equal paths need to be read only
// once.
Expectation expect_from_hub_cache(const fs::path& path);

}  // namespace assay
