// Cache methods against their authors' rules, computed elsewhere from the whole history (data/make_cache_fixtures.py): which
// tokens every head keeps, and what the model says. A file of truths is about one text of one model:
//
//   tokens, prompt          the text, and how many of it are read before the first is made
//   METHOD/logits           [rows, vocabulary] behind the prompt's last token and all after it, the prompt read at once
//   METHOD/kept.LAYER       [key heads, tokens] places in the text, at its end
//   METHOD/chunked/…        likewise, the prompt read in two steps; logits from the second step's first token on
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "refimpl/caches/cache_method.h"
#include "refimpl/claims/tensor_values.h"

namespace assay {

class CacheTruth {
 public:
  // Throws Error::io, and Error::input for a file that is no such thing.
  explicit CacheTruth(const std::filesystem::path& safetensors);

  const std::filesystem::path& path() const { return path_; }
  // "full", "h2o:budget=16,recent=8", "h2o:budget=16,recent=8/chunked", …
  std::vector<std::string> cases() const;
  // Of a case; null: the full cache.
  static std::shared_ptr<const CacheMethod> method_of(const std::string& case_name);

  // Logits off by more than two computations in double are apart (5.7e-15 of the largest were measured), beyond what
  // writing them in float32 took from them.
  static constexpr double kAllowed = 1e-12;
  struct Verdict {
    double error = 0;  // of logits, of the largest
    std::string
        otherwise;  // "layer 1, head 0 keeps token 12 where its rule keeps 9"; empty: the same are kept
    bool holds() const { return otherwise.empty() && error <= kAllowed; }  // false for NaN
    std::string wrong() const;                                             // in words; empty: it holds
  };
  // `method` in place of the case's own. Throws Error::input where the truth is about another model; what the method
  // throws is a verdict, too.
  Verdict compare(const std::string& case_name, const std::shared_ptr<const CacheMethod>& method,
                  const LanguageModel& model, Ops& ops) const;

 private:
  const TensorValues& at(const std::string& name) const;
  Verdict read(const std::string& case_name, const std::shared_ptr<const CacheMethod>& method,
               const LanguageModel& model, Ops& ops) const;

  std::filesystem::path path_;
  std::map<std::string, TensorValues> values_;
  std::vector<TokenId> tokens_;
  std::size_t prompt_ = 0;
};

}  // namespace assay
