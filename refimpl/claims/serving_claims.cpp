#include "refimpl/claims/serving_claims.h"

#include <algorithm>
#include <limits>

#include "refimpl/claims/law_oracle.h"
#include "refimpl/claims/schedule.h"
#include "refimpl/claims/speculation_faults.h"
#include "refimpl/step/cache_contents.h"

namespace assay {
namespace {

constexpr std::size_t kNew = 4, kBlock = 3;

// The text, the same again, its first three quarters with another end, and its first half.
std::vector<ServingRequest> requests_of(std::span<const TokenId> tokens, const LanguageModel& model) {
  const std::size_t n = std::min(tokens.size(), model.context() - std::min(model.context() - 1, kNew));
  const auto request = [&](std::size_t length) {
    ServingRequest made;
    made.text.prompt.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length));
    made.text.max_new_tokens = kNew;
    return made;
  };
  std::vector<ServingRequest> requests = {request(n), request(n), request(n - n / 4), request(n - n / 2)};
  requests[2].text.prompt.push_back(tokens.front());
  return requests;
}

std::size_t blocks_for(const ServingWorkload& workload, std::size_t times) {
  std::size_t longest = 0;
  for (const AloneRequest& alone : workload.requests())
    longest = std::max(longest, alone.request.text.prompt.size() + kNew);
  return times * ((longest + kBlock - 1) / kBlock) + 1;
}

// All requests, `apart` steps between them.
Schedule plain_schedule(const ServingWorkload& workload, std::size_t apart) {
  Schedule schedule;
  schedule.options.poison = true;
  SchedulerOptions& cache = schedule.options.cache;
  cache.block_tokens = kBlock;
  cache.blocks = blocks_for(workload, workload.requests().size());
  cache.prefix_cache = false;
  for (std::size_t i = 0; i < workload.requests().size(); ++i) {
    schedule.requests.push_back(i);
    schedule.arrival.push_back(i * apart);
    schedule.salts.emplace_back();
  }
  return schedule;
}

double laws_that_differ() {
  constexpr double kOfProbability = 1e-12;
  double differing = 0;
  for (const LawCase& test : law_cases(std::make_shared<RejectionSampling>()))
    differing += compare_laws(test).error <= kOfProbability ? 0 : 1;
  return differing;
}

// Not of the user's model, whose texts are too many to count: of one process the same for all models and kernels.
Claim law_claim() {
  static const double differing = laws_that_differ();
  return {"rejection_law",
          "drafts kept or rejected, every way counted on a model of a few tokens: the target's law",
          "laws off by more than 1e-12",
          differing,
          0,
          true};
}

// Each technique by itself, on requests that were made of one text.
class ServingClaims {
 public:
  ServingClaims(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens, bool exact)
      : model_(model),
        ops_(ops),
        exact_(exact),
        requests_(requests_of(tokens, model)),
        workload_(model, ops, requests_),
        long_ago_(requests_.front().text.prompt.size() + kNew) {}

  std::vector<Claim> run() {
    claim_caches();
    claim_disk();
    claim_schedules();
    claim_guesses();
    claims_.push_back(law_claim());
    std::vector<ServingRequest> forked = {requests_.back()};
    forked.front().samples = 3;
    forked.front().text.sampling.temperature = 1;
    const ServingWorkload samples(model_, ops_, forked);
    add("forked_samples", "samples that share their prompt's blocks ≡ each alone", samples,
        plain_schedule(samples, 0), &ServingCounts::steps);
    return std::move(claims_);
  }

 private:
  // Of what did not happen there is nothing to claim.
  void add(const char* name, const char* statement, const ServingWorkload& workload, const Schedule& schedule,
           std::size_t ServingCounts::*happened) {
    const ScheduleResult result = run_schedule(workload, schedule);
    if (result.wrong.empty() && result.counts.*happened == 0) return;
    const bool broken = !result.wrong.empty() && result.error == 0;
    const double error = broken ? std::numeric_limits<double>::infinity() : result.error;
    claims_.push_back({name, statement, "logits, relative to the largest of their row", error, 0, exact_});
  }

  // One after the other; recurrent states are kept where a chunk ends.
  Schedule with_prefixes(const ServingWorkload& workload) const {
    Schedule schedule = plain_schedule(workload, long_ago_);
    schedule.options.cache.prefix_cache = true;
    schedule.options.cache.chunk = 2 * kBlock;
    return schedule;
  }

  void claim_caches() {
    add("cache_in_blocks", "a cache in scattered blocks ≡ on end", workload_,
        plain_schedule(workload_, long_ago_), &ServingCounts::steps);
    add("prefix_cache", "a prompt that begins as another did reads its blocks ≡ computed", workload_,
        with_prefixes(workload_), &ServingCounts::hit_tokens);
  }

  void claim_disk() {
    Schedule schedule = with_prefixes(workload_);
    schedule.disk_bytes = std::uint64_t{1} << 30;
    schedule.before = LeftBefore::same_weights;
    add("cache_on_disk", "blocks that another run left on disk ≡ computed", workload_, schedule,
        &ServingCounts::loaded_blocks);
    std::vector<ServingRequest> turned = {requests_[0], requests_[0], requests_[0]};
    std::reverse(turned[1].text.prompt.begin(), turned[1].text.prompt.end());
    const ServingWorkload crowding(model_, ops_, turned);
    schedule = with_prefixes(crowding);
    schedule.options.cache.blocks = blocks_for(crowding, 1);
    schedule.disk_bytes = std::uint64_t{1} << 30;
    add("evicted_to_disk", "blocks evicted to disk and read again ≡ computed", crowding, schedule,
        &ServingCounts::loaded_blocks);
  }

  void claim_schedules() {
    Schedule schedule = plain_schedule(workload_, 1);
    schedule.options.cache.chunk = kBlock + 1;
    schedule.options.cache.tokens_a_step = 7;
    add("continuous_batch", "requests that come and go, prompts in chunks beside them ≡ each alone",
        workload_, schedule, &ServingCounts::steps);
    schedule = plain_schedule(workload_, 0);
    schedule.options.cache.blocks = blocks_for(workload_, 1) + 1;
    schedule.options.cache.chunk = kBlock + 1;
    add("preempted_recomputed", "a text that gave up its cache and computed it again ≡ undisturbed",
        workload_, schedule, &ServingCounts::preemptions);
    schedule.options.cache.preemption = Preemption::swap;
    add("preempted_swapped", "a text whose cache was swapped out and in ≡ undisturbed", workload_, schedule,
        &ServingCounts::preemptions);
  }

  void claim_guesses() {
    const auto& sources = workload_.sources();
    Schedule schedule = plain_schedule(workload_, 0);
    schedule.options.speculation = {.source = sources[0], .shape = {1, 1, 1, 1}};
    add("prompt_lookup", "tokens guessed from the text itself and checked ≡ one by one", workload_, schedule,
        &ServingCounts::guessed);
    schedule.options.speculation.source = sources[1];
    add("draft_model", "tokens guessed by another model and checked ≡ one by one", workload_, schedule,
        &ServingCounts::guessed);
    if (!keeps_states(model_.cache_widths())) {
      schedule.options.speculation.shape = {3, 2, 1};
      add("draft_tree", "a tree of guesses checked in one step ≡ one by one", workload_, schedule,
          &ServingCounts::guessed);
    }
    if (sources.size() < 3) return;
    schedule.options.speculation = {.source = sources[2], .shape = {1, 1, 1}};
    add("draft_layers", "tokens guessed by the model's own prediction layers and checked ≡ one by one",
        workload_, schedule, &ServingCounts::guessed);
    const SharedDrafts shared = shared_draft_difference(workload_, LayerDrafts::Keeping::without_successors);
    if (shared.hit_tokens > 0)
      claims_.push_back({"shared_drafts", "prediction layers behind blocks of others ≡ on the whole text",
                         "draft logits, relative to the largest of their row", shared.difference, 0, exact_});
  }

  const LanguageModel& model_;
  Ops& ops_;
  bool exact_;
  std::vector<ServingRequest> requests_;
  ServingWorkload workload_;
  std::size_t long_ago_;
  std::vector<Claim> claims_;
};

}  // namespace

std::vector<Claim> serving_claims(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens,
                                  bool exact) {
  return ServingClaims(model, ops, tokens, exact).run();
}

}  // namespace assay
