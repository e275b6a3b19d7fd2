// One text being read or written: its tokens, its cache, and how far the cache has come.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "refimpl/models/model.h"

namespace assay {

class Sequence {
 public:
  Sequence(const LanguageModel& model, Ops& ops, std::vector<TokenId> tokens,
           const std::shared_ptr<const CacheMethod>& method = {})
      : model_(model), tokens_(std::move(tokens)), cache_(ops, model.cache_widths(), model.context()) {
    if (method) cache_.keep_by(method, tokens_.size());
  }

  const std::vector<TokenId>& tokens() const { return tokens_; }
  SequenceCache& cache() { return cache_; }
  std::size_t pending() const { return tokens_.size() - cache_.length(); }  // not in the cache yet
  void append(TokenId id) { tokens_.push_back(id); }

  // The next tokens to feed, at most `chunk`. Where rotary frequencies follow the length, the cache of a
  // shorter text is of no use, nor is a part of this one: all is fed anew, at once.
  std::span<const TokenId> next(std::size_t chunk) {
    const std::size_t target = tokens_.size();
    if (cache_.length() != 0 && !model_.cache_serves(cache_.length(), target)) cache_.truncate(0);
    std::size_t count = std::min(chunk, pending());
    if (!model_.cache_serves(cache_.length() + count, target)) count = pending();
    return std::span(tokens_).subspan(cache_.length(), count);
  }

 private:
  const LanguageModel& model_;
  std::vector<TokenId> tokens_;
  SequenceCache cache_;
};

}  // namespace assay
