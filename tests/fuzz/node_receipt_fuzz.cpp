// A receipt of a rank, as it lies in a folder that anybody may have written to; and one verdict over it and another.
// link: assay_verify
#include "core/system/file.h"
#include "tests/fuzz/fuzz.h"
#include "verify/merged.h"
#include "verify/node_receipt.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::as_text(data, size));
  const auto receipt = fuzz::accepted([&] { return parse_node_receipt(text, "rank-00000.json"); });
  if (!receipt) return 0;
  bool bad = false;
  for (const auto& [name, entry] : receipt->files) {
    fuzz::require(is_safe_relative_path(name), "names in a receipt stay below the root");
    fuzz::require(entry.status != "ok" || !entry.expected.empty(), "what is ok was compared with something");
    bad = bad || entry.status == "failed" || entry.status == "missing" || entry.status == "unreadable";
  }
  fuzz::require(!receipt->ranked || receipt->rank < receipt->ranks, "a rank is one of its ranks");
  const MergedReport merged = merge_receipts({*receipt, *receipt}, {});
  fuzz::require(!bad || merged.verdict() == Verdict::failed, "a bad file fails them all");
  return 0;
}
