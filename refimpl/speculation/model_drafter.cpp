#include "refimpl/speculation/model_drafter.h"

#include <algorithm>

namespace assay {
namespace {

constexpr std::size_t kReadAtOnce = 512;

class ModelDrafter : public Drafter, private DraftWalk {
 public:
  ModelDrafter(const LanguageModel& model, Ops& ops)
      : model_(model), ops_(ops), cache_(ops, model.cache_widths(), model.context()) {}

  GuessTree guess(const DraftRequest& request) override {
    if (request.shape.empty() || request.text.size() > cache_.limit()) return {};
    rows_ = 0;
    const std::vector<double> logits = read(request.text);
    GuessTree tree = grow_tree(request, logits, *this);
    tree.rows = rows_;
    return tree;
  }

 private:
  // What is new of the text; where rotary frequencies follow the length, all of it at once.
  std::vector<double> read(std::span<const TokenId> text) {
    if (cache_.length() >= text.size() || !model_.cache_serves(cache_.length(), text.size()))
      cache_.truncate(0);
    std::vector<double> logits;
    while (cache_.length() < text.size()) {
      const auto left = text.subspan(cache_.length());
      std::size_t count = std::min(left.size(), kReadAtOnce);
      if (!model_.cache_serves(cache_.length() + count, text.size())) count = left.size();
      logits = feed(left.first(count), count == left.size());
    }
    return logits;
  }

  std::vector<double> feed(std::span<const TokenId> tokens, bool logits) {
    Batch batch;
    batch.add(tokens, cache_);
    const Matrix hidden = model_.hidden(batch, ops_, {});
    cache_.advance(tokens.size());
    rows_ += tokens.size();
    if (!logits) return {};
    const std::size_t last[] = {tokens.size() - 1};
    return ops_.download(model_.logits(ops_.gather(hidden, last), ops_, {}));
  }

  std::vector<double> enter(TokenId guess) override {
    const std::size_t length = cache_.length();
    before_.push_back({length, cache_.states()});
    if (length >= cache_.limit() || !model_.cache_serves(length, length + 1)) return {};
    return feed({&guess, 1}, true);
  }
  void leave() override {
    cache_.resume(before_.back().length, before_.back().states);
    before_.pop_back();
  }

  struct Point {
    std::size_t length;
    SequenceCache::States states;
  };
  const LanguageModel& model_;
  Ops& ops_;
  SequenceCache cache_;
  std::vector<Point> before_;  // each guess on the way
  std::size_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Drafter> ModelDrafts::start() const {
  return std::make_unique<ModelDrafter>(model_, ops_);
}

}  // namespace assay
