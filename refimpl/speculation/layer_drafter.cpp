#include "refimpl/speculation/layer_drafter.h"

#include <algorithm>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::size_t kRowsAtOnce = 512;

class LayerDrafter : public Drafter, private DraftWalk {
 public:
  // `lag`: how many rows of a block's tokens are not kept beside it, as they depend on what follows.
  LayerDrafter(const LanguageModel& model, Ops& ops, std::size_t lag)
      : model_(model), ops_(ops), cache_(ops, model.cache_widths(), model.context()), lag_(lag) {}

  bool wants_hidden() const override { return true; }

  // Where tokens are missing, as of a prefix that was known, the modules begin anew behind them: what they see is shorter.
  void see(std::span<const TokenId> text, std::size_t first, const Matrix& hidden) override {
    const std::size_t waiting = hidden_.rows();
    const std::size_t known = first_ + hidden_.rows(), end = first + hidden.rows();
    if (end <= known) return;  // computed again after a preemption
    if (first > known) {
      cache_.truncate(0);
      first_ = first;
      hidden_ = hidden;
    } else {
      append(hidden.row_range(known - first, end - known));
    }
    // What is asked for beside blocks is read then; else this much may wait.
    if (waiting > kRowsAtOnce) read(text);
  }

  Beside beside(std::span<const TokenId> text, std::size_t end, std::size_t block_tokens) override {
    const std::size_t block = end / block_tokens - 1, from = end - block_tokens;
    if (block < beside_.size()) return beside_[block];  // computed again after a preemption
    const std::size_t begin = from - std::min(from, lag_), to = end - std::min(end, lag_);
    const bool on_end = block == beside_.size() && first_ == sure_ && cache_.length() == sure_ && sure_ <= to;
    if (!on_end || first_ + hidden_.rows() < end || to + model_.draft_layers() > text.size()) return nullptr;
    read(text, to - first_);
    if (first_ != to || first_ + hidden_.rows() < end) return nullptr;
    auto kept = std::make_shared<std::vector<Matrix>>();
    for (std::size_t layer = 0; layer < cache_.layers(); ++layer) {
      for (const Matrix& rows : {cache_.keys(layer).base, cache_.values(layer).base})
        kept->push_back(rows.rows() < to || rows.empty() ? Matrix() : copy(rows, begin, to - begin));
    }
    kept->push_back(to == end ? Matrix() : copy(hidden_, 0, end - to));
    beside_.push_back(std::move(kept));
    return beside_.back();
  }

  void resume(std::span<const Beside> blocks, std::size_t end) override {
    if (cache_.length() > 0 || !hidden_.empty() || blocks.empty()) return;
    if (std::any_of(blocks.begin(), blocks.end(), [](const Beside& block) { return block == nullptr; }))
      return;
    for (const Beside& block : blocks) {
      std::size_t rows = 0;
      for (std::size_t layer = 0; layer < cache_.layers(); ++layer) {
        const Matrix &keys = (*block)[2 * layer], &values = (*block)[2 * layer + 1];
        if (!keys.empty()) values.empty() ? cache_.put(layer, keys) : cache_.put(layer, keys, values);
        rows = std::max(rows, keys.rows());
      }
      cache_.advance(rows);
    }
    if (!blocks.back()->back().empty())
      hidden_ = copy(blocks.back()->back(), 0, blocks.back()->back().rows());
    first_ = sure_ = end - hidden_.rows();
    beside_.assign(blocks.begin(), blocks.end());
  }

  void take_over(const Beside& whole, std::size_t end) override {
    resume({&whole, 1}, end);
    beside_.clear();
  }

  GuessTree guess(const DraftRequest& request) override {
    if (request.shape.empty() || first_ + hidden_.rows() + 1 != request.text.size()) return {};
    if (!model_.cache_serves(request.text.size(), request.text.size() + request.shape.size())) return {};
    rows_ = 0;
    read(request.text);
    if (hidden_.empty()) return {};
    way_.assign(request.text.begin() + static_cast<std::ptrdiff_t>(first_) + 1, request.text.end());
    lengths_.clear();
    outs_ = {hidden_};
    const std::vector<double> logits = go_deeper();
    GuessTree tree = grow_tree(request, logits, *this);
    cache_.truncate(sure_);
    tree.rows = rows_;
    return tree;
  }

 private:
  // Of the rows of hidden_ those whose tokens are sure in every module, but for the last.
  void read(std::span<const TokenId> text) {
    const std::size_t modules = model_.draft_layers(), rows = hidden_.rows();
    if (rows < 2 || first_ + modules >= text.size()) return;
    read(text, std::min(rows - 1, text.size() - modules - first_));
  }

  void read(std::span<const TokenId> text, std::size_t sure) {
    const std::size_t modules = model_.draft_layers(), rows = hidden_.rows();
    for (std::size_t at = 0; at < sure; at += kRowsAtOnce) {
      const std::size_t count = std::min(kRowsAtOnce, sure - at);
      Matrix rows_of = hidden_.row_range(at, count);
      for (std::size_t m = 0; m < modules; ++m)
        rows_of = draft(m, text.subspan(first_ + at + m + 1, count), rows_of);
      cache_.advance(count);
    }
    hidden_ = copy(hidden_, sure, rows - sure);
    first_ += sure;
    sure_ = cache_.length();
  }

  Matrix copy(const Matrix& all, std::size_t first, std::size_t rows) {
    const Matrix own = ops_.allocate(rows, all.columns());
    if (rows > 0) ops_.store({.base = own}, 0, all.row_range(first, rows));
    return own;
  }

  void append(const Matrix& more) {
    const std::size_t rows = hidden_.rows();
    const Matrix all = ops_.allocate(rows + more.rows(), more.columns());
    if (rows > 0) ops_.store({.base = all}, 0, hidden_);
    ops_.store({.base = all}, rows, more);
    hidden_ = all;
  }

  Matrix draft(std::size_t module, std::span<const TokenId> tokens, const Matrix& hidden) {
    Batch batch;
    batch.add(tokens, cache_);
    rows_ += tokens.size();
    return model_.draft(module, batch, hidden, ops_, {});
  }

  // way_: the tokens behind hidden_'s first row, sure ones and guesses; outs_: what each depth was given.
  std::vector<double> go_deeper() {
    const std::size_t depth = outs_.size() - 1, modules = model_.draft_layers(), rows = hidden_.rows();
    lengths_.push_back(cache_.length());
    if (modules > 1) {
      if (depth >= modules) return {};
      outs_.push_back(draft(depth, std::span(way_).subspan(depth, rows), outs_.back()));
    } else {
      if (cache_.length() + (depth == 0 ? rows : 1) > cache_.limit()) return {};
      const Matrix& given = outs_.back();
      const Matrix row = depth == 0 ? given : given.row_range(given.rows() - 1, 1);
      outs_.push_back(draft(0, std::span(way_).last(row.rows()), row));
      cache_.advance(row.rows());
    }
    const std::size_t last[] = {outs_.back().rows() - 1};
    return ops_.download(
        model_.draft_logits(modules > 1 ? depth : 0, ops_.gather(outs_.back(), last), ops_, {}));
  }

  std::vector<double> enter(TokenId guess) override {
    way_.push_back(guess);
    const std::size_t outs = outs_.size();
    std::vector<double> logits = go_deeper();
    if (outs_.size() == outs) outs_.push_back(outs_.back());  // for leave() to take
    return logits;
  }
  void leave() override {
    way_.pop_back();
    outs_.pop_back();
    cache_.truncate(lengths_.back());
    lengths_.pop_back();
  }

  const LanguageModel& model_;
  Ops& ops_;
  SequenceCache cache_;    // of all modules; its first row is that of the first token seen
  std::size_t first_ = 0;  // the token of hidden_'s first row
  std::size_t sure_ = 0;   // rows of the cache
  std::size_t lag_;
  std::vector<Beside> beside_;  // of the text's blocks, from the first on
  Matrix hidden_;               // what the head saw of the tokens behind those
  std::vector<TokenId> way_;
  std::vector<Matrix> outs_;
  std::vector<std::size_t> lengths_;
  std::size_t rows_ = 0;
};

}  // namespace

LayerDrafts::LayerDrafts(const LanguageModel& model, Ops& ops, Keeping keeping)
    : model_(model), ops_(ops), keeping_(keeping) {
  if (model.draft_layers() == 0)
    throw Error::usage("the model has no layer for multi-token prediction")
        .remedy("leave out --speculate, or use --speculate lookup or --draft-model");
}

std::unique_ptr<Drafter> LayerDrafts::start() const {
  const std::size_t lag = keeping_ == Keeping::without_successors ? model_.draft_layers() : 0;
  return std::make_unique<LayerDrafter>(model_, ops_, lag);
}

}  // namespace assay
