#include "refimpl/claims/directed.h"

#include <algorithm>
#include <random>
#include <utility>

#include "refimpl/speculation/layer_drafter.h"
#include "refimpl/speculation/model_drafter.h"

namespace assay {
namespace {

constexpr std::size_t kMostIds = 90;  // as of random workloads
// Steps in which a text is over, whose prompt is read two tokens a step.
constexpr std::size_t kLongAfter = 24;
// Draws are nearly of all tokens alike, so that what is drawn with other numbers, or another text, is another one.
constexpr double kHot = 5;

// Requests, when each comes, and the cache that they share.
class CaseMaker {
 public:
  CaseMaker(const CaseModel& of, std::size_t block_tokens, std::size_t blocks) : of_(of) {
    made_.schedule.options.poison = true;
    made_.schedule.options.identity = "directed";
    // A step ends at every block, behind which the states of recurrent layers are kept.
    cache() = {.blocks = blocks, .block_tokens = block_tokens, .chunk = block_tokens};
  }

  SchedulerOptions& cache() { return made_.schedule.options.cache; }
  SpeculationOptions& speculation() { return made_.schedule.options.speculation; }
  Schedule& schedule() { return made_.schedule; }

  std::size_t ids() const { return std::min(of_.model.vocabulary(), kMostIds); }
  // Others for each number.
  std::vector<TokenId> tokens(std::size_t count, std::uint64_t number) const {
    std::mt19937_64 random(of_.seed * 1000 + number);
    std::vector<TokenId> made(count);
    for (TokenId& id : made) id = static_cast<TokenId>(random() % ids());
    return made;
  }

  ServingRequest& add(std::vector<TokenId> prompt, std::size_t most, std::size_t arrival,
                      std::string salt = {}) {
    Schedule& s = made_.schedule;
    s.requests.push_back(made_.requests.size());
    s.arrival.push_back(arrival);
    s.salts.push_back(std::move(salt));
    ServingRequest& request = made_.requests.emplace_back();
    request.text.prompt = std::move(prompt);
    request.text.max_new_tokens = most;
    return request;
  }

  DirectedCase done() { return std::move(made_); }

 private:
  const CaseModel& of_;
  DirectedCase made_;
};

// Guesses the id after the newest token's: right of one in as many as there are tokens.
class NextIds : public DraftSource {
 public:
  explicit NextIds(std::size_t vocabulary) : vocabulary_(vocabulary) {}
  std::unique_ptr<Drafter> start() const override { return std::make_unique<Counting>(vocabulary_); }

 private:
  class Counting : public Drafter, public DraftWalk {
   public:
    explicit Counting(std::size_t vocabulary) : logits_(vocabulary) {}
    GuessTree guess(const DraftRequest& request) override {
      return grow_tree(request, enter(request.text.back()), *this);
    }
    std::vector<double> enter(TokenId id) override {
      std::vector<double> logits = logits_;
      logits[(id + 1) % logits.size()] = 1000;
      return logits;
    }
    void leave() override {}

   private:
    std::vector<double> logits_;
  };
  std::size_t vocabulary_;
};

// The model guesses for itself, and is always right.
SpeculationOptions right_guesses(const CaseModel& of, TreeShape shape) {
  return {.source = std::make_shared<ModelDrafts>(of.model, of.ops), .shape = std::move(shape)};
}

// A prompt of four blocks that comes again.
CaseMaker repeating(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  for (const std::size_t arrival : {std::size_t{0}, kLongAfter}) maker.add(maker.tokens(8, 1), 3, arrival);
  return maker;
}

CaseMaker crowding(const CaseModel& of, std::size_t texts, std::size_t prompt, std::size_t blocks) {
  CaseMaker maker(of, 1, blocks);
  maker.cache().chunk = 512;
  for (std::size_t i = 0; i < texts; ++i) maker.add(maker.tokens(prompt, i), 10, 0);
  return maker;
}

}  // namespace

DirectedCase different_prompts(const CaseModel& of) {
  constexpr std::size_t kPrompts = 32, kTokens = 6, kApart = 8;
  CaseMaker maker(of, 1, kPrompts * (kTokens + 1));
  for (std::size_t i = 0; i < kPrompts; ++i) maker.add(maker.tokens(kTokens, i), 1, i * kApart);
  return maker.done();
}

DirectedCase prompts_of_one_sum(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  std::vector<TokenId> prompt = maker.tokens(6, 1);
  prompt[0] = prompt[0] % 8 + 1;
  prompt[1] %= 8;
  maker.add(prompt, 3, 0);
  prompt[0] -= 1;
  prompt[1] += 31;
  maker.add(prompt, 3, kLongAfter);
  return maker.done();
}

DirectedCase blocks_behind_others(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  const std::vector<TokenId> begin = maker.tokens(2, 1), middle = maker.tokens(2, 2),
                             other = maker.tokens(4, 3);
  std::vector<TokenId> first = begin, last = other;
  first.insert(first.end(), middle.begin(), middle.end());
  first.push_back(1);
  last.resize(2);
  last.insert(last.end(), middle.begin(), middle.end());
  last.push_back(1);
  maker.add(first, 3, 0);
  maker.add(other, 3, kLongAfter);
  maker.add(last, 3, 2 * kLongAfter);
  return maker.done();
}

DirectedCase blocks_of_other_weights(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  maker.add(maker.tokens(9, 1), 3, 0);
  maker.schedule().disk_bytes = std::uint64_t{1} << 30;
  maker.schedule().before = LeftBefore::other_weights;
  return maker.done();
}

DirectedCase repeated_under_a_salt(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  maker.add(maker.tokens(8, 1), 3, 0, "one");
  maker.add(maker.tokens(8, 1), 3, kLongAfter, "another");
  return maker.done();
}

DirectedCase evicted_under_a_salt(const CaseModel& of) {
  CaseMaker maker(of, 2, 6);
  maker.add(maker.tokens(8, 1), 1, 0, "one");
  maker.add(maker.tokens(11, 2), 1, kLongAfter, "between");
  maker.add(maker.tokens(8, 1), 1, 2 * kLongAfter, "another");
  maker.schedule().disk_bytes = std::uint64_t{1} << 30;
  return maker.done();
}

DirectedCase repeated(const CaseModel& of) {
  return repeating(of).done();
}

DirectedCase repeated_and_counted(const CaseModel& of) {
  CaseMaker maker = repeating(of);
  maker.schedule().hits = 6;  // of 8 tokens in blocks of two, the last of which is computed
  if (of.model.draft_layers() > 0)
    maker.speculation() = {.source = std::make_shared<LayerDrafts>(of.model, of.ops), .shape = {1, 1}};
  return maker.done();
}

DirectedCase repeated_for_logits(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  maker.add(maker.tokens(8, 1), 3, 0);
  maker.add(maker.tokens(8, 1), 3, kLongAfter).prompt_logits = true;
  return maker.done();
}

DirectedCase twice_at_once(const CaseModel& of) {
  CaseMaker maker(of, 1, 32);
  for (int i = 0; i < 2; ++i) maker.add(maker.tokens(6, 1), 3, 0);
  return maker.done();
}

DirectedCase twice_amid_a_block(const CaseModel& of) {
  CaseMaker maker(of, 4, 32);
  maker.cache().chunk = 3;
  for (int i = 0; i < 2; ++i) maker.add(maker.tokens(9, 1), 3, 0);
  return maker.done();
}

// Of six blocks the first text leaves four known; one that follows takes four, and two are left, both known.
DirectedCase more_than_is_free(const CaseModel& of) {
  CaseMaker maker(of, 2, 6);
  maker.cache().chunk = 512;
  maker.add(maker.tokens(9, 1), 1, 0);
  for (std::size_t i = 0; i < 2; ++i) maker.add(maker.tokens(8, 2 + i), 1, kLongAfter);
  return maker.done();
}

// Blocks go from hand to hand in the order of last use: the third text fills those that the first one filled.
DirectedCase recycled(const CaseModel& of) {
  CaseMaker maker(of, 2, 7);
  maker.add(maker.tokens(8, 1), 1, 0);
  for (std::size_t i = 1; i <= 2; ++i) maker.add(maker.tokens(12, 1 + i), 1, i * kLongAfter);
  maker.add(maker.tokens(8, 1), 1, 3 * kLongAfter);
  return maker.done();
}

// Of five blocks the first text leaves three known; the next takes the two that nobody had, and one of these.
DirectedCase evicted_in_part(const CaseModel& of) {
  CaseMaker maker(of, 2, 5);
  maker.add(maker.tokens(6, 1), 1, 0);
  maker.add(maker.tokens(6, 2), 1, kLongAfter);
  maker.add(maker.tokens(6, 1), 1, 2 * kLongAfter);
  maker.schedule().hits = 4;
  return maker.done();
}

DirectedCase beyond_the_window(const CaseModel& of) {
  const std::size_t window = cache_groups(of.model.cache_widths()).back().window;
  CaseMaker maker(of, 1, window + 16);
  maker.cache().chunk = std::max<std::size_t>(1, window / 4);
  maker.add(maker.tokens(window + 5, 1), 6, 0);
  return maker.done();
}

// Either fits alone; the first takes the last block, and the second, which needs one in the same step, waits for its end.
DirectedCase two_that_crowd(const CaseModel& of) {
  CaseMaker maker = crowding(of, 2, 4, 19);
  maker.cache().prefix_cache = false;
  return maker.done();
}

// The third gives up its six blocks, which the others fill before the second gives up its own.
DirectedCase three_that_crowd(const CaseModel& of) {
  return crowding(of, 3, 3, 18).done();
}

DirectedCase two_that_crowd_penalized(const CaseModel& of) {
  DirectedCase made = two_that_crowd(of);
  for (ServingRequest& request : made.requests) {
    request.text.sampling.logit_bias = {{3, 60}};
    request.text.sampling.frequency_penalty = 100;
  }
  return made;
}

DirectedCase one_that_never_fits(const CaseModel& of) {
  CaseMaker maker(of, 2, 4);
  maker.add(maker.tokens(9, 1), 3, 0);
  maker.add(maker.tokens(4, 2), 3, 1);
  maker.schedule().refused = {0};
  return maker.done();
}

DirectedCase two_that_are_drawn(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  for (std::size_t i = 0; i < 2; ++i) {
    SamplingParams& sampling = maker.add(maker.tokens(4, i), 8, i).text.sampling;
    sampling.temperature = kHot;
    sampling.seed = 5 * i;
  }
  return maker.done();
}

DirectedCase forked_amid_a_block(const CaseModel& of) {
  CaseMaker maker(of, 4, 32);
  ServingRequest& request = maker.add(maker.tokens(5, 1), 6, 0);
  request.samples = 3;
  request.text.sampling.temperature = kHot;
  return maker.done();
}

DirectedCase prompt_logits_in_chunks(const CaseModel& of) {
  CaseMaker maker(of, 3, 32);
  maker.add(maker.tokens(8, 1), 3, 0).prompt_logits = true;
  return maker.done();
}

DirectedCase prompt_logits_beside_guesses(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  maker.speculation() = right_guesses(of, {1, 1});
  maker.add(maker.tokens(3, 1), 24, 0);
  maker.add(maker.tokens(6, 2), 2, 3).prompt_logits = true;
  return maker.done();
}

DirectedCase wrong_guesses(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  maker.speculation() = {.source = std::make_shared<NextIds>(of.model.vocabulary()), .shape = {1, 1}};
  maker.add(maker.tokens(4, 1), 8, 0).text.sampling.temperature = kHot;
  return maker.done();
}

// The step behind the first token would write all others: the text stops before the last of them, which is also the last
// that it may have.
DirectedCase stop_amid_a_step(const CaseModel& of) {
  constexpr std::size_t kMade = 5;
  CaseMaker maker(of, 4, 32);
  maker.speculation() = right_guesses(of, {1, 1, 1, 1});
  GenerationRequest& text = maker.add(maker.tokens(4, 1), kMade, 0).text;
  text.sampling.temperature = kHot;
  const std::vector<TokenId> ids = TextEngine(of.model, of.ops).generate({text}).front().ids;
  for (std::size_t i = 1; i + 1 < ids.size(); ++i) {
    const auto at = ids.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(ids.begin(), at, *at) != at) continue;
    text.sampling.stop_tokens = {*at};
    text.max_new_tokens = i + 2;
    break;
  }
  return maker.done();
}

DirectedCase tree_of_right_guesses(const CaseModel& of) {
  CaseMaker maker(of, 2, 32);
  maker.cache().chunk = 512;  // a step takes whole trees
  maker.speculation() = right_guesses(of, {2, 2});
  maker.add(maker.tokens(4, 1), 8, 0);
  return maker.done();
}

}  // namespace assay
