// H2O (Zhang et al., arXiv 2306.14048 §4, Algorithm 1): a key's score is the attention that all queries so far gave it;
// behind a step that made more than the budget, the highest scores among all but the newest stay, and the newest
// stay. The authors' code (H2OKVCache_LayerWise) does it a step at a time, a prompt read at once being one step, and
// so does this. Scores are of a key head: of query heads that share one they are added up.
//
// Places are the text's, as in the authors' evaluation by masks; their LLaMA code that really drops rows renumbers
// them as StreamingLLM does.
#include <algorithm>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/caches/kept_tokens.h"
#include "refimpl/caches/methods.h"
#include "refimpl/step/row_parts.h"

namespace assay {
namespace {

struct HeavyForm {
  std::size_t heavy = 32, recent = 32;
  std::size_t budget() const { return heavy == kEverything ? kEverything : heavy + recent; }
};

class HeavyLayer : public LayerPolicy {
 public:
  HeavyLayer(const CacheWidth& width, const HeavyForm& form)
      : kept_(width), scores_(width.kv_heads), form_(form) {}

  std::size_t rows() const override { return kept_.rows(); }
  std::size_t watched_from(std::size_t) const override { return 0; }
  void seen(AttentionMass mass) override { mass_ = std::move(mass); }
  void settle(const CacheRows& rows, std::size_t count) override {
    kept_.append(count);
    for (std::size_t head = 0; head < scores_.size(); ++head) {
      scores_[head].resize(kept_.rows());
      for (std::size_t row = 0; row < kept_.rows(); ++row) scores_[head][row] += mass_.at(head).at(row);
    }
    if (kept_.rows() > form_.budget()) evict(rows);
  }
  double bytes() const override {
    constexpr double kScoreBytes = 4;
    return kept_.bytes() + kScoreBytes * static_cast<double>(kept_.rows() * scores_.size());
  }
  std::vector<std::vector<std::size_t>> kept() const override { return kept_.places(); }

 private:
  void evict(const CacheRows& rows) {
    const std::size_t old = kept_.rows() - form_.recent;
    std::vector<std::vector<std::size_t>> stay;
    for (std::vector<double>& scores : scores_) {
      std::vector<std::size_t>& rows_of =
          stay.emplace_back(largest_of(std::span(scores).first(old), form_.heavy));
      for (std::size_t row = old; row < kept_.rows(); ++row) rows_of.push_back(row);
      std::vector<double> left;
      for (const std::size_t row : rows_of) left.push_back(scores[row]);
      scores = std::move(left);
    }
    kept_.keep(rows, stay);
  }

  KeptTokens kept_;
  std::vector<std::vector<double>> scores_;  // [heads][rows]
  AttentionMass mass_;                       // of the step
  HeavyForm form_;
};

class HeavyHitterCache : public CacheMethod {
 public:
  HeavyHitterCache(std::string name, const HeavyForm& form) : name_(std::move(name)), form_(form) {}
  std::string name() const override { return name_; }
  // Layers that look back a window only keep what they see, as ever.
  std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t) const override {
    if (layer.width.kv_heads == 0 || layer.width.window != 0) return nullptr;
    return std::make_unique<HeavyLayer>(layer.width, form_);
  }

 private:
  std::string name_;
  HeavyForm form_;
};

}  // namespace

MadeCacheMethod make_heavy_hitter_cache(MethodText& text) {
  const std::size_t budget = text.number("budget", 64, 1);
  const std::size_t recent = text.number("recent", budget == kEverything ? 0 : budget / 2);
  if (budget != kEverything && recent > budget)
    throw Error::usage("h2o: more recent tokens than the budget has").remedy("recent is part of the budget");
  return std::make_shared<HeavyHitterCache>(
      text.text(), HeavyForm{budget == kEverything ? kEverything : budget - recent, recent});
}

}  // namespace assay
