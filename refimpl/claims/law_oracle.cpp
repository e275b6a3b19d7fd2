#include "refimpl/claims/law_oracle.h"

#include <algorithm>
#include <cmath>

#include "core/numeric/largest.h"
#include "refimpl/ops/kernel_set.h"
#include "refimpl/speculation/model_drafter.h"

namespace assay {
namespace {

const std::vector<TokenId> kPrompt = {1, 0, 1};

// 40 bits of the text, so that they are a number that a hidden state of one element holds.
std::uint64_t mixed(std::uint64_t hash, TokenId id) {
  hash = (hash ^ (id + 1)) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 29;
}

// A way through the decisions, one after another; then the next way.
class Ways {
 public:
  std::size_t choose(std::span<const double> law) {
    if (depth_ == steps_.size()) {
      steps_.push_back({{law.begin(), law.end()}, 0});
      steps_.back().choice = next_of(steps_.back(), 0);
    }
    const Step& step = steps_[depth_++];
    weight_ *= step.law[step.choice];
    return step.choice;
  }
  double weight() const { return weight_; }
  // False: there was none left.
  bool next() {
    depth_ = 0;
    weight_ = 1;
    while (!steps_.empty()) {
      Step& last = steps_.back();
      last.choice = next_of(last, last.choice + 1);
      if (last.choice < last.law.size()) return true;
      steps_.pop_back();
    }
    return false;
  }

 private:
  struct Step {
    std::vector<double> law;
    std::size_t choice;
  };
  static std::size_t next_of(const Step& step, std::size_t first) {
    while (first < step.law.size() && !(step.law[first] > 0)) ++first;
    return first;
  }
  std::vector<Step> steps_;
  std::size_t depth_ = 0;
  double weight_ = 1;
};

class EnumeratedDraws : public Draws {
 public:
  explicit EnumeratedDraws(Ways& ways) : ways_(ways) {}
  TokenId token(std::span<const double> law, std::uint64_t, DrawPurpose, std::size_t) const override {
    return static_cast<TokenId>(ways_.choose(law));
  }
  bool keeps(double probability, std::uint64_t, std::size_t) const override {
    const double law[] = {1 - probability, probability};
    return ways_.choose(law) == 1;
  }

 private:
  Ways& ways_;
};

// The likeliest tokens of a draft, which say nothing of their law.
class CertainPicks : public AcceptanceRule {
 public:
  explicit CertainPicks(const AcceptanceRule& rule) : rule_(rule) {}
  Chosen choose(std::span<const double> logits, std::span<const Guess* const> children,
                const Place& place) const override {
    return rule_.choose(logits, children, place);
  }
  std::vector<Guess> pick(std::span<const double> logits, std::size_t count, const Place&) const override {
    std::vector<Guess> guesses;
    for (TokenId id = 0; id < logits.size(); ++id) guesses.push_back({.token = id});
    std::stable_sort(guesses.begin(), guesses.end(),
                     [&](const Guess& a, const Guess& b) { return logits[a.token] > logits[b.token]; });
    guesses.resize(std::min(count, guesses.size()));
    return guesses;
  }

 private:
  const AcceptanceRule& rule_;
};

void add_texts(const StubModel& target, const SequenceSampler& sampler, std::vector<TokenId>& text,
               std::size_t length, double weight, TextLaw& law) {
  const bool over = !sampler.outputs().empty() && sampler.ends(sampler.outputs().back());
  if (over || sampler.outputs().size() == length) {
    law[{sampler.outputs().begin(), sampler.outputs().end()}] += weight;
    return;
  }
  const std::vector<double> p = sampler.process(target.logits_behind(text));
  for (TokenId id = 0; id < p.size(); ++id) {
    if (p[id] == 0) continue;
    SequenceSampler longer = sampler;
    longer.push(id);
    text.push_back(id);
    add_texts(target, longer, text, length, weight * p[id], law);
    text.pop_back();
  }
}

TextLaw written_law(const LawCase& test, const StubModel& target, LawResult& result) {
  const std::unique_ptr<Ops> ops = reference_kernels().make({Precision::f64}, 1);
  const StubModel draft(test.same ? 1 : 2, test.vocabulary);
  Ways ways;
  ServingOptions options = {.cache = test.cache, .speculation = test.speculation};
  if (!options.speculation.source) options.speculation.source = std::make_shared<ModelDrafts>(draft, *ops);
  const std::shared_ptr<const AcceptanceRule> rule = options.speculation.rule;
  if (test.certain) options.speculation.rule = std::make_shared<CertainPicks>(*rule);
  ServingParts parts = test.parts;
  parts.draws = [&](const DrawKey&) { return std::make_unique<EnumeratedDraws>(ways); };
  TextLaw law;
  do {
    ServingEngine engine(target, *ops, options, parts);
    if (test.beside > 0) engine.submit({.text = {.prompt = kPrompt, .max_new_tokens = test.beside}});
    const std::size_t number = engine.submit(
        {.text = {.prompt = kPrompt, .max_new_tokens = test.length, .sampling = test.sampling}});
    while (engine.step()) {
    }
    law[engine.result(number).ids] += ways.weight();
    result.counts = engine.counts();
    ++result.ways;
  } while (ways.next());
  return law;
}

}  // namespace

Matrix StubModel::hidden(const Batch& batch, Ops& ops, const Taps&) const {
  for (const Batch::Sequence& s : batch.sequences) {
    const auto first = batch.tokens.begin() + static_cast<std::ptrdiff_t>(s.first);
    const std::vector<double> ids(first, first + static_cast<std::ptrdiff_t>(s.count));
    const Matrix rows = ops.upload(ids, s.count, 1);
    s.cache->put(0, rows, rows);
  }
  std::vector<double> hashes;
  for (const Batch::Sequence& s : batch.sequences) {
    const PagedKvView keys = s.cache->keys(0);
    const std::size_t begin = s.cache->length(), end = begin + s.count;
    const std::vector<std::int32_t> table = row_table(keys, 0, end);
    const std::vector<double> ids =
        ops.download(ops.gather(keys.base, std::vector<std::size_t>(table.begin(), table.end())));
    std::uint64_t hash = seed_;
    for (std::size_t i = 0; i < end; ++i) {
      hash = mixed(hash, static_cast<TokenId>(ids[i]));
      if (i >= begin) hashes.push_back(static_cast<double>(hash >> 24));
    }
  }
  return ops.upload(hashes, hashes.size(), 1);
}

Matrix StubModel::logits(const Matrix& hidden, Ops& ops, const Taps&) const {
  std::vector<double> rows;
  for (const double hash : ops.download(hidden)) {
    for (std::size_t i = 0; i < vocabulary_; ++i)
      rows.push_back(4 * keyed_uniform({static_cast<std::uint64_t>(hash)}, i));
  }
  return ops.upload(rows, hidden.rows(), vocabulary_);
}

std::vector<double> StubModel::logits_behind(std::span<const TokenId> text) const {
  std::uint64_t hash = seed_;
  for (const TokenId id : text) hash = mixed(hash, id);
  std::vector<double> row;
  for (std::size_t i = 0; i < vocabulary_; ++i) row.push_back(4 * keyed_uniform({hash >> 24}, i));
  return row;
}

TextLaw true_law(const StubModel& target, const SamplingParams& sampling, std::size_t length) {
  TextLaw law;
  std::vector<TokenId> text = kPrompt;
  add_texts(target, SequenceSampler(sampling, kPrompt), text, length, 1, law);
  return law;
}

LawResult compare_laws(const LawCase& test) {
  const StubModel target(1, test.vocabulary);
  LawResult result;
  TextLaw truth = true_law(target, test.sampling, test.length);
  double sum = 0;
  for (const auto& [text, weight] : written_law(test, target, result)) {
    sum += weight;
    truth[text] -= weight;
  }
  for (const auto& [text, difference] : truth) {
    if (!(std::abs(difference) <= result.error)) result.text = text;
    result.error = larger_or_nan(result.error, std::abs(difference));
  }
  result.error = larger_or_nan(result.error, std::abs(sum - 1));
  return result;
}

std::vector<LawCase> law_cases(const std::shared_ptr<const AcceptanceRule>& rule) {
  const std::vector<std::pair<std::string, SamplingParams>> rules = {
      {"temperature 1", {.temperature = 1}},
      {"greedy", {.temperature = 0}},
      {"top-k", {.temperature = 0.6, .top_k = 3}},
      {"top-p", {.temperature = 1.4, .top_p = 0.8}},
      {"min-p", {.temperature = 1, .min_p = 0.2}},
      {"typical-p", {.temperature = 1, .typical_p = 0.7}},
      {"repetition penalty", {.temperature = 0.9, .repetition_penalty = 1.5}},
      {"presence and frequency", {.temperature = 1, .presence_penalty = 0.7, .frequency_penalty = 0.9}},
      {"logit bias", {.temperature = 1, .logit_bias = {{1, 1.5}, {2, -1}}}},
      {"end tokens", {.temperature = 1, .min_tokens = 1, .stop_tokens = {2}}}};
  const std::vector<std::pair<std::string, TreeShape>> shapes = {
      {"one guess", {1}}, {"two in a row", {1, 1}}, {"a tree", {2, 1}}};
  std::vector<LawCase> cases;
  for (const auto& [rule_name, sampling] : rules) {
    for (const auto& [shape_name, shape] : shapes) {
      for (const bool certain : {false, true})
        cases.push_back({.name = rule_name + ", " + shape_name + (certain ? ", certain" : ""),
                         .vocabulary = 3,
                         .length = 4,
                         .sampling = sampling,
                         .speculation = {.source = nullptr, .shape = shape, .rule = rule},
                         .certain = certain});
    }
  }
  cases.push_back({.name = "the target as its own draft",
                   .vocabulary = 5,
                   .length = 4,
                   .sampling = {.temperature = 1},
                   .speculation = {.source = nullptr, .shape = {1, 1}, .rule = rule},
                   .same = true});
  cases.push_back({.name = "sixteen tokens",
                   .vocabulary = 16,
                   .length = 3,
                   .sampling = {.temperature = 1.1, .min_p = 0.03},
                   .speculation = {.source = nullptr, .shape = {1}, .rule = rule}});
  LawCase serving = {.name = "guesses cut by a step's budget",
                     .vocabulary = 3,
                     .length = 4,
                     .sampling = {.temperature = 1, .frequency_penalty = 0.5},
                     .speculation = {.source = nullptr, .shape = {1, 1}, .rule = rule},
                     .cache = {.blocks = 16, .block_tokens = 1, .tokens_a_step = 2, .chunk = 2}};
  cases.push_back(serving);
  serving.name = "from known blocks";
  serving.cache = {.blocks = 32, .block_tokens = 1, .tokens_a_step = 3};
  serving.beside = 1;
  cases.push_back(serving);
  serving.name = "preempted";
  serving.cache = {.blocks = 3, .block_tokens = 4};
  serving.beside = 9;
  cases.push_back(serving);
  return cases;
}

}  // namespace assay
