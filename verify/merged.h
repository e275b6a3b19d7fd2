// One verdict out of the receipts of many ranks.
//
//   share   the parts have to be those of one run and one list, and together all of it
//   copy    every node's copy has to be good, and all have to be alike
//
// What a receipt claims follows from its files, or it is refused; and the list that the parts claim to have been compared
// with is worked out again from what they say of each file, so that nothing can be left out between two of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/system/report.h"
#include "verify/node_receipt.h"
#include "verify/verdict.h"

namespace assay {

struct NodeFault {
  std::string kind;  // missing, killed, stale, foreign, damaged, file, copy, differs, uncovered, unlike
  std::optional<std::uint32_t> rank;
  std::string node, file, message;  // of hostile receipts: not escaped
  std::vector<ByteRange> ranges;
};

struct NodeRoot {  // of copies that are alike
  std::string digest;
  std::vector<std::string> who;
};

struct MergedReport {
  NodeMode mode = NodeMode::copy;
  std::string run, list;
  std::uint32_t ranks = 0;  // that there should be
  std::uint32_t working = 0, idle = 0;
  std::vector<NodeFault> faults;
  std::vector<NodeRoot> roots;  // of copies; the most frequent first
  bool majority = true;
  bool complete_known = true;  // false: receipts made by hand, of which nobody knows how many there should be
  WeightShare weights;
  bool bytes_checked = false;
  std::uint64_t files = 0, bytes = 0;
  Verdict verdict() const;
};

// What the one who merges knows by himself; empty: what the first receipt says holds for all.
struct MergeDemand {
  std::string run, list;
  std::optional<NodeMode> mode;
  std::uint32_t ranks = 0;
};

// `faults`: what is known already of ranks that gave none, or none that can be read.
MergedReport merge_receipts(const std::vector<NodeReceipt>& receipts, const MergeDemand& demand,
                            std::vector<NodeFault> faults = {});

// "rank 3 on node17"
std::string whose(const NodeReceipt& receipt);

void render_merged(const MergedReport& report, const Output& output);
Json merged_json(const MergedReport& report);  // schema assay.verify-nodes/1
std::string merged_line(const MergedReport& report);

}  // namespace assay
