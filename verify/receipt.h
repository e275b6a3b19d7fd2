// A receipt: proof, for a gate that cannot wait for a hash, that these very files were verified, when, by
// what, against whose digests, and what was left out. It holds as long as every file's size, mtime, ctime and
// inode are what they were, and no file was added.
//
//   assay verify DIR --receipt r.json --receipt-key K          writes it (whatever the verdict; it is inside)
//   assay verify DIR --check-receipt r.json --receipt-key K --max-age 24h         milliseconds
#pragma once

#include <optional>
#include <string>

#include "core/system/finding.h"
#include "core/system/json_stream.h"
#include "core/system/launcher.h"
#include "verify/verify.h"

namespace assay {

// Writes the receipt's text (schema assay.receipt/1), file by file, authenticated where `key` is one
// (receipt_mac.h).
//
// `rank`: of many, whose part of one copy (--share), or whose copy, was verified; a receipt of a part is none of the
// whole.
void write_receipt(const VerifyReport& report, const VerifyOptions& options,
                   const std::optional<std::string>& key, const WriteText& write,
                   const LaunchedRank* rank = nullptr);

// Of a rank that had nothing to do, for another of its node verifies the node's copy.
void write_idle_receipt(const LaunchedRank& rank, const std::optional<std::string>& key,
                        const WriteText& write);

struct ReceiptCheck {
  Findings findings;  // errors: not good enough to rely on
  std::uint64_t files = 0;
  std::string origin;  // what the digests were compared with
  fs::path root;       // the folder that was looked at now
  std::int64_t age_seconds = 0;
  bool authenticated = false;  // by the key given, or by the signer named
  std::string signer;          // in words; empty where no signature was asked for
};

// What is asked of a receipt. The scope has to be the one that the receipt records: `options` supplies
// include, exclude and what a verification would demand (fail_on_extra, require_digests, expect_commit).
struct ReceiptQuestion {
  fs::path receipt;
  fs::path path;  // what was verified: a folder, a file, a hub cache
  std::optional<std::int64_t> max_age_seconds;
  std::optional<std::string> key;
  std::optional<SignatureRequest> signature =
      {};  // by whom it has to be signed; the bundle is RECEIPT.sig unless named
};

// RECEIPT.sig: the receipt's bytes, signed (verify/signature/sign.h).
fs::path signature_of_receipt(const fs::path& receipt);
ReceiptCheck check_receipt(const ReceiptQuestion& question, const VerifyOptions& options);

// "24h", "90m", "30s", "7d" -> seconds. Throws Error::usage.
std::int64_t parse_duration(std::string_view text);

}  // namespace assay
