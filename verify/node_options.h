// `assay verify` on many nodes: its options, and what a rank does before and after it has verified its part or its copy.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/system/launcher.h"
#include "core/system/report.h"
#include "verify/merged.h"
#include "verify/receipt_seals.h"
#include "verify/verify.h"

namespace assay {

struct NodeSettings {
  bool share = false, every_node = false, merge = false;
  RankRequest rank;
  std::string gather, gather_timeout = "10m";
  bool given() const { return share || every_node; }
};

void add_node_options(CLI::App& command, NodeSettings& settings);

class NodeRun {
 public:
  // Throws Error::usage for options that do not go together and ranks that make no sense; Error::io where the receipt
  // could not be put. Sets in `options` what of the copy is to be read.
  NodeRun(const NodeSettings& settings, const fs::path& path, VerifyOptions& options);

  const LaunchedRank& rank() const { return rank_; }
  bool gathers() const { return !settings_.gather.empty(); }
  bool idle() const;  // another rank of this node works
  int stand_by(const ReceiptSeals& seals, const Output& output) const;

  // Puts the receipt where rank 0 finds it, sealed, and, as rank 0, waits for all and gives the verdict: where the
  // receipts are signed, of those alone that are signed as its own. `line`: of this rank's part alone.
  int hand_in(const VerifyReport& report, const VerifyOptions& options, const ReceiptSeals& seals,
              const std::string& line, const Output& output) const;

 private:
  int conclude(const std::string& list, const ReceiptSeals& seals, const Output& output) const;
  const NodeSettings& settings_;
  LaunchedRank rank_;
  std::int64_t timeout_ = 0;
};

// By whom receipts collected by hand have to be vouched for.
struct ReceiptTrust {
  ReceiptKey key;
  std::optional<SignatureRequest> signers;  // of RECEIPT.sig
  fs::path model;                           // that a policy is asked about
};
int run_merge(const std::vector<std::string>& receipts, const NodeSettings& settings,
              const ReceiptTrust& trust, const Output& output);

}  // namespace assay
