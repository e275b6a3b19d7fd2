// StreamingLLM (Xiao et al., arXiv 2309.17453 §3.2): the first `sinks` tokens, on which attention rests whatever they
// say, and the newest `window`. Behind a step that made more of them the middle is thrown away. Places are those
// within the cache: "[0, 1, 2, 3, 6, 7, 8]" of a text are 0 … 6, and the next token stands at 7; so keys are kept as
// they are before their rotation, and rotated anew for each step. A prompt read at once sees all of itself.
#include <numeric>

#include "refimpl/caches/kept_tokens.h"
#include "refimpl/caches/methods.h"
#include "refimpl/step/row_parts.h"

namespace assay {
namespace {

struct StreamingForm {
  std::size_t sinks = 4, window = 64;
};

class StreamingLayer : public LayerPolicy {
 public:
  StreamingLayer(const CacheWidth& width, const StreamingForm& form) : kept_(width), form_(form) {}

  std::size_t rows() const override { return kept_.rows(); }
  void settle(const CacheRows& rows, std::size_t count) override {
    kept_.append(count);
    if (form_.window == kEverything || kept_.rows() <= form_.sinks + form_.window) return;
    std::vector<std::size_t> stay(form_.sinks + form_.window);
    std::iota(stay.begin(), stay.begin() + static_cast<std::ptrdiff_t>(form_.sinks), std::size_t{0});
    std::iota(stay.begin() + static_cast<std::ptrdiff_t>(form_.sinks), stay.end(),
              kept_.rows() - form_.window);
    kept_.keep(rows, std::vector(kept_.places().size(), stay));
  }
  double bytes() const override { return kept_.bytes(); }
  std::vector<std::vector<std::size_t>> kept() const override { return kept_.places(); }

 private:
  KeptTokens kept_;
  StreamingForm form_;
};

class StreamingCache : public CacheMethod {
 public:
  StreamingCache(std::string name, const StreamingForm& form) : name_(std::move(name)), form_(form) {}
  std::string name() const override { return name_; }
  std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t) const override {
    if (layer.width.kv_heads == 0) return nullptr;
    return std::make_unique<StreamingLayer>(layer.width, form_);
  }
  std::size_t place(std::size_t, std::size_t rows) const override { return rows; }
  bool renumbers() const override { return true; }

 private:
  std::string name_;
  StreamingForm form_;
};

}  // namespace

MadeCacheMethod make_streaming_cache(MethodText& text) {
  StreamingForm form;
  form.sinks = text.number("sinks", form.sinks);
  form.window = text.number("window", form.window, 1);
  if (form.sinks == kEverything) form.window = kEverything;
  return std::make_shared<StreamingCache>(text.text(), form);
}

}  // namespace assay
