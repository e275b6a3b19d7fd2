#include "refimpl/grammar/token_grammar.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay::grammar {
namespace {

constexpr std::size_t kMostMasks = 512;  // of 19 KB at 150,000 tokens

}  // namespace

TokenGrammar::TokenGrammar(const Grammar& grammar, TokenTexts texts, std::vector<TokenId> end_tokens,
                           const MatchLimits& limits)
    : texts_(std::move(texts)),
      end_tokens_(std::move(end_tokens)),
      matcher_(Automaton(grammar), limits),
      later_(texts_.later) {
  if (!texts_.first.empty() && texts_.first.size() != texts_.later.size())
    throw Error::internal("two lists of tokens of different lengths");
  if (!texts_.first.empty()) first_.emplace(texts_.first);
}

bool TokenGrammar::is_end(TokenId id) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), id) != end_tokens_.end();
}

bool TokenGrammar::whole(StateId state) {
  const std::lock_guard lock(mutex_);
  return matcher_.accepts(state);
}

StateId TokenGrammar::after(StateId state, TokenId id, bool first) {
  if (id >= vocabulary() || text(id, first).empty()) return kDead;
  const std::lock_guard lock(mutex_);
  return matcher_.read(state, text(id, first));
}

std::shared_ptr<const TokenMask> TokenGrammar::allowed(StateId state, bool first) {
  first = first && first_.has_value();
  const std::lock_guard lock(mutex_);
  const auto found = masks_.find({state, first});
  if (found != masks_.end()) return found->second;
  if (masks_.size() >= kMostMasks) masks_.clear();
  return masks_[{state, first}] = std::make_shared<TokenMask>(find_allowed(state, first));
}

// Every branch of the vocabulary is read once, and what lies beyond one that the grammar does not read is skipped.
TokenMask TokenGrammar::find_allowed(StateId state, bool first) {
  TokenMask mask(vocabulary());
  const VocabularyTrie& trie = first ? *first_ : later_;
  const auto& branches = trie.branches();
  std::vector<StateId> at_depth(trie.deepest() + 1, kDead);
  at_depth[0] = state;
  for (std::size_t i = 0; i < branches.size();) {
    const VocabularyTrie::Branch& branch = branches[i];
    const StateId next = matcher_.step(at_depth[branch.depth - 1], branch.byte);
    if (next == kDead) {
      i = branch.after;
      continue;
    }
    at_depth[branch.depth] = next;
    for (const TokenId id : trie.tokens(branch)) mask.add(id);
    ++i;
  }
  for (const TokenId id : end_tokens_) {
    if (matcher_.accepts(state))
      mask.add(id);
    else
      mask.remove(id);
  }
  return mask;
}

GrammarConstraint::GrammarConstraint(std::shared_ptr<TokenGrammar> grammar)
    : grammar_(std::move(grammar)), states_{grammar_->start()} {}

void GrammarConstraint::restrict(TokenMask& mask) const {
  if (ended_) {
    mask = TokenMask(mask.size());
    return;
  }
  const auto allowed = grammar_->allowed(states_.back(), states_.size() == 1);
  const bool any = mask.keep_only(*allowed);
  if (!any && !grammar_->whole(states_.back()))
    throw Error::input("no token of the vocabulary goes on as the grammar asks");
}

void GrammarConstraint::push(TokenId id) {
  if (ended_) throw Error::input("a token after the grammar's end");
  if (grammar_->is_end(id) && grammar_->whole(states_.back())) {
    states_.push_back(states_.back());
    ended_ = true;
    return;
  }
  const StateId next =
      grammar_->is_end(id) ? kDead : grammar_->after(states_.back(), id, states_.size() == 1);
  if (next == kDead) throw Error::input(fmt::format("the grammar does not allow token {} here", id));
  states_.push_back(next);
}

void GrammarConstraint::pop(std::size_t count) {
  if (count >= states_.size()) throw Error::internal("more tokens taken back than the grammar has read");
  if (count > 0) ended_ = false;
  states_.resize(states_.size() - count);
}

std::unique_ptr<TokenConstraint> GrammarConstraint::fork() const {
  return std::make_unique<GrammarConstraint>(*this);
}

}  // namespace assay::grammar
