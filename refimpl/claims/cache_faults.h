// Faults that smaller caches were shipped with, planted in ours: what is held against the authors' rules must name each.
// Numbers and sources as in docs/caches.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "refimpl/claims/cache_truth.h"
#include "refimpl/ops/reference.h"

namespace assay {

struct CacheFault {
  int number = 0;          // of docs/serving.md; 0: none there
  std::string shipped_in;  // empty: nobody's that we know of
  std::string what;
  std::string of;  // the case of CacheTruth that it is planted in
  std::shared_ptr<const CacheMethod> method;
  // Where the fault lies in the attention and not in what is kept.
  std::function<std::unique_ptr<Ops>(const Arithmetic&, int jobs)> ops = {};
};
std::vector<CacheFault> cache_faults();

// A case of the file, held against its rule as it is; and a fault that was planted in one.
struct RuleVerdict {
  std::string of;
  CacheTruth::Verdict found;
};
struct PlantedCacheFault {
  CacheFault fault;
  std::string seen;  // empty: it was missed
};

// Both in float64 by the reference. They open the model: layers that are grouped anew make another one of it.
class CacheRuleChecks {
 public:
  CacheRuleChecks(std::string model, const std::filesystem::path& truth, int jobs);
  std::vector<RuleVerdict> as_it_is();
  // Of the faults whose case the file has.
  std::vector<PlantedCacheFault> planted();

 private:
  CacheTruth::Verdict compare(const std::string& of, const std::shared_ptr<const CacheMethod>& method,
                              Ops& ops);

  std::string path_;
  CacheTruth truth_;
  int jobs_;
  Weights weights_;
  std::unique_ptr<LanguageModel> model_;
};

}  // namespace assay
