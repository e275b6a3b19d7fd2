// Compressed caches against the full one, on texts that are given: all read them side by side, a prompt at once and then
// a token a step, and every step's predictions are compared. Nothing of a text is kept but sums.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/model_compare/logits_report.h"
#include "refimpl/caches/cache_method.h"

namespace assay {

struct CacheReport {
  LogitsReport logits;                  // reference: the full cache; of the steps behind the prompts
  double bytes = 0, bytes_in_full = 0;  // at the texts' ends, added up
  std::size_t tokens = 0;               // of the texts, added up
  double bytes_a_token() const { return bytes / static_cast<double>(tokens); }
  double full_bytes_a_token() const { return bytes_in_full / static_cast<double>(tokens); }
};

// A method, and the model it is of: where the model's own layers are grouped anew, another than that of the full cache.
struct CachedModel {
  std::shared_ptr<const CacheMethod> method;
  const LanguageModel* model = nullptr;
};
struct CacheComparison {
  const LanguageModel& model;
  Ops& ops;
  std::vector<CachedModel> methods;
  std::function<void(std::uint64_t)> read = {};  // told of tokens of the texts, when all methods read them
};

// `prompt` tokens of each text are read at once; texts of fewer than prompt + 2 tokens count for nothing. One report
// a method.
std::vector<CacheReport> compare_caches(const CacheComparison& comparison,
                                        const std::vector<std::vector<TokenId>>& texts, std::size_t prompt);

}  // namespace assay
