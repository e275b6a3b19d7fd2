// A tiny model of data/models read in steps, its caches kept by a method.
#pragma once

#include "refimpl/caches/cache_method.h"
#include "tests/refimpl/models/golden_run.h"

namespace assay::test {

class MethodRun {
 public:
  explicit MethodRun(const std::string& model, Precision precision = Precision::f64,
                     const LayerGroups& groups = {})
      : MethodRun(model, std::make_unique<ReferenceOps>(Arithmetic{precision}, 1), groups) {}
  MethodRun(const std::string& model, std::unique_ptr<Ops> ops, const LayerGroups& groups = {})
      : weights_(folder(model), 1),
        ops_(std::move(ops)),
        model_(make_model(weights_.regroup(groups), {})),
        recorder_(*ops_) {}

  // Reads the tokens in steps of so many; `prompt` of them before the first is made. Logits of all, row by row.
  std::vector<double> operator()(const std::shared_ptr<const CacheMethod>& method,
                                 const std::vector<TokenId>& tokens, std::vector<std::size_t> steps,
                                 std::size_t prompt) {
    cache_ = std::make_unique<SequenceCache>(*ops_, model_->cache_widths(), model_->context());
    if (method) cache_->keep_by(method, prompt);
    std::vector<double> logits;
    std::size_t at = 0;
    while (at < tokens.size()) {
      const std::size_t count = steps.empty() ? 1 : steps.front();
      if (!steps.empty()) steps.erase(steps.begin());
      Batch batch;
      batch.add(std::span(tokens).subspan(at, count), *cache_);
      const Taps taps(recorder_);
      const Matrix said = model_->logits(model_->hidden(batch, *ops_, taps), *ops_, taps);
      const std::vector<double> rows = ops_->download(said);
      logits.insert(logits.end(), rows.begin(), rows.end());
      cache_->advance(count);
      at += count;
    }
    return logits;
  }
  const SequenceCache& cache() const { return *cache_; }
  const LanguageModel& model() const { return *model_; }
  double bytes() const {
    double sum = 0;
    for (std::size_t i = 0; i < cache_->layers(); ++i)
      sum += cache_->policy(i) == nullptr ? 0 : cache_->policy(i)->bytes();
    return sum;
  }
  const std::map<std::string, std::vector<double>>& taps() const { return recorder_.taken; }

 private:
  Weights weights_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<LanguageModel> model_;
  Recorder recorder_;
  std::unique_ptr<SequenceCache> cache_;
};

}  // namespace assay::test
