// The bytes of a vocabulary's tokens as a tree, laid out so that one pass over an array visits all of it, or leaves out
// what begins in a way that cannot be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "refimpl/ops/calls.h"

namespace assay::grammar {

class VocabularyTrie {
 public:
  // Tokens without bytes (control tokens, holes) are in no branch.
  explicit VocabularyTrie(const std::vector<std::string>& bytes_of_tokens);

  struct Branch {
    std::uint8_t byte = 0;
    std::uint32_t depth = 0;                         // from 1: bytes up to here
    std::uint32_t after = 0;                         // the first branch that does not begin with this one
    std::uint32_t tokens_begin = 0, tokens_end = 0;  // those that end here
  };
  const std::vector<Branch>& branches() const { return branches_; }
  std::span<const TokenId> tokens(const Branch& b) const {
    return std::span(tokens_).subspan(b.tokens_begin, b.tokens_end - b.tokens_begin);
  }
  std::size_t deepest() const { return deepest_; }

 private:
  std::vector<Branch> branches_;  // each before what it leads to, by byte
  std::vector<TokenId> tokens_;
  std::size_t deepest_ = 0;
};

}  // namespace assay::grammar
