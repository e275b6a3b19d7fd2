// The file behind `--state`: read as a stream of events and written entry by entry, so that it costs about
// its own size in memory.
//
//   {"schema": "assay.verify-state/1", "tool": "0.1.0", "files": {"<absolute path>#sha256": {"device": …,
//     "inode": …, "size": …, "mtime_ns": …, "ctime_ns": …, "digest": "…",
//     "numbers": true, "tensor_digests": false, "tensors": […]}}}
#pragma once

#include <map>
#include <string>

#include "core/formats/digest.h"
#include "core/system/file.h"

namespace assay {

struct StateEntry {
  FileIdentity identity;
  Digest digest;
  std::string tensors;  // what --numbers / --tensor-digests found, as JSON text; empty when not asked for
  bool numbers = false, tensor_digests = false;
};
using StateEntries = std::map<std::string, StateEntry>;  // key: absolute path + "#" + digest kind

// Throws Error::input for anything but a state file: silently starting over would hide the damage.
StateEntries read_state_file(const fs::path& path);
void write_state_file(const fs::path& path, const StateEntries& entries);

}  // namespace assay
