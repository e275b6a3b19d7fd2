// A receipt: proof, for a gate that cannot wait for a hash, that these very files were verified, when, by
// what, and against whose digests. It holds as long as every file's size, mtime, ctime and inode are what
// they were.
//
//   assay verify DIR --receipt r.json          writes it (whatever the verdict; the verdict is inside)
//   assay verify DIR --check-receipt r.json --max-age 24h     milliseconds
#pragma once

#include <optional>
#include <string>

#include "core/system/finding.h"
#include "core/system/report.h"
#include "verify/verify_report.h"

namespace assay {

Json make_receipt(const VerifyReport& report);  // schema assay.receipt/1

struct ReceiptCheck {
  Findings findings;  // errors: not good enough to rely on
  std::uint64_t files = 0;
  std::string origin;  // what the digests were compared with
  std::int64_t age_seconds = 0;
};
// `path`: what was verified (a folder, a file, a hub cache); `max_age_seconds`: none when absent.
ReceiptCheck check_receipt(const fs::path& receipt, const fs::path& path,
                           std::optional<std::int64_t> max_age_seconds);

// "24h", "90m", "30s", "7d" -> seconds. Throws Error::usage.
std::int64_t parse_duration(std::string_view text);

}  // namespace assay
