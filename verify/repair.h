// Mends a damaged file from another copy: only the ranges that are wrong are taken over, into a new file,
// which must hash to what was expected before it takes the old one's place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/system/command_line.h"
#include "core/system/progress.h"
#include "verify/chunks.h"
#include "verify/expected/find.h"

namespace assay {

struct RepairOptions {
  FindOptions find;  // who says what the file should be; a chunked manifest finds the ranges without the copy
  bool dry_run = false;  // name the ranges, write nothing
  int jobs = 1;
  ProgressMode progress = ProgressMode::automatic;
};

enum class RepairOutcome { intact, repaired, damaged, interrupted };  // damaged: and left so, by --dry-run

struct RepairReport {
  RepairOutcome outcome = RepairOutcome::intact;
  std::vector<ByteRange> ranges;  // wrong, or missing at the end
  std::uint64_t bytes = 0;        // in them
  std::uint64_t surplus = 0;      // bytes the file had beyond its right end
  Digest digest;                  // what it should hash to, and does when intact or repaired
  Trust trust;
};

// Throws Error::refused when the copy is wrong in those ranges, is the file itself, or does not lead to the
// expected digest. The file is untouched until the very end.
RepairReport repair(const fs::path& file, const fs::path& copy, const RepairOptions& options);

void add_repair(CLI::App& program, Action& action);

}  // namespace assay
