// SnapKV (Li et al., arXiv 2404.14469 §4.2): at the end of a prompt the attention that its last `window` queries gave to
// the tokens before them is added up to votes; votes are pooled with their neighbours', so that what belongs together
// is kept together; the budget's best and the window stay. Prompts below the budget, and whatever is made behind the
// prompt, stay whole. The authors' code keeps the prompt by query head; here votes of query heads that share a key
// head are added up.
//
// PyramidKV (Cai et al., arXiv 2406.02069 §4): the same choice, with budgets that fall by as much from layer to layer:
//
//   b = budget - window,  last = b / beta,  first = 2 b - last,  layer l: first - l · (first - last) / (layers - 1)
//
// in whole numbers, as the authors' code has it, with its cases: a first layer that has no more than the prompt gives to the
// last, and prompts below 2 b keep b in every layer.
//
// Places are the text's in both, as their authors'.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/caches/kept_tokens.h"
#include "refimpl/caches/methods.h"
#include "refimpl/step/row_parts.h"

namespace assay {
namespace {

struct SnapForm {
  std::size_t budget = 64, window = 32, kernel = 5;
  bool by_maximum = false;  // pooled; else by mean, absent neighbours counting 0
  std::size_t beta = 0;     // of a pyramid
};

// Tokens that a layer keeps beside the window.
std::size_t voted_tokens(const SnapForm& form, const CacheLayer& layer, std::size_t prompt) {
  const std::size_t voted = form.budget - form.window;
  if (form.beta == 0 || prompt < 2 * voted || layer.layers < 2) return voted;
  std::size_t last = voted / form.beta, first = 2 * voted - last;
  if (first >= prompt - form.window) {
    first = prompt - form.window;
    last = 2 * voted - std::min(2 * voted, first);
  }
  return first - layer.index * ((first - std::min(first, last)) / (layer.layers - 1));
}

std::vector<double> pooled(std::span<const double> votes, const SnapForm& form) {
  const std::size_t reach = form.kernel / 2;
  std::vector<double> all(votes.size());
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const std::size_t first = i - std::min(i, reach), end = std::min(votes.size(), i + reach + 1);
    const auto near = votes.subspan(first, end - first);
    all[i] = form.by_maximum
                 ? *std::max_element(near.begin(), near.end())
                 : std::accumulate(near.begin(), near.end(), 0.0) / static_cast<double>(form.kernel);
  }
  return all;
}

class SnapLayer : public LayerPolicy {
 public:
  SnapLayer(const CacheLayer& layer, const SnapForm& form, std::size_t prompt)
      : kept_(layer.width), votes_(layer.width.kv_heads), form_(form), prompt_(prompt) {
    if (cuts()) voted_ = voted_tokens(form, layer, prompt);
  }

  std::size_t rows() const override { return kept_.rows(); }
  std::size_t watched_from(std::size_t count) const override {
    const std::size_t begin = kept_.tokens();
    if (!cuts() || begin >= prompt_ || begin + count + form_.window <= prompt_) return count;
    return prompt_ - form_.window - std::min(begin, prompt_ - form_.window);
  }
  void seen(AttentionMass mass) override { mass_ = std::move(mass); }
  void settle(const CacheRows& rows, std::size_t count) override {
    if (watched_from(count) < count) {
      for (std::size_t head = 0; head < votes_.size(); ++head) {
        votes_[head].resize(prompt_ - form_.window);
        for (std::size_t row = 0; row < votes_[head].size(); ++row)
          votes_[head][row] += mass_.at(head).at(row);
      }
    }
    kept_.append(count);
    if (cuts() && kept_.tokens() == prompt_) cut(rows);
  }
  double bytes() const override { return kept_.bytes(); }
  std::vector<std::vector<std::size_t>> kept() const override { return kept_.places(); }

 private:
  bool cuts() const { return form_.budget != kEverything && prompt_ >= form_.budget; }
  void cut(const CacheRows& rows) {
    std::vector<std::vector<std::size_t>> stay;
    for (const std::vector<double>& votes : votes_) {
      std::vector<std::size_t>& rows_of = stay.emplace_back(largest_of(pooled(votes, form_), voted_));
      for (std::size_t row = prompt_ - form_.window; row < prompt_; ++row) rows_of.push_back(row);
    }
    kept_.keep(rows, stay);
  }

  KeptTokens kept_;
  std::vector<std::vector<double>> votes_;  // [heads][tokens before the window]
  AttentionMass mass_;                      // of the step
  SnapForm form_;
  std::size_t prompt_, voted_ = 0;
};

class SnapCache : public CacheMethod {
 public:
  SnapCache(std::string name, const SnapForm& form) : name_(std::move(name)), form_(form) {}
  std::string name() const override { return name_; }
  // Layers that look back a window only keep what they see, as ever.
  std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t prompt) const override {
    if (layer.width.kv_heads == 0 || layer.width.window != 0) return nullptr;
    return std::make_unique<SnapLayer>(layer, form_, prompt);
  }

 private:
  std::string name_;
  SnapForm form_;
};

}  // namespace

MadeCacheMethod make_snap_cache(MethodText& text, bool pyramid) {
  constexpr std::size_t kWindow = 32, kBeta = 20;
  SnapForm form;
  form.budget = text.number("budget", 64, 2);
  form.window = text.number("window", std::min(kWindow, form.budget / 2), 1);
  form.kernel = text.number("kernel", form.kernel, 1);
  form.by_maximum = text.word("pool", {"avg", "max"}) == "max";
  if (pyramid) form.beta = text.number("beta", kBeta, 1);
  if (form.window >= form.budget && form.budget != kEverything)
    throw Error::usage(fmt::format("{}: the window fills the whole budget", text.name()))
        .remedy("window is part of the budget");
  if (form.kernel % 2 == 0)
    throw Error::usage(fmt::format("{}: a kernel is an odd number of tokens", text.name()));
  return std::make_shared<SnapCache>(text.text(), form);
}

}  // namespace assay
