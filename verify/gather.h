// Receipts of many ranks in one folder that all of them see: each puts its own there, whole (written beside and renamed);
// rank 0 waits for the others and gives one verdict.
//
//   rank-00003.begun   it has begun: which run, on which node
//   rank-00003.json    its receipt
//
// How long is waited is told by a clock that only goes forward; no time of any file or receipt means anything, so that it
// does not matter what each node takes the time to be.
#pragma once

#include <functional>
#include <string>

#include "core/system/launcher.h"
#include "verify/merged.h"

namespace assay {

struct GatherRequest {
  fs::path folder;
  LaunchedRank rank;
  NodeMode mode = NodeMode::share;
  std::string list;  // of files, that rank 0 itself compared with
  std::int64_t seconds = 600;
  ReceiptKey key;
  const SignatureMethods* signers =
      nullptr;  // by one of whom each receipt has to be signed, if any are given
};

// Makes the folder, and says there that this rank has begun. Throws Error::io where that cannot be written: better now
// than after the work.
void tell_begun(const fs::path& folder, const LaunchedRank& rank);

// Waits until every rank's receipt of this run is there, or until the time is over or the user has had enough.
MergedReport gather(const GatherRequest& request);

}  // namespace assay
