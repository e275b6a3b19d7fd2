#include "kernels/cache_compare/retrieval.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/caches/stepped_text.h"
#include "refimpl/ops/sample.h"

namespace assay {
namespace {

constexpr std::size_t kPhrase = 4;

struct Question {
  std::vector<TokenId> prompt, without;  // with the phrase, and with as many tokens of the text in its place
  std::vector<TokenId> phrase;
};

class Questions {
 public:
  Questions(std::span<const TokenId> filler, std::span<const TokenId> begin,
            std::span<const TokenId> phrase_tokens, std::uint64_t seed)
      : filler_(filler), begin_(begin), words_(phrase_tokens.begin(), phrase_tokens.end()), random_(seed) {}

  Question next(std::size_t length, double depth) {
    Question q;
    for (std::size_t i = 0; i < kPhrase; ++i) {  // tokens that differ
      std::swap(words_[i], words_[i + random_() % (words_.size() - i)]);
      q.phrase.push_back(words_[i]);
    }
    const std::size_t room = length - begin_.size() - kPhrase - 1, first = random_() % filler_.size();
    q.without.assign(begin_.begin(), begin_.end());
    for (std::size_t i = 0; i < room + kPhrase; ++i)
      q.without.push_back(filler_[(first + i) % filler_.size()]);
    q.without.push_back(q.phrase.front());
    q.prompt = q.without;
    const auto before =
        begin_.size() + static_cast<std::size_t>(std::lround(depth * static_cast<double>(room)));
    std::copy(q.phrase.begin(), q.phrase.end(), q.prompt.begin() + static_cast<std::ptrdiff_t>(before));
    return q;
  }

 private:
  std::span<const TokenId> filler_, begin_;
  std::vector<TokenId> words_;
  std::mt19937_64 random_;
};

double log_probability(std::span<const double> logits, TokenId id) {
  const double most = *std::max_element(logits.begin(), logits.end());
  const double sum = std::accumulate(logits.begin(), logits.end(), 0.0,
                                     [&](double s, double x) { return s + std::exp(x - most); });
  return logits[id] - most - std::log(sum);
}

// Of the phrase's third and fourth token: ln p, and how often it is the first choice.
struct Recalled {
  double log_probability = 0;
  std::size_t found = 0;
};
Recalled ask(const CachedModel& of, Ops& ops, std::span<const TokenId> prompt,
             std::span<const TokenId> phrase) {
  SteppedText text(*of.model, ops, of.method, prompt.size());
  text.read(prompt);
  Recalled answer;
  for (std::size_t i = 1; i + 1 < kPhrase; ++i) {
    const std::vector<double> logits = text.read(phrase.subspan(i, 1));
    answer.found += argmax(logits) == phrase[i + 1] ? 1 : 0;
    answer.log_probability += log_probability(logits, phrase[i + 1]);
  }
  return answer;
}

void add(const Recalled& answer, const Recalled& without, RetrievalCell& cell) {
  cell.found += answer.found;
  cell.asked += kPhrase - 2;
  cell.log_probability += answer.log_probability;
  cell.without += without.log_probability;
}

}  // namespace

std::vector<RetrievalMap> retrieve(const CacheComparison& c, const RetrievalPlan& plan,
                                   std::span<const TokenId> filler, std::span<const TokenId> begin,
                                   std::span<const TokenId> phrase_tokens) {
  if (filler.empty() || phrase_tokens.size() < kPhrase)
    throw Error::usage("too few tokens to plant a phrase of four of them in a text");
  std::vector<RetrievalMap> maps(
      c.methods.size() + 1,
      RetrievalMap(plan.depths.size(), std::vector<RetrievalCell>(plan.lengths.size())));
  Questions questions(filler, begin, phrase_tokens, plan.seed);
  for (std::size_t l = 0; l < plan.lengths.size(); ++l) {
    if (plan.lengths[l] < begin.size() + kPhrase + 2 || plan.lengths[l] + kPhrase > c.model.context())
      throw Error::usage("a text to plant a phrase in is too short for it, or too long for the model");
    for (std::size_t d = 0; d < plan.depths.size(); ++d) {
      for (std::size_t trial = 0; trial < plan.trials && !interrupted(); ++trial) {
        const Question q = questions.next(plan.lengths[l], plan.depths[d]);
        const CachedModel full = {nullptr, &c.model};
        const Recalled without = ask(full, c.ops, q.without, q.phrase);
        add(ask(full, c.ops, q.prompt, q.phrase), without, maps[0][d][l]);
        for (std::size_t m = 0; m < c.methods.size(); ++m)
          add(ask(c.methods[m], c.ops, q.prompt, q.phrase), without, maps[m + 1][d][l]);
        if (c.read) c.read(q.prompt.size() + kPhrase);
      }
    }
  }
  return maps;
}

RetrievalCell total(const RetrievalMap& map) {
  RetrievalCell sum;
  for (const std::vector<RetrievalCell>& row : map) {
    for (const RetrievalCell& cell : row) {
      sum.found += cell.found;
      sum.asked += cell.asked;
      sum.log_probability += cell.log_probability;
      sum.without += cell.without;
    }
  }
  return sum;
}

}  // namespace assay
