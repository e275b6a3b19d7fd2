// A log's checkpoint: how large it is and the hash of all of it, as a signed note (C2SP signed-note and
// tlog-checkpoint).
//
//   rekor.sigstore.dev - 1193050959916656506
//   24
//   CnRf5Xo3…=
//
//   — rekor.sigstore.dev wNI9ajBFAiEA…
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/signature/trusted_root.h"

namespace assay::signature {

struct NoteSignature {
  std::string name, key_hint, signature;  // the hint is of 4 bytes
};

struct Checkpoint {
  std::string text;  // what is signed
  std::string origin;
  std::int64_t size = 0;
  std::string root;  // 32 bytes
  std::vector<NoteSignature> signatures;
};

// Throws Error::refused.
Checkpoint parse_checkpoint(std::string_view note);
// One of the signatures is the log's, under the origin's name. Others (witnesses') are not asked.
void check_checkpoint(const Checkpoint& checkpoint, const Log& log);

// RFC 6962 §2.1: the root of a tree of `size` leaves in which `leaf_hash` is at `index`, by this proof; empty
// where the proof is not one of such a tree.
std::string root_from_proof(std::int64_t index, std::int64_t size, std::string leaf_hash,
                            const std::vector<std::string>& hashes);
std::string leaf_hash(std::string_view entry);

}  // namespace assay::signature
