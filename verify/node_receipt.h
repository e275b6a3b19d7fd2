// A receipt as those read it who put the receipts of many ranks together. It comes from a folder that anybody may have
// written to: no byte of it is believed before it has been looked at, and no name in it is ever opened.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/digest.h"
#include "core/system/file.h"
#include "verify/chunks.h"

namespace assay {

enum class NodeMode {
  share,  // a part of one copy
  copy,   // a node's own copy
  idle,   // nothing: another rank of its node works
};

struct NodeEntry {                                  // of a file
  std::string status, expected, digest, diagnosis;  // digests as "sha256:…"; empty: none
  std::optional<std::uint64_t> expected_size;
  std::uint64_t size = 0;
  std::vector<ByteRange> damaged, parts;
  std::vector<Digest> pieces;
};

struct NodeReceipt {
  std::string file;  // where it was found
  NodeMode mode = NodeMode::copy;
  bool ranked = false;  // false: somebody verified a copy by hand; it has no rank and no run
  std::uint32_t rank = 0, ranks = 0;
  std::string run, node, list, verdict, include, exclude;
  std::uint64_t piece_bytes = 0;
  std::vector<std::string> errors;  // about the copy as a whole
  std::map<std::string, NodeEntry> files;
};

// How a receipt has to be vouched for: by this key (verify/receipt_mac.h), if there is one.
using ReceiptKey = std::optional<std::string>;
struct SignatureMethods;

// Throws Error::input for what is no whole receipt: too long, a link, not JSON, too deep, without what it has to hold,
// contradicting itself, with names that lead out of a folder; and, before any of that, where the key does not fit, or
// where RECEIPT.sig is not by one of the `signers`, if any are given.
NodeReceipt read_node_receipt(const fs::path& file, const ReceiptKey& key,
                              const SignatureMethods* signers = nullptr);
// Of its text alone, whoever wrote it.
NodeReceipt parse_node_receipt(const std::string& text, const fs::path& file);

// Of a regular file and nothing else, no link followed, at most `limit` bytes.
std::string read_untrusted(const fs::path& file, std::uint64_t limit);

// "rank-00003.json": what a rank's receipt is called in the folder where they are gathered; and what tells that it began.
std::string gathered_name(std::uint32_t rank);
std::string begun_name(std::uint32_t rank);

}  // namespace assay
