#include "refimpl/fingerprint/logit_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr double kBias = 100;                     // the most that servers take
constexpr double kFarBelow = -60;                 // a token that no bias lifted into the list
constexpr std::size_t kTokensTried = 3;           // of which one may be the likeliest anyway
constexpr std::size_t kReferencesTried = 64;      // of which most have names of their own
constexpr std::size_t kEntriesAtOnce = 1u << 16;  // of one answer
constexpr std::size_t kRowsAskedAgain = 8, kMostRefused = 64;
constexpr std::size_t kSomeTokens = 16384;  // where nobody tells how many there are
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

using logprobs::SavedToken;

// ln p by name, without those that bear one name or cannot be.
std::map<std::string, double> listed(const SavedToken& token) {
  std::map<std::string, double> values;
  std::set<std::string> twice;
  for (const logprobs::SavedCandidate& each : token.top) {
    if (logprobs::may_be_several(each.id, each.text)) continue;
    if (!values.emplace(name_of(each.id, each.text), each.logprob).second)
      twice.insert(name_of(each.id, each.text));
  }
  for (const std::string& name : twice) values.erase(name);
  if (!logprobs::may_be_several(token.id, token.text))
    values.emplace(name_of(token.id, token.text), *token.logprob);
  std::erase_if(values, [](const auto& each) { return !std::isfinite(each.second); });
  return values;
}

}  // namespace

std::string_view in_words(LogitWay way) {
  switch (way) {
    case LogitWay::whole_lists: return "whole vectors";
    case LogitWay::biased_lists: return "lists of tokens that logit_bias lifts, against one of them";
    case LogitWay::forced_tokens: return "tokens that logit_bias chooses, one an answer";
  }
  return "";
}

LogitCollector::LogitCollector(LogitEndpoint& endpoint, Contexts contexts,
                               std::optional<std::size_t> vocabulary, std::size_t most_tokens)
    : endpoint_(endpoint),
      contexts_(std::move(contexts)),
      vocabulary_(vocabulary),
      most_tokens_(most_tokens) {}

// The longest list that it gives.
void LogitCollector::find_width(const PromptSent& prompt) {
  constexpr std::size_t kWidths[] = {1u << 18, 5000, 1000, 100, 20, 5};
  const auto try_width = [&](std::size_t top) {
    const NextTokens next = endpoint_.ask({&prompt, 1}, top);
    width_ = next.refused.empty() ? next.tokens.front().top.size() : 0;
    return width_ > 0;
  };
  asked_whole_ = vocabulary_ && try_width(*vocabulary_);
  if (asked_whole_) return;
  for (const std::size_t top : kWidths)
    if ((!vocabulary_ || top < *vocabulary_) && try_width(top)) return;
}

std::string LogitCollector::choose_way() {
  const PromptSent prompt = contexts_(0);
  find_width(prompt);
  if (width_ == 0) return "the server tells no likeliest tokens";
  // Of tokens whose texts are the same a list by text has one.
  const bool whole = vocabulary_ ? asked_whole_ && 2 * width_ > *vocabulary_ : width_ > kSomeTokens;
  if (!whole) return choose_by_bias(prompt);
  groups_.push_back({});
  return "";
}

std::string LogitCollector::choose_by_bias(const PromptSent& prompt) {
  const SavedToken plain = endpoint_.ask({&prompt, 1}, width_).tokens.at(0);
  const std::string greedy = name_of(plain.id, plain.text);
  for (std::size_t i = 0; i < std::min(kTokensTried, tokens_there_are()); ++i) {
    const NextTokens next = endpoint_.ask({&prompt, 1}, width_, {{token(i), kBias}});
    if (!next.refused.empty())
      return fmt::format("it tells of {} tokens at once and takes no logit_bias: {}", width_, next.refused);
    const SavedToken& chosen = next.tokens.front();
    if (name_of(chosen.id, chosen.text) == greedy) continue;  // it may be that very token
    // Without the bias it is no likelier than the likeliest: p ≤ 1/2.
    way_ = *chosen.logprob < std::log(0.5) ? LogitWay::forced_tokens : LogitWay::biased_lists;
    if (way_ == LogitWay::forced_tokens) return "";
    if (width_ < 2) return "it tells of one token at once";
    return choose_reference(prompt);
  }
  return fmt::format("it tells of {} tokens at once, and logit_bias changes nothing", width_);
}

// The first that its name tells apart: answers are told against it, and one that is like others is not found in them.
std::string LogitCollector::choose_reference(const PromptSent& prompt) {
  for (std::size_t i = 0; i < std::min(kReferencesTried, tokens_there_are()); ++i) {
    const NextTokens next = endpoint_.ask({&prompt, 1}, width_, {{token(i), kBias}});
    if (!next.refused.empty()) return "it takes no logit_bias any more: " + next.refused;
    const SavedToken& chosen = next.tokens.front();
    if (logprobs::may_be_several(chosen.id, chosen.text)) continue;
    reference_ = i;
    reference_name_ = name_of(chosen.id, chosen.text);
    return "";
  }
  return "no token's name tells it apart from others";
}

std::size_t LogitCollector::tokens_there_are() const {
  return vocabulary_.value_or(kSomeTokens);
}

// All of them, far apart one after the other: neighbours in a vocabulary are alike.
TokenNumber LogitCollector::token(std::size_t i) const {
  const std::size_t count = tokens_there_are();
  std::size_t stride = std::max<std::size_t>(1, static_cast<std::size_t>(0.618 * static_cast<double>(count)));
  while (std::gcd(stride, count) != 1) ++stride;
  return static_cast<TokenNumber>((i + 1) * stride % count);
}

void LogitCollector::add_groups(std::size_t tokens) {
  if (way_ == LogitWay::whole_lists) return;
  const bool biased = way_ == LogitWay::biased_lists;
  const std::size_t each = biased ? width_ - 1 : 1;
  tokens = std::min(tokens, tokens_there_are() - (biased ? 1 : 0));
  while (groups_.size() * each < tokens) {
    Group group;
    if (biased) group.biases.emplace_back(token(reference_), kBias);
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t number = groups_.size() * each + i;  // among those that are not the reference
      const std::size_t at = number + (biased && number >= reference_ ? 1 : 0);
      if (at < tokens_there_are()) group.biases.emplace_back(token(at), kBias);
    }
    groups_.push_back(std::move(group));
  }
}

// So many contexts that the server takes: with ids drawn out of a vocabulary there may be some that stand for no text.
void LogitCollector::add_rows(std::size_t count) {
  std::vector<PromptSent> prompts;
  for (std::size_t i = 0; i < std::min(count, endpoint_.most_prompts()); ++i)
    prompts.push_back(contexts_(next_context_++));
  const bool all = endpoint_.ask(prompts, 1).refused.empty();
  for (PromptSent& prompt : prompts) {
    const std::string why = all ? "" : endpoint_.ask({&prompt, 1}, 1).refused;
    if (why.empty()) {
      prompts_.push_back(std::move(prompt));
      rows_.emplace_back(columns_, kUnknown);
    } else if (++refused_ > kMostRefused + prompts_.size()) {
      throw Error::input(
          fmt::format("the server refuses {} of {} prompts: {}", refused_, next_context_, why));
    }
  }
}

void LogitCollector::name_columns(Group& group, const SavedToken& first) {
  std::vector<std::string> names;
  if (way_ == LogitWay::forced_tokens) {
    names.push_back(name_of(first.id, first.text));
  } else {
    for (const auto& [name, value] : listed(first)) {
      const bool lifted = way_ == LogitWay::whole_lists || value > kFarBelow;
      if (lifted && name != reference_name_) names.push_back(name);
    }
  }
  const std::size_t kept = std::min(names.size(), most_tokens_);
  for (std::size_t i = 0; i < kept; ++i) group.columns.emplace(names[i * names.size() / kept], columns_++);
}

LogitCollector::Values LogitCollector::values_of(const Group& group, const SavedToken& answer) const {
  Values values;
  if (way_ == LogitWay::forced_tokens) {
    const auto column = group.columns.find(name_of(answer.id, answer.text));
    if (column != group.columns.end()) values.emplace_back(column->second, *answer.logprob);
    return values;
  }
  const std::map<std::string, double> told = listed(answer);
  double reference = 0;
  if (way_ == LogitWay::biased_lists) {
    const auto found = told.find(reference_name_);
    if (found == told.end()) return values;
    reference = found->second;
  }
  for (const auto& [name, column] : group.columns)
    if (const auto found = told.find(name); found != told.end())
      values.emplace_back(column, found->second - reference);
  return values;
}

NextTokens LogitCollector::ask(const Group& group, std::span<const std::size_t> rows) {
  std::vector<PromptSent> prompts;
  for (const std::size_t row : rows) prompts.push_back(prompts_[row]);
  // Where names stand for several tokens a whole list is told in fewer, and so many are not all.
  const std::size_t top = way_ == LogitWay::whole_lists && asked_whole_ ? *vocabulary_ : width_;
  return endpoint_.ask(prompts, way_ == LogitWay::forced_tokens ? 1 : top, group.biases);
}

void LogitCollector::fill(Group& group, std::size_t contexts, const Told& told) {
  const std::size_t at_once = std::clamp<std::size_t>(kEntriesAtOnce / width_, 1, endpoint_.most_prompts());
  while (group.rows_done < contexts && !interrupted()) {
    std::vector<std::size_t> rows(std::min(at_once, contexts - group.rows_done));
    std::iota(rows.begin(), rows.end(), group.rows_done);
    const NextTokens next = ask(group, rows);
    if (!next.refused.empty()) throw Error::input("the server: " + next.refused);
    if (group.columns.empty()) name_columns(group, next.tokens.front());
    std::size_t entries = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<double>& row = rows_[rows[i]];
      row.resize(std::max(row.size(), columns_), kUnknown);
      for (const auto& [column, value] : values_of(group, next.tokens[i])) row[column] = value;
      entries += group.columns.size();
    }
    group.rows_done += rows.size();
    told(entries);
  }
}

void LogitCollector::extend(std::size_t contexts, std::size_t tokens, const Told& told) {
  while (prompts_.size() < contexts && !interrupted()) add_rows(contexts - prompts_.size());
  add_groups(tokens);
  for (Group& group : groups_) fill(group, prompts_.size(), told);
}

DenseMatrix LogitCollector::table() const {
  std::vector<std::size_t> whole;
  const auto value = [&](const std::vector<double>& row, std::size_t column) {
    return column < row.size() ? row[column] : kUnknown;
  };
  for (std::size_t column = 0; column < columns_; ++column)
    if (std::none_of(rows_.begin(), rows_.end(),
                     [&](const std::vector<double>& row) { return std::isnan(value(row, column)); }))
      whole.push_back(column);
  DenseMatrix table(rows_.size(), whole.size());
  for (std::size_t j = 0; j < whole.size(); ++j)
    for (std::size_t i = 0; i < rows_.size(); ++i) table.at(i, j) = rows_[i][whole[j]];
  return table;
}

double LogitCollector::asked_again() {
  double apart = 0;
  for (std::size_t i = 0; i < std::min(kRowsAskedAgain, rows_.size()) && !groups_.empty(); ++i) {
    const NextTokens next = ask(groups_.front(), std::span(&i, 1));
    if (!next.refused.empty()) throw Error::input("the server: " + next.refused);
    for (const auto& [column, value] : values_of(groups_.front(), next.tokens.front()))
      if (!std::isnan(rows_[i][column])) apart = std::max(apart, std::abs(value - rows_[i][column]));
  }
  return apart;
}

}  // namespace assay
