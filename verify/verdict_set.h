// The verdicts of several folders as one: a last line, a word, an exit code, one JSON document.
#pragma once

#include <string>
#include <vector>

#include "core/system/report.h"
#include "verify/verdict.h"

namespace assay {

class VerdictSet {
 public:
  void add(const std::string& path, const VerifyReport& report);
  // A path of which there is no verdict: it, or what should vouch for it, cannot be read.
  void add_unreadable(const std::string& path);

  // `failed` where any is, or an error; `ok` where all are; between them `partial`, and `well_formed` where
  // no weight of any was compared.
  Verdict verdict() const;
  // "FAILED: 3 paths: 1 failed (b), 2 ok; vouched for: all 1.4 GB of weights"
  std::string line() const;

 private:
  struct Member {
    std::string path, word;
    Verdict verdict;
  };
  std::vector<Member> members_;
  WeightShare share_;
};

// schema assay.verify-set/1; `reports` holds, for each path, {path, report} or {path, error}.
Json set_json(const VerdictSet& set, Json reports);

}  // namespace assay
