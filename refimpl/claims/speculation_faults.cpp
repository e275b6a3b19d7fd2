#include "refimpl/claims/speculation_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "core/numeric/largest.h"
#include "core/system/error.h"
#include "refimpl/claims/faults.h"
#include "refimpl/claims/law_oracle.h"
#include "refimpl/sampling/law.h"
#include "refimpl/sampling/rejection.h"
#include "refimpl/speculation/layer_drafter.h"

namespace assay {
namespace {

constexpr double kLawBudget = 1e-12;

class RawDraftLaw : public RejectionSampling {
 public:
  std::vector<Guess> pick(std::span<const double> logits, std::size_t count,
                          const Place& place) const override {
    std::vector<Guess> guesses = RejectionSampling::pick(logits, count, place);
    for (Guess& guess : guesses) guess.law = sampling_law(logits, {.temperature = 1});
    return guesses;
  }
};

double in_bf16(double x) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U);
}

class DrawnInBf16 : public RejectionSampling {
 public:
  std::vector<Guess> pick(std::span<const double> logits, std::size_t, const Place& place) const override {
    const std::vector<double> law = place.sampler.process(logits);
    std::vector<double> rounded = law;
    double sum = 0;
    for (double& x : rounded) sum += x = in_bf16(x);
    for (double& x : rounded) x /= sum;
    const TokenId token = place.draws.token(rounded, place.sampler.position(), DrawPurpose::draft);
    return {{.token = token, .law = law}};
  }
};

// What is left is computed where the target's law stands, before the guess is held against that.
class ZeroesInPlace : public RejectionSampling {
 public:
  Chosen choose(std::span<const double> logits, std::span<const Guess* const> children,
                const Place& place) const override {
    if (children.empty()) return RejectionSampling::choose(logits, children, place);
    std::vector<double> p = place.sampler.process(logits), q = children.front()->law;
    if (q.empty()) (q = std::vector<double>(p.size())).at(children.front()->token) = 1;
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::max(p[i] - q[i], 0.0);
    const std::uint64_t position = place.sampler.position();
    if (place.draws.keeps(acceptance(p, q, children.front()->token), position, 0))
      return {children.front()->token, 0};
    double sum = 0;
    for (const double x : p) sum += x;
    for (double& x : p) x = sum > 0 ? x / sum : 1 / static_cast<double>(p.size());
    return {place.draws.token(p, position, DrawPurpose::residual), {}};
  }
};

class LikeliestDraft : public RejectionSampling {
 public:
  std::vector<Guess> pick(std::span<const double> logits, std::size_t, const Place& place) const override {
    const std::vector<double> law = place.sampler.process(logits);
    const auto best = std::max_element(law.begin(), law.end()) - law.begin();
    return {{.token = static_cast<TokenId>(best), .law = law}};
  }
};

class MinPOnBonus : public RejectionSampling {
  std::vector<double> law(std::span<const double> logits, bool has_guesses,
                          const Place& place) const override {
    SamplingParams params = place.sampler.params();
    if (has_guesses) params.min_p = 0;
    return sampling_law(place.sampler.adjust(logits), params);
  }
};

// Penalties of the second and later tokens of a step.
class PenaltiesOf : public RejectionSampling {
 public:
  explicit PenaltiesOf(bool twice) : twice_(twice) {}

 private:
  std::vector<double> law(std::span<const double> logits, bool, const Place& place) const override {
    if (place.kept == 0) return place.sampler.process(logits);
    SequenceSampler counting = place.sampler;
    const TokenId last = counting.outputs().back();
    if (!twice_) counting.pop(place.kept);
    counting.push(last);
    return counting.process(logits);
  }
  bool twice_;
};

class LateRejection : public SampleAndMatch {
 public:
  Chosen choose(std::span<const double> logits, std::span<const Guess* const> children,
                const Place& place) const override {
    Chosen chosen = SampleAndMatch::choose(logits, children, place);
    if (!children.empty() && !chosen.guess) chosen.guess = 0;
    return chosen;
  }
};

class ComparedWithZero : public SampleAndMatch {
 public:
  Chosen choose(std::span<const double> logits, std::span<const Guess* const> children,
                const Place& place) const override {
    Chosen chosen = SampleAndMatch::choose(logits, children, place);
    if (!children.empty()) chosen.guess = chosen.token == 0 ? std::optional<std::size_t>(0) : std::nullopt;
    return chosen;
  }
};

// What a prediction layer is given at position 0 is zero.
class ZeroAtFirst : public NoisyModel {
 public:
  explicit ZeroAtFirst(const LanguageModel& model) : NoisyModel(model), model_(model) {}
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    return model_.logits(hidden, ops, taps);
  }
  std::size_t draft_layers() const override { return model_.draft_layers(); }
  Matrix draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
               const Taps& taps) const override {
    if (module > 0 || batch.positions.front() != 0) return model_.draft(module, batch, hidden, ops, taps);
    const Matrix changed = ops.multiply(hidden, 1);
    ops.store({.base = changed}, 0, ops.multiply(hidden.row_range(0, 1), 0));
    return model_.draft(module, batch, changed, ops, taps);
  }
  Matrix draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const override {
    return model_.draft_logits(module, draft, ops, taps);
  }

 private:
  const LanguageModel& model_;
};

// Remembers what a draft said behind a text, by the text's length.
class Overhears : public SampleAndMatch {
 public:
  std::vector<Guess> pick(std::span<const double> logits, std::size_t count,
                          const Place& place) const override {
    said_[place.sampler.position()] = {logits.begin(), logits.end()};
    return SampleAndMatch::pick(logits, count, place);
  }
  const std::map<std::uint64_t, std::vector<double>>& said() const { return said_; }
  void forget() { said_.clear(); }

 private:
  mutable std::map<std::uint64_t, std::vector<double>> said_;
};

// Of every row of the text but the last, whose next token is not there.
std::vector<double> drafts_at_once(const LanguageModel& model, Ops& ops, std::span<const TokenId> text) {
  SequenceCache cache(ops, model.cache_widths(), model.context()), draft_cache = cache;
  Batch batch, next;
  batch.add(text.first(text.size() - 1), cache);
  next.add(text.subspan(1), draft_cache);
  const Matrix hidden = model.hidden(batch, ops, {});
  return ops.download(model.draft_logits(0, model.draft(0, next, hidden, ops, {}), ops, {}));
}

// Of what was said, against the text's at once.
double difference_of(const Overhears& overheard, const LanguageModel& model, Ops& ops,
                     std::vector<TokenId> text, const std::vector<TokenId>& made) {
  text.insert(text.end(), made.begin(), made.end());
  if (overheard.said().empty()) return 0;
  const std::vector<double> truth = drafts_at_once(model, ops, text);
  double worst = 0;
  for (const auto& [length, said] : overheard.said()) {
    double difference = 0, scale = 0;
    for (std::size_t j = 0; j < said.size(); ++j) {
      const double x = truth.at((length - 2) * said.size() + j);
      scale = std::max(scale, std::abs(x));
      difference = larger_or_nan(difference, std::abs(said[j] - x));
    }
    worst = larger_or_nan(worst, difference == 0 ? 0 : difference / scale);
  }
  return worst;
}

ServingParts prompt_rows_by(std::function<std::size_t(const RowPlace&)> row) {
  ServingParts parts;
  parts.prompt_row = std::move(row);
  return parts;
}
ServingParts ended_by(std::function<std::optional<FinishReason>(const TextEnd&)> end) {
  ServingParts parts;
  parts.end = std::move(end);
  return parts;
}
std::optional<FinishReason> ends(const TextEnd& text, bool stops) {
  return reason_to_end(stops, text.made, text.most, text.tokens, text.limit);
}

ServingParts sees_all_before() {
  ServingParts parts;
  parts.seen_by = [](const GuessTree&, std::size_t guess) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i <= guess; ++i) all.push_back(i);
    return all;
  };
  return parts;
}

ServingFault fault_of_law(int number, std::string shipped_in, std::string what,
                          std::shared_ptr<const AcceptanceRule> rule) {
  ServingFault fault = {number, std::move(shipped_in), std::move(what), {}};
  fault.guessing = {.oracle = GuessingFault::Oracle::law, .rule = std::move(rule)};
  return fault;
}

ServingFault fault_of_drafts(int number, std::string shipped_in, std::string what,
                             GuessingFault::Oracle oracle) {
  ServingFault fault = {number, std::move(shipped_in), std::move(what), {}};
  fault.shows_in = ShowsIn::prediction_layers;
  fault.guessing.oracle = oracle;
  return fault;
}

FaultVerdict catch_by_law(const ServingFault& fault) {
  for (LawCase& test : law_cases(fault.guessing.rule)) {
    test.parts = fault.parts;
    try {
      const LawResult result = compare_laws(test);
      if (result.error <= kLawBudget) continue;
      return {true, fmt::format("{}: the probability of {} is off by {:.2g}", test.name,
                                fmt::join(result.text, " "), result.error)};
    } catch (const Error& error) {
      return {true, error.line()};
    }
  }
  return {};
}

FaultVerdict verdict_of(const char* what, double sound, double faulty) {
  if (sound != 0) throw Error::internal(fmt::format("{} differ by {:.2g} without a fault", what, sound));
  return {faulty != 0, fmt::format("{} differ by {:.2g}", what, faulty)};
}

}  // namespace

std::vector<ServingFault> speculation_faults() {
  using Oracle = GuessingFault::Oracle;
  const auto by_text = [](int number, std::string shipped_in, std::string what, MakeCase made_visible,
                          ServingParts parts, std::shared_ptr<const AcceptanceRule> rule = {}) {
    ServingFault fault = {number, std::move(shipped_in), std::move(what), std::move(parts), made_visible};
    fault.guessing.rule = std::move(rule);
    return fault;
  };
  ServingFault tree = by_text(39, "FastDeploy#3514", "guesses of a tree see all guesses before them",
                              tree_of_right_guesses, sees_all_before());
  tree.shows_in = ShowsIn::trees;
  return {
      fault_of_drafts(15, "vllm#50438",
                      "a prediction layer's last row of a block, kept with the token that came then",
                      Oracle::shared_draft_logits),
      by_text(26, "FastDeploy#8087", "a prompt's logits lie a row off in its later chunks",
              prompt_logits_in_chunks, prompt_rows_by([](const RowPlace& place) {
                const std::size_t row = place.position - place.begin;
                return place.first + (place.begin > 0 && row > 0 ? row - 1 : row);
              })),
      by_text(27, "vllm#29216", "a prompt's logits beside others' guesses, which are not counted",
              prompt_logits_beside_guesses, prompt_rows_by([](const RowPlace& place) {
                return place.first - place.guesses_before + place.position - place.begin;
              })),
      fault_of_law(28, "transformers#47932", "drafts drawn from a processed law, held against the raw one",
                   std::make_shared<RawDraftLaw>()),
      fault_of_law(29, "DeepSpec#31", "drafts drawn in bf16, the ratio in more",
                   std::make_shared<DrawnInBf16>()),
      fault_of_law(30, "vllm-ascend#2881", "what is left is computed in the target's own law",
                   std::make_shared<ZeroesInPlace>()),
      fault_of_law(31, "jaymody/speculative-sampling#3", "the likeliest draft, as if drawn",
                   std::make_shared<LikeliestDraft>()),
      by_text(32, "openvino.genai#4190", "a wrong guess is noticed one step late", wrong_guesses, {},
              std::make_shared<LateRejection>()),
      fault_of_law(33, "vllm#29274", "the last guess is compared with token 0",
                   std::make_shared<ComparedWithZero>()),
      fault_of_law(34, "vllm#42802", "min-p for the bonus token alone", std::make_shared<MinPOnBonus>()),
      fault_of_law(35, "sglang#33643", "penalties count the last of a step's tokens alone",
                   std::make_shared<PenaltiesOf>(false)),
      fault_of_law(35, "vllm#33251", "penalties count a step's last token twice",
                   std::make_shared<PenaltiesOf>(true)),
      by_text(36, "sglang#31599", "the cap on length beats a stop before it in the same step",
              stop_amid_a_step, ended_by([](const TextEnd& text) {
                return ends(text, text.stops && text.made + text.rows_left < text.most);
              })),
      by_text(37, "sglang#23802", "a stop before a step's last token is missed", stop_amid_a_step,
              ended_by([](const TextEnd& text) { return ends(text, text.stops && text.rows_left == 0); })),
      fault_of_drafts(38, "vllm#33299", "what a prediction layer is given at position 0 is zero",
                      Oracle::draft_logits),
      tree,
  };
}

FaultVerdict catch_guessing(const ServingWorkload& workload, const ServingFault& fault) {
  using Oracle = GuessingFault::Oracle;
  const LanguageModel& model = workload.model();
  switch (fault.guessing.oracle) {
    case Oracle::draft_logits:
      return verdict_of("draft logits", draft_difference(workload, model),
                        draft_difference(workload, ZeroAtFirst(model)));
    case Oracle::shared_draft_logits: {
      const auto kept = [&](LayerDrafts::Keeping keeping) {
        return shared_draft_difference(workload, keeping).difference;
      };
      return verdict_of("draft logits behind shared blocks", kept(LayerDrafts::Keeping::without_successors),
                        kept(LayerDrafts::Keeping::with_successors));
    }
    case Oracle::law: return catch_by_law(fault);
    case Oracle::alone: break;
  }
  throw Error::internal("a fault that needs a directed workload");
}

double draft_difference(const ServingWorkload& workload, const LanguageModel& drafting) {
  const LanguageModel& model = workload.model();
  double worst = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, workload.requests().size()); ++i) {
    ServingRequest request = workload.requests()[i].request;
    request.samples = 1;
    const auto overheard = std::make_shared<Overhears>();
    ServingEngine engine(model, workload.ops(),
                         {.cache = {.blocks = 64, .block_tokens = 16},
                          .speculation = {.source = std::make_shared<LayerDrafts>(drafting, workload.ops()),
                                          .shape = {1},
                                          .rule = overheard}});
    const std::size_t number = engine.submit(request);
    while (engine.step()) {
    }
    worst = larger_or_nan(worst, difference_of(*overheard, model, workload.ops(), request.text.prompt,
                                               engine.result(number).ids));
  }
  return worst;
}

SharedDrafts shared_draft_difference(const ServingWorkload& workload, LayerDrafts::Keeping keeping) {
  const LanguageModel& model = workload.model();
  std::vector<TokenId> longest;
  for (const AloneRequest& alone : workload.requests()) {
    if (alone.request.text.prompt.size() > longest.size()) longest = alone.request.text.prompt;
  }
  constexpr std::size_t kBlock = 3, kNew = 6;
  const std::size_t shared = std::min<std::size_t>(4 * kBlock, longest.size() / kBlock * kBlock);
  const auto overheard = std::make_shared<Overhears>();
  ServingEngine engine(
      model, workload.ops(),
      {.cache = {.blocks = 64, .block_tokens = kBlock, .chunk = 2 * kBlock},
       .speculation = {.source = std::make_shared<LayerDrafts>(model, workload.ops(), keeping),
                       .shape = {1},
                       .rule = overheard}});
  SharedDrafts found;
  for (TokenId other = 0; other < 4; ++other) {
    ServingRequest request;
    request.text.prompt.assign(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(shared));
    for (const TokenId id : {other, other + 7, other + 2})
      request.text.prompt.push_back(static_cast<TokenId>(id % model.vocabulary()));
    request.text.max_new_tokens = kNew;
    overheard->forget();
    const std::size_t number = engine.submit(request);
    while (engine.step()) {
    }
    found.difference = larger_or_nan(
        found.difference,
        difference_of(*overheard, model, workload.ops(), request.text.prompt, engine.result(number).ids));
  }
  found.hit_tokens = engine.counts().hit_tokens;
  return found;
}

}  // namespace assay
