// What may come next in one sequence: a grammar, a list of choices … The sampler asks it before every token.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "refimpl/ops/calls.h"

namespace assay {

// A bit a token.
class TokenMask {
 public:
  explicit TokenMask(std::size_t vocabulary, bool all = false)
      : size_(vocabulary), words_((vocabulary + 63) / 64, all ? ~std::uint64_t{0} : 0) {
    if (all && vocabulary % 64 != 0) words_.back() = (std::uint64_t{1} << (vocabulary % 64)) - 1;
  }
  std::size_t size() const { return size_; }
  bool has(TokenId id) const { return id < size_ && (words_[id / 64] >> (id % 64) & 1) != 0; }
  void add(TokenId id) {
    if (id < size_) words_[id / 64] |= std::uint64_t{1} << (id % 64);
  }
  void remove(TokenId id) {
    if (id < size_) words_[id / 64] &= ~(std::uint64_t{1} << (id % 64));
  }
  // Those of both; is there any? Tokens beyond the other's are not among them.
  bool keep_only(const TokenMask& other) {
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < words_.size(); ++i)
      any |= words_[i] &= i < other.words_.size() ? other.words_[i] : 0;
    return any != 0;
  }
  bool empty() const {
    return std::all_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word == 0; });
  }
  bool operator==(const TokenMask&) const = default;

 private:
  std::size_t size_;
  std::vector<std::uint64_t> words_;
};

class TokenConstraint {
 public:
  TokenConstraint() = default;
  TokenConstraint& operator=(const TokenConstraint&) = delete;
  virtual ~TokenConstraint() = default;

  // Takes from `mask` every token that may not come next.
  virtual void restrict(TokenMask& mask) const = 0;
  virtual void push(TokenId id) = 0;  // Error::input for a token that could not come
  virtual void pop(std::size_t count) = 0;
  virtual std::unique_ptr<TokenConstraint> fork() const = 0;

 protected:
  TokenConstraint(const TokenConstraint&) = default;
};

}  // namespace assay
