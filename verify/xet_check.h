// Xet hashes beside the digests that decide: a match proves a file, a mismatch proves nothing.
//
// What a hub lists was made by the chunker of the day of the upload, and by what the store had of the file
// already; so a file that is right may have another hash here. Only where nobody gives any other digest, as of a
// storage bucket, does a file fail by it.
#pragma once

#include "core/formats/hash/hasher.h"
#include "core/formats/xet/xet_hash.h"
#include "core/system/json.h"
#include "core/system/report.h"
#include "verify/verify_report.h"

namespace assay {

class XetSink : public ByteSink {
 public:
  explicit XetSink(int jobs) : hasher_(jobs) {}
  void consume(std::span<const std::byte> bytes) override { hasher_.update(bytes); }
  std::span<std::byte> room() override { return hasher_.room(); }
  void finish() override { digests_ = hasher_.finish(); }
  const XetDigests& digests() const { return digests_; }

 private:
  XetHasher hasher_;
  XetDigests digests_;
};

enum class XetVerdict { proven, unproven, unlisted };
XetVerdict xet_verdict(const XetFacts& facts);
// Of both dialects the expected one, where it is one of them; else that of today.
Digest that_of(const XetDigests& made, const std::optional<Digest>& expected);
// Of a file that has failed by its Xet hash alone: what that may mean besides.
void tell_of_xet(FileReport& file);

struct XetCount {
  std::uint64_t proven = 0, unproven = 0, unlisted = 0;
  bool any() const { return proven + unproven + unlisted > 0; }
};
XetCount count_xet(const VerifyReport& report);

void render_xet(const VerifyReport& report, const Output& output);
Json xet_json(const XetFacts& facts);
Json xet_json(const XetCount& count);

}  // namespace assay
