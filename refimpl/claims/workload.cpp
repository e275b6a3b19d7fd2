#include "refimpl/claims/workload.h"

#include <algorithm>
#include <random>
#include <utility>

#include "refimpl/speculation/layer_drafter.h"
#include "refimpl/speculation/lookup_drafter.h"
#include "refimpl/speculation/model_drafter.h"

namespace assay {
namespace {

constexpr std::size_t kRequests = 14, kMostTokens = 12;
// Ids of the smallest vocabularies, so that texts of models of any size are alike.
constexpr std::size_t kIds = 90;

// A stop string, as it were: two tokens with this remainder in a row.
std::function<TextWatch()> watch_for(TokenId remainder) {
  return [remainder] {
    return [remainder, before = false](TokenId id) mutable {
      const bool now = id % 8 == remainder;
      return std::exchange(before, now) && now;
    };
  };
}

class Maker {
 public:
  Maker(const LanguageModel& model, std::uint64_t seed, std::size_t longest)
      : random_(seed),
        ids_(std::min(model.vocabulary(), kIds)),
        common_(std::max<std::size_t>(1, std::min(model.context(), longest))) {
    for (TokenId& id : common_) id = static_cast<TokenId>(below(ids_));
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  ServingRequest make(std::size_t i) {
    ServingRequest request;
    const std::size_t length = 1 + below(common_.size()), shared = below(length + 1);
    request.text.prompt.assign(common_.begin(), common_.begin() + static_cast<std::ptrdiff_t>(shared));
    while (request.text.prompt.size() < length)
      request.text.prompt.push_back(static_cast<TokenId>(below(ids_)));
    request.text.max_new_tokens = 1 + below(kMostTokens);
    request.text.sampling.seed = i;
    if (i % 2 == 1) {
      request.text.sampling.temperature = 1.5;
      request.text.sampling.repetition_penalty = 1.2;
    }
    if (i % 4 == 1) {
      request.text.sampling.top_k = 5;
      request.text.sampling.frequency_penalty = 0.3;
    }
    if (i % 6 == 2) request.text.sampling.stop_tokens = {static_cast<TokenId>(below(ids_)), 1, 5, 9};
    if (i % 6 == 0 || i == 3) request.text.watch_text = watch_for(static_cast<TokenId>(below(8)));
    if (i % 4 == 3) request.text.sampling.logit_bias = {{0, 6}};
    if (i % 5 == 3) request.samples = 1 + below(4);
    if (i % 7 == 2) request.prompt_logits = true;
    request.priority = static_cast<int>(below(3));
    return request;
  }

  ServingRequest whole() const {
    ServingRequest request;
    request.text.prompt = common_;
    request.text.max_new_tokens = kMostTokens;
    return request;
  }

 private:
  std::mt19937_64 random_;
  std::size_t ids_;
  std::vector<TokenId> common_;
};

// Sums of t · 31^k are the same.
ServingRequest colliding(ServingRequest request, std::size_t vocabulary) {
  std::vector<TokenId>& prompt = request.text.prompt;
  for (std::size_t i = 0; i + 1 < prompt.size(); ++i) {
    if (prompt[i] == 0 || prompt[i + 1] + 31 >= vocabulary) continue;
    prompt[i] -= 1;
    prompt[i + 1] += 31;
    break;
  }
  return request;
}

}  // namespace

ServingWorkload::ServingWorkload(const LanguageModel& model, Ops& ops, std::uint64_t seed,
                                 std::size_t longest)
    : model_(model), ops_(ops), draft_(model) {
  add_sources();
  Maker maker(model, seed, longest);
  for (std::size_t i = 0; i < kRequests; ++i) add(maker.make(i));
  add(maker.whole());
  add(colliding(maker.whole(), model.vocabulary()));
}

ServingWorkload::ServingWorkload(const LanguageModel& model, Ops& ops,
                                 const std::vector<ServingRequest>& requests)
    : model_(model), ops_(ops), draft_(model) {
  add_sources();
  for (const ServingRequest& request : requests) add(request);
}

void ServingWorkload::add_sources() {
  sources_ = {std::make_shared<LookupDrafts>(), std::make_shared<ModelDrafts>(draft_, ops_)};
  if (model_.draft_layers() > 0) sources_.push_back(std::make_shared<LayerDrafts>(model_, ops_));
}

void ServingWorkload::add(const ServingRequest& request) {
  AloneRequest alone{request, {}, {}, {}};
  TextEngine engine(model_, ops_);
  for (std::size_t sample = 0; sample < request.samples; ++sample) {
    GenerationRequest text = request.text;
    text.sampling.sample += static_cast<std::uint32_t>(sample);
    LogitRows rows;
    const auto keep = [&](std::size_t, TokenId, std::span<const double> row) {
      rows.emplace_back(row.begin(), row.end());
    };
    alone.made.push_back(engine.generate({text}, keep).front());
    alone.chosen_from.push_back(std::move(rows));
  }
  if (request.prompt_logits)
    engine.score(request.text.prompt, [&](std::size_t position, std::span<const double> row) {
      alone.prompt.resize(position);  // where rotary frequencies follow the length, a text is read anew
      alone.prompt.emplace_back(row.begin(), row.end());
    });
  requests_.push_back(std::move(alone));
}

}  // namespace assay
