// Manifests that llama.cpp's gguf-hash writes: digests of the tensors of GGUF files.
//
//   sha256    4d7a…2393  model.gguf:blk.0.attn_q.weight     of one tensor; so sha1, xxh64
//   sha256    09af…77c2  model.gguf                         of all of them, one after the other
//   uuid      7dab…-…    model.gguf                         version 5, from their SHA-1
//
// What they say, they say of tensors: a file's metadata is vouched for by nobody.
#pragma once

#include <string_view>

#include "verify/expected/expected.h"

namespace assay {

bool is_gguf_hash_manifest(std::string_view text);

// The files it names, below `root` by their names without folders, with what it says of their tensors as claims.
Expectation expect_from_gguf_hashes(std::string_view text, const fs::path& source, const fs::path& root);

}  // namespace assay
