// What a report amounts to: one word, how much of the weights it stands on, and what the user demanded of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "verify/verify.h"

namespace assay {

enum class Verdict {
  ok,           // every weight was compared with a digest, and equals it
  partial,      // some weights were compared, others have nobody who says what they should be
  well_formed,  // no weight was compared: structure alone
  failed,
  interrupted,
};
std::string_view verdict_name(Verdict verdict);  // "well_formed": for JSON and receipts

// How much of the weights that are here somebody vouches for.
struct WeightShare {
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t vouched_files = 0, vouched_bytes = 0;  // with a digest, whoever gave it
  std::uint64_t compared_files = 0;                    // and equal to it
  bool all_compared() const { return compared_files == files; }
};
WeightShare weight_share(const VerifyReport& report);
std::string share_sentence(const WeightShare& share);  // "vouched for: 66.6 % of the weights' 147 kB"

Verdict verdict_of(const VerifyReport& report);

// Turns what `options` demand and the report does not give into findings: extra files, weights that nobody
// vouches for, another commit. A weight without a digest among others that have one is a warning in any case.
void hold_to(const VerifyOptions& options, VerifyReport& report);

}  // namespace assay
