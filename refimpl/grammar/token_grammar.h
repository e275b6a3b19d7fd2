// A grammar over a vocabulary: which tokens may come next.
//
//   const auto grammar = std::make_shared<TokenGrammar>(parse_gbnf(text, file), token_texts, end_tokens);
//   request.constraint = std::make_shared<GrammarConstraint>(grammar);
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/grammar/matcher.h"
#include "refimpl/grammar/vocabulary_trie.h"
#include "refimpl/sampling/constraint.h"

namespace assay::grammar {

// What each token adds to a text; nothing for control tokens and holes, which no grammar allows.
struct TokenTexts {
  std::vector<std::string> later;
  std::vector<std::string> first;  // at a text's beginning, where decoders drop a space; empty: the same
};

// Shared by all the texts written by a grammar; several threads may ask at once.
class TokenGrammar {
 public:
  // An end token may come exactly where the text is whole. Throws Error::input as Automaton does.
  TokenGrammar(const Grammar& grammar, TokenTexts texts, std::vector<TokenId> end_tokens,
               const MatchLimits& limits = {});

  StateId start() const { return matcher_.start(); }
  std::shared_ptr<const TokenMask> allowed(StateId state, bool first);
  // kDead where the token may not come.
  StateId after(StateId state, TokenId id, bool first);
  bool is_end(TokenId id) const;
  bool whole(StateId state);
  std::size_t vocabulary() const { return texts_.later.size(); }

 private:
  const std::string& text(TokenId id, bool first) const {
    return (first && !texts_.first.empty() ? texts_.first : texts_.later)[id];
  }
  TokenMask find_allowed(StateId state, bool first);

  TokenTexts texts_;
  std::vector<TokenId> end_tokens_;
  Matcher matcher_;
  VocabularyTrie later_;
  std::optional<VocabularyTrie> first_;
  std::map<std::pair<StateId, bool>, std::shared_ptr<const TokenMask>> masks_;
  std::mutex mutex_;
};

class GrammarConstraint : public TokenConstraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<TokenGrammar> grammar);

  // Throws Error::input where the text is not whole and no token of the vocabulary goes on as the grammar asks.
  void restrict(TokenMask& mask) const override;
  void push(TokenId id) override;
  void pop(std::size_t count) override;
  std::unique_ptr<TokenConstraint> fork() const override;

 private:
  std::shared_ptr<TokenGrammar> grammar_;
  std::vector<StateId> states_;  // before each token, and now
  bool ended_ = false;           // the last token was an end token
};

}  // namespace assay::grammar
