#include "kernels/logprobs/align.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/text.h"

namespace assay::logprobs {
namespace {

std::string shown(const SavedToken& token) {
  if (token.id && token.text.empty()) return std::to_string(*token.id);
  const std::string text = fmt::format("\"{}\"", escape_for_terminal(token.text));
  return token.id ? fmt::format("{} ({})", *token.id, text) : text;
}

bool may_meet(const SavedCandidate& candidate) {
  return may_be_several(candidate.id, candidate.text);
}

std::optional<double> kl_of(const SavedToken& a, const SavedToken& b) {
  if (a.top.empty() || b.top.empty()) return std::nullopt;
  const auto have_ids = [](const std::vector<SavedCandidate>& top) {
    return std::any_of(top.begin(), top.end(), [](const SavedCandidate& c) { return c.id.has_value(); });
  };
  const bool by_ids = have_ids(a.top) && have_ids(b.top);
  // Empty: a candidate that the other side cannot name.
  const auto key = [&](const SavedCandidate& c) {
    if (by_ids) return c.id ? std::to_string(*c.id) : std::string();
    return may_meet(c) ? std::string() : c.text;
  };
  std::map<std::string, double> of_b;
  for (const SavedCandidate& c : b.top) of_b.emplace(key(c), c.logprob);
  std::vector<std::pair<double, double>> shared;
  for (const SavedCandidate& c : a.top)
    if (const auto it = of_b.find(key(c)); it != of_b.end() && !it->first.empty())
      shared.emplace_back(c.logprob, it->second);
  if (shared.empty()) return std::nullopt;
  return lumped_kl(shared);
}

std::optional<bool> same_first(const SavedToken& a, const SavedToken& b) {
  const SavedCandidate *one = first_of(a), *other = first_of(b);
  if (one == nullptr || other == nullptr) return std::nullopt;
  if (one->id && other->id) return one->id == other->id;
  if (may_meet(*one) || may_meet(*other)) return std::nullopt;
  return one->text == other->text;
}

// The one that can be no smaller is not known to differ from what is below it.
bool says_nothing(const SavedToken& a, const SavedToken& b) {
  return (a.at_most && *b.logprob <= *a.logprob) || (b.at_most && *a.logprob <= *b.logprob);
}

}  // namespace

bool same_token(const SavedToken& a, const SavedToken& b) {
  if (a.id && b.id) return *a.id == *b.id;
  return a.text == b.text && !a.text.empty();
}

TextMatch match_texts(const SavedText& a, const SavedText& b) {
  const std::size_t least = std::min(a.tokens.size(), b.tokens.size());
  TextMatch match;
  while (match.count < least && same_token(a.tokens[match.count], b.tokens[match.count])) ++match.count;
  if (match.count == least) {
    if (a.tokens.size() != b.tokens.size())
      match.note = fmt::format("{} has {} tokens more", a.tokens.size() > b.tokens.size() ? "A" : "B",
                               std::max(a.tokens.size(), b.tokens.size()) - least);
    return match;
  }
  std::size_t behind = 0;
  while (behind < least &&
         same_token(a.tokens[a.tokens.size() - 1 - behind], b.tokens[b.tokens.size() - 1 - behind]))
    ++behind;
  if (behind == least && least > 0) {
    match = {a.tokens.size() - least, b.tokens.size() - least, least, {}, {}};
    match.note = fmt::format("{} has {} tokens before", a.tokens.size() > b.tokens.size() ? "A" : "B",
                             std::max(a.tokens.size(), b.tokens.size()) - least);
    return match;
  }
  const SavedToken &one = a.tokens[match.count], &other = b.tokens[match.count];
  match.fault = fmt::format("token {} is {} in A, {} in B", match.count, shown(one), shown(other));
  if (one.id.has_value() != other.id.has_value()) match.fault += " (which may be the same: --model names it)";
  return match;
}

MatchedPairs match_responses(const SavedResponses& a, const SavedResponses& b) {
  MatchedPairs all;
  const std::size_t texts = std::min(a.texts.size(), b.texts.size());
  if (a.texts.size() != b.texts.size())
    all.faults.push_back(fmt::format("A has {} texts, B {}: the first {} are compared", a.texts.size(),
                                     b.texts.size(), texts));
  for (std::size_t t = 0; t < texts; ++t) {
    const TextMatch& match = all.texts.emplace_back(match_texts(a.texts[t], b.texts[t]));
    const auto told = [&](const std::string& what) {
      return fmt::format("{}: {}", escape_for_terminal(a.texts[t].name), what);
    };
    if (!match.fault.empty()) all.faults.push_back(told("not the same tokens: " + match.fault));
    if (!match.note.empty()) all.notes.push_back(told(match.note));
    for (std::size_t i = 0; i < match.count; ++i) {
      const SavedToken &one = a.texts[t].tokens[match.begin_a + i],
                       &other = b.texts[t].tokens[match.begin_b + i];
      if (!one.logprob || !other.logprob) {
        all.unsaid += one.logprob || other.logprob ? 1 : 0;
        continue;
      }
      if (says_nothing(one, other)) continue;
      all.pairs.push_back({t, match.begin_a + i, *one.logprob, *other.logprob, rank_of(one), rank_of(other),
                           same_first(one, other), kl_of(one, other)});
    }
  }
  return all;
}

std::optional<std::uint64_t> rank_of(const SavedToken& token) {
  if (token.rank || !token.logprob || token.top.size() < 2 ||
      std::any_of(token.top.begin(), token.top.end(), may_meet))
    return token.rank;
  std::uint64_t above = 0;
  bool below = false;
  for (const SavedCandidate& candidate : token.top) {
    above += candidate.logprob > *token.logprob ? 1 : 0;
    below |= candidate.logprob < *token.logprob;
  }
  if (!below) return std::nullopt;
  return above + 1;
}

const SavedCandidate* first_of(const SavedToken& token) {
  if (token.top.size() < 2) return nullptr;
  return &*std::max_element(token.top.begin(), token.top.end(),
                            [](const auto& a, const auto& b) { return a.logprob < b.logprob; });
}

}  // namespace assay::logprobs
