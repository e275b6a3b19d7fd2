#include "kernels/logprobs/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/logprobs/other_choices.h"
#include "kernels/logprobs/token_ids.h"
#include "kernels/logprobs/token_names.h"
#include "refimpl/tokenizers/load.h"

namespace assay::logprobs {
namespace {

// A side, and of each of its texts what the model saw.
struct SideTexts {
  const SavedResponses* saved = nullptr;
  std::vector<EntireText> entire;
  std::vector<const TextTruth*> truths;
  std::deque<TextTruth> own;  // of texts in which its choices are others
};

std::string describe_unexplained(const OtherChoices& found) {
  if (found.ties == 0) return "";
  return fmt::format("no other choice near a tie explains it: {} were tried{}", found.ties - found.untried,
                     found.untried == 0 ? "" : fmt::format(", {} were not", found.untried));
}

// Both sides' truths: a text that both have is read once.
class BothTruths {
 public:
  BothTruths(const LogprobRequest& request, std::vector<Precision> precisions)
      : request_(request), maker_(*request.model, std::move(precisions), request.jobs) {
    for (const TokenId id : request.before)
      if (id >= maker_.model().vocabulary())
        throw Error::usage(fmt::format("a token before the texts is {}, beyond the model's vocabulary of {}",
                                       id, maker_.model().vocabulary()));
    const bool needed = needs_tokenizer(*request.a) || (request.b != nullptr && needs_tokenizer(*request.b));
    if (needed) tokenizer_ = find_tokenizer(request.model->checkpoint(), maker_.model().vocabulary());
  }

  SideTexts open(const SavedResponses& saved) const {
    SideTexts side = {&saved, {}, std::vector<const TextTruth*>(saved.texts.size()), {}};
    for (const SavedText& text : saved.texts)
      side.entire.push_back(
          entire_text(text, tokenizer_.get(), request_.before, maker_.model().vocabulary()));
    return side;
  }

  // Where one side saved ids and the other names, by the ids that the tokenizer made of these.
  MatchedPairs match(const SideTexts& a, const SideTexts& b) const {
    if (tokenizer_ == nullptr || has_ids(*a.saved) == has_ids(*b.saved))
      return match_responses(*a.saved, *b.saved);
    const TokenNames names(*tokenizer_);
    if (has_ids(*a.saved)) return match_responses(*a.saved, with_ids(*b.saved, b.entire, names));
    return match_responses(with_ids(*a.saved, a.entire, names), *b.saved);
  }

  // B may be null. A text that both have is read once, with the candidates of both.
  void read(SideTexts& a, SideTexts* b) {
    for (const SideTexts* side : {&a, b})
      for (std::size_t t = 0; side != nullptr && t < side->entire.size(); ++t) ask_for(*side, t);
    for (SideTexts* side : {&a, b}) {
      for (std::size_t t = 0; side != nullptr && t < side->entire.size(); ++t) {
        const EntireText& entire = side->entire[t];
        if (!entire.fault.empty() || interrupted()) continue;
        const auto [at, is_new] = read_.try_emplace(entire.ids);
        if (is_new) at->second = maker_.read(entire.ids, asked_.at(entire.ids));
        side->truths[t] = &at->second;
      }
    }
  }

  // Of models that choose, with the other choice near a tie where that is what a side says: of tokens that are beyond their
  // budgets; and, where all of them together are, of those whose budgets are wide because the plain computation turned there, too.
  SideVerdict judge(SideTexts& side, std::size_t precision) {
    SideVerdict verdict = judged(side, precision);
    std::vector<std::vector<ChoiceTie>> turned(side.entire.size());
    std::string unexplained;
    const auto explain = [&](double JudgedToken::*budget) {
      bool any = false;
      for (std::size_t t = 0; t < side.entire.size() && unexplained.empty() && !interrupted(); ++t) {
        BeyondText text = beyond(side, t, verdict, precision, budget);
        if (text.scored.empty()) continue;
        text.turned = turned[t];
        text.partly = budget == &JudgedToken::steady_budget;
        OtherChoices found = find_other_choices(maker_, text);
        if (!found.explained && !text.partly) unexplained = describe_unexplained(found);
        if (!found.tokens.empty()) take_truth(side, t, found.tokens);
        any = any || !found.tokens.empty();
        turned[t] = std::move(found.turned);
      }
      if (any) verdict = judged(side, precision);
    };
    explain(&JudgedToken::budget);
    if (verdict.spread_out && !verdict.first_beyond) explain(&JudgedToken::steady_budget);
    for (std::size_t t = 0; t < turned.size(); ++t)
      for (const ChoiceTie& tie : turned[t])
        (tie.kind == ChoiceKind::experts ? verdict.other_experts : verdict.other_keys)
            .push_back(fmt::format("text {}, {}", escape_for_terminal(side.saved->texts[t].name),
                                   describe_tie(tie)));
    if (!unexplained.empty()) verdict.reasons.push_back(std::move(unexplained));
    if (const std::size_t unkept = unkept_of(side); unkept > 0 && verdict.status != CaseStatus::passed)
      verdict.reasons.push_back(fmt::format("{} choices were not looked at: their scores take more than {}",
                                            with_thousands(unkept), human_bytes(kMostScoreBytes)));
    return verdict;
  }

 private:
  static std::size_t unkept_of(const SideTexts& side) {
    std::size_t sum = 0;
    for (const TextTruth* truth : side.truths) sum += truth == nullptr ? 0 : truth->unkept;
    return sum;
  }

  SideVerdict judged(const SideTexts& side, std::size_t precision) const {
    SideTruths truths = {side.saved, {}, side.truths, precision};
    for (const EntireText& text : side.entire) truths.before.push_back(text.before);
    return judge_side(truths, maker_.precisions()[precision]);
  }

  // Scored tokens of a text of which one is beyond its budget; none, if none is, or the model chooses nothing.
  BeyondText beyond(const SideTexts& side, std::size_t t, const SideVerdict& verdict, std::size_t precision,
                    double JudgedToken::*budget) const {
    BeyondText text;
    if (side.truths[t] == nullptr || side.truths[t]->choices[precision].empty()) return text;
    const EntireText& entire = side.entire[t];
    bool any = false;
    for (const JudgedToken& token : verdict.tokens) {
      if (token.text != t) continue;
      any = any || !(token.error <= token.*budget);
      text.scored.push_back(
          {token.position + entire.before, &side.saved->texts[t].tokens[token.position], token.*budget});
    }
    if (!any) return {};
    text.ids = entire.ids;
    text.asked = asked_.at(entire.ids);
    text.choices = side.truths[t]->choices[precision];
    return text;
  }

  static void take_truth(SideTexts& side, std::size_t t, const std::vector<TrueToken>& tokens) {
    TextTruth& own = side.own.emplace_back(*side.truths[t]);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::vector<PlainError> plain = std::move(own.tokens[i].plain);
      own.tokens[i] = tokens[i];
      own.tokens[i].plain = std::move(plain);
    }
    side.truths[t] = &own;
  }

  void ask_for(const SideTexts& side, std::size_t t) {
    const EntireText& entire = side.entire[t];
    if (!entire.fault.empty()) return;
    std::vector<std::vector<TokenId>>& asked = asked_[entire.ids];
    asked.resize(entire.ids.size());
    const std::vector<SavedToken>& tokens = side.saved->texts[t].tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::vector<TokenId>& here = asked[i + entire.before];
      for (const SavedCandidate& candidate : tokens[i].top)
        if (candidate.id) here.push_back(*candidate.id);
      std::sort(here.begin(), here.end());
      here.erase(std::unique(here.begin(), here.end()), here.end());
    }
  }

  const LogprobRequest& request_;
  TruthMaker maker_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::map<std::vector<TokenId>, std::vector<std::vector<TokenId>>> asked_;
  std::map<std::vector<TokenId>, TextTruth> read_;
};

SideVerdict verdict_of(BothTruths& both, SideTexts& side, std::size_t precision) {
  SideVerdict verdict = both.judge(side, precision);
  std::vector<std::string> faults;
  for (std::size_t t = 0; t < side.entire.size(); ++t) {
    if (side.entire[t].fault.empty()) continue;
    if (verdict.status == CaseStatus::passed) verdict.status = CaseStatus::mistrusted;
    faults.push_back(
        fmt::format("text {}: {}", escape_for_terminal(side.saved->texts[t].name), side.entire[t].fault));
  }
  // Where nothing could be held, they are why.
  verdict.reasons.insert(verdict.tokens.empty() ? verdict.reasons.begin() : verdict.reasons.end(),
                         faults.begin(), faults.end());
  return verdict;
}

std::string first_reason(const SideVerdict& side) {
  return side.reasons.empty() ? "" : ": " + side.reasons.front();
}

std::string turned(const SideVerdict& side) {
  std::string text;
  if (const std::size_t count = side.other_experts.size(); count > 0)
    text += fmt::format("; {} router{} near a tie chose otherwise", count, count == 1 ? "" : "s");
  if (const std::size_t count = side.other_keys.size(); count > 0)
    text += fmt::format("; {} choice{} of keys near a tie {}", count, count == 1 ? "" : "s",
                        count == 1 ? "was another" : "were others");
  return text;
}

// One side against the model.
void decide_alone(LogprobComparison& result, const LogprobRequest& request) {
  const SideVerdict& a = *result.a;
  result.status = a.status;
  if (a.status == CaseStatus::passed)
    result.verdict = fmt::format("OK: {} log-probabilities are the model's, within what {} explains{}",
                                 with_thousands(a.tokens.size()), name(request.precision_a), turned(a));
  else
    result.verdict =
        fmt::format("{}{}", a.status == CaseStatus::failed ? "FAILED" : "MISTRUSTED", first_reason(a));
}

void decide_between(LogprobComparison& result, const LogprobRequest& request) {
  const SideVerdict &a = *result.a, &b = *result.b;
  const bool wrong_a = a.status == CaseStatus::failed, wrong_b = b.status == CaseStatus::failed;
  if (wrong_a || wrong_b) {
    result.status = CaseStatus::failed;
    const SideVerdict& told = wrong_a ? a : b;
    const char* other = (wrong_a ? b : a).status == CaseStatus::passed ? ", the other is right" : "";
    result.verdict =
        wrong_a && wrong_b
            ? fmt::format("FAILED: both are wrong; A{}; B{}", first_reason(a), first_reason(b))
            : fmt::format("FAILED: {} is wrong{}{}", wrong_a ? "A" : "B", other, first_reason(told));
    return;
  }
  for (const SideVerdict* side : {&a, &b}) {
    if (side->status == CaseStatus::passed || result.status == CaseStatus::mistrusted) continue;
    result.status = CaseStatus::mistrusted;
    result.verdict = fmt::format("MISTRUSTED: {}{}", side == &a ? "A" : "B", first_reason(*side));
  }
  if (result.status == CaseStatus::mistrusted) return;
  if (!result.matched->faults.empty()) {
    result.status = CaseStatus::mistrusted;
    result.verdict = "MISTRUSTED: " + result.matched->faults.front();
    return;
  }
  result.verdict =
      fmt::format("OK: neither is wrong: {} and {} log-probabilities within what {} explains{}{}",
                  with_thousands(a.tokens.size()), with_thousands(b.tokens.size()),
                  request.precision_a == request.precision_b
                      ? std::string(name(request.precision_a))
                      : fmt::format("{} and {}", name(request.precision_a), name(request.precision_b)),
                  turned(a), turned(b));
}

// A and B alone: nobody knows who is right.
void decide_apart(LogprobComparison& result, const LogprobRequest& request) {
  const PairFigures& f = result.figures;
  if (f.tokens == 0) {
    result.status = CaseStatus::mistrusted;
    result.verdict = "MISTRUSTED: no token has a log-probability on both sides";
    if (!result.matched->faults.empty()) result.verdict += "; " + result.matched->faults.front();
  } else if (!result.matched->faults.empty()) {
    result.status = CaseStatus::mistrusted;
    result.verdict = "MISTRUSTED: " + result.matched->faults.front();
  } else if (f.first_beyond) {
    const LogprobPair& pair = result.matched->pairs[*f.first_beyond];
    result.status = CaseStatus::failed;
    result.verdict = fmt::format(
        "FAILED: {} of {} tokens are further apart than {}, the first: text {}, token {}: {:.6g} "
        "and {:.6g}",
        f.beyond, f.tokens, *request.limit, escape_for_terminal(request.a->texts[pair.text].name),
        pair.position, pair.a, pair.b);
  } else if (request.limit) {
    result.verdict =
        fmt::format("OK: {} tokens, none further apart than {}", with_thousands(f.tokens), *request.limit);
  } else {
    result.verdict = fmt::format(
        "COMPARED: {} tokens, {:.3g} apart in the mean, {:.3g} at most; no limit was asked for (--limit, or "
        "--model)",
        with_thousands(f.tokens), f.mean_abs, f.max_abs);
  }
}

void hold_apart(LogprobComparison& result, MatchedPairs matched, std::optional<double> limit) {
  result.figures = pair_figures(matched.pairs, limit);
  result.ratios = ratio_figures(matched.pairs);
  result.notes = matched.notes;
  if (matched.unsaid > 0)
    result.notes.push_back(fmt::format("{} tokens have a log-probability on one side alone", matched.unsaid));
  result.matched = std::move(matched);
}

}  // namespace

LogprobComparison compare_logprobs(const LogprobRequest& request) {
  LogprobComparison result;
  if (request.model == nullptr) {
    hold_apart(result, match_responses(*request.a, *request.b), request.limit);
    decide_apart(result, request);
    return result;
  }
  std::vector<Precision> precisions = {request.precision_a};
  if (request.b != nullptr && request.precision_b != request.precision_a)
    precisions.push_back(request.precision_b);
  BothTruths truths(request, precisions);
  SideTexts a = truths.open(*request.a);
  std::optional<SideTexts> b;
  if (request.b != nullptr) {
    b = truths.open(*request.b);
    hold_apart(result, truths.match(a, *b), request.limit);
  }
  truths.read(a, b ? &*b : nullptr);
  if (interrupted()) return result;
  result.a = verdict_of(truths, a, 0);
  if (!b) {
    decide_alone(result, request);
    return result;
  }
  result.b = verdict_of(truths, *b, precisions.size() - 1);
  decide_between(result, request);
  return result;
}

}  // namespace assay::logprobs
