#include "refimpl/fingerprint/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/bench_url/load_plan.h"
#include "refimpl/bench_url/server_probe.h"
#include "refimpl/fingerprint/distinct_logits.h"
#include "refimpl/fingerprint/soft_cap.h"
#include "refimpl/fingerprint/vocabulary_size.h"

namespace assay {
namespace {

constexpr std::size_t kFirstVectors = 64, kMoreTokens = 8;
constexpr std::size_t kPromptTokens = 4, kSparePrompts = 256;
// Behind a cap the singular values fall where they would end, but not to nothing.
constexpr double kCapFall = 1.3;
constexpr std::size_t kFallMargin = 4;      // such a fall is looked for so far from both ends
constexpr std::size_t kNoToken = 1u << 28;  // no vocabulary has this id
constexpr double kMostCap = 1000;           // the largest published is 50

class FingerprintTaker {
 public:
  explicit FingerprintTaker(const FingerprintWishes& wishes)
      : wishes_(wishes),
        client_(wishes.url, wishes.endpoint),
        model_(served_model(client_, wishes.model)),
        endpoint_(client_, wishes.kind, model_.name) {
    found_.url = wishes.url.origin + wishes.url.base;
    found_.route = route_of(wishes.kind);
    found_.model = model_.name;
  }

  Fingerprint run() {
    examine();
    found_.requests = endpoint_.requests();
    found_.interrupted = interrupted();
    return std::move(found_);
  }

 private:
  void examine() {
    ids_ = wishes_.kind == EndpointKind::completions && endpoint_.learn(std::vector<TokenNumber>{5, 6});
    if (!ids_ && !endpoint_.learn(std::string("The"))) {
      require_served(model_);
      found_.cannot = "the server tells no log-probabilities: " + endpoint_.why();
      return;
    }
    find_vocabulary_size();
    const LogitCollector::Contexts contexts = prompts();
    LogitCollector collector(endpoint_, contexts, found_.vocabulary, wishes_.most + kMoreTokens);
    found_.cannot = collector.choose_way();
    if (!found_.cannot.empty()) return;
    found_.way = collector.way();
    grow(collector);
    if (!interrupted() && found_.logits.contexts > 0) {
      found_.asked_again = collector.asked_again();
      decide();
    }
  }

  bool takes_bias(std::size_t id) {
    const PromptSent prompt = ids_ ? PromptSent(std::vector<TokenNumber>{5, 6}) : PromptSent("The");
    return endpoint_.ask({&prompt, 1}, 1, {{static_cast<TokenNumber>(id), 1}}).refused.empty();
  }

  // By biases, where one that is beyond any vocabulary is refused; else by prompts of one token. SGLang refuses such biases, but
  // of a prompt with such an id it dies (an index error in the embedding, or an assertion on the device).
  void find_vocabulary_size() {
    const bool biases_are_checked = !takes_bias(kNoToken) && takes_bias(5);
    if (!biases_are_checked && !ids_) return;
    found_.vocabulary = find_vocabulary([&](std::size_t id) {
      if (biases_are_checked) return takes_bias(id);
      const PromptSent prompt = std::vector<TokenNumber>{static_cast<TokenNumber>(id)};
      return endpoint_.ask({&prompt, 1}, 1).refused.empty();
    });
  }

  LogitCollector::Contexts prompts() {
    ProbeWishes probe;
    probe.kind = wishes_.kind;
    probe.model = model_.name;
    probe.form = ids_ ? PromptForm::automatic : PromptForm::text;
    if (ids_ && found_.vocabulary) probe.ids = {0, static_cast<TokenNumber>(*found_.vocabulary - 1)};
    PromptPool pool;
    if (probe.ids) {
      for (TokenNumber id = probe.ids->first; id <= probe.ids->second; ++id) pool.ids.push_back(id);
    } else {
      pool = probe_prompts(client_, probe).pool;
    }
    found_.prompts = pool.ids.empty()
                         ? fmt::format("texts of {} words", kPromptTokens)
                         : fmt::format("{} token ids, out of {}", kPromptTokens, pool.ids.size());
    LoadPlan plan = closed_plan({2 * wishes_.most + kSparePrompts, pool.overhead + kPromptTokens, 1});
    return [pool = std::move(pool), plan = std::move(plan), seed = wishes_.seed](std::size_t index) {
      return make_prompt(pool, plan, index % plan.requests.size(), seed);
    };
  }

  void grow(LogitCollector& collector) {
    for (std::size_t n = std::min(kFirstVectors, wishes_.most); !interrupted();
         n = std::min(2 * n, wishes_.most)) {
      {
        Progress progress(wishes_.progress, "fingerprint",
                          n * std::min(n + kMoreTokens, collector.tokens_there_are()), ProgressUnit::ones);
        progress.item(fmt::format("{} vectors", n));
        collector.extend(n, n + kMoreTokens, [&](std::size_t entries) { progress.add(entries); });
      }
      if (interrupted() || find_ranks(distinct_logits(collector.table())) || n >= wishes_.most) return;
      if (n > found_.logits.tokens) return;  // more vectors of so few tokens tell nothing more
    }
  }

  bool find_ranks(const DenseMatrix& table) {
    if (table.columns() < 2 * kFallMargin) {
      found_.cannot = fmt::format("only {} tokens were told of in every context, each once", table.columns());
      return false;
    }
    found_.logits = spectrum_of(table, Means::of_rows, wishes_.jobs);
    found_.rank = find_rank(found_.logits);
    if (found_.rank.rank) {
      found_.differences = spectrum_of(table, Means::of_both, wishes_.jobs);
      found_.rank_of_differences = find_rank(found_.differences);
      return true;
    }
    return find_behind_cap(table);
  }

  bool find_behind_cap(const DenseMatrix& table) {
    const std::vector<double>& values = found_.logits.values;
    std::size_t fall = 0;
    double most = kCapFall;
    for (std::size_t r = kFallMargin; r + kFallMargin < values.size(); ++r)
      if (values[r - 1] > most * values[r]) {
        most = values[r - 1] / values[r];
        fall = r;
      }
    if (fall == 0) return false;
    const std::optional<Uncapped> uncapped = remove_soft_cap(table, fall, wishes_.jobs);
    if (!uncapped || uncapped->cap > kMostCap) return false;
    const Spectrum logits = spectrum_of(uncapped->logits, Means::kept, wishes_.jobs);
    const RankFound rank = find_rank(logits);
    if (!rank.rank) return false;
    found_.soft_cap = uncapped->cap;
    found_.logits = logits;
    found_.rank = rank;
    found_.differences = spectrum_of(uncapped->logits, Means::of_columns, wishes_.jobs);
    found_.rank_of_differences = find_rank(found_.differences);
    return true;
  }

  void decide() {
    if (!found_.cannot.empty()) return;
    if (found_.rank.rank && found_.rank_of_differences.rank) {
      found_.hidden = hidden_size_of(*found_.rank.rank, *found_.rank_of_differences.rank);
      return;
    }
    found_.cannot = found_.rank.rank ? found_.rank_of_differences.why : found_.rank.why;
    if (found_.asked_again > 0)
      found_.cannot +=
          fmt::format("; asked again the server says other values, up to {:.2g} apart", found_.asked_again);
    if (found_.vocabulary && found_.logits.tokens + 1 >= *found_.vocabulary) {
      found_.at_least = found_.logits.tokens;
      found_.cannot += fmt::format("; of a vocabulary of {} no hidden size from {} on can be told",
                                   *found_.vocabulary, found_.logits.tokens);
    } else if (found_.logits.contexts >= wishes_.most) {
      found_.cannot += fmt::format("; --most {}: a hidden size from there on needs more", wishes_.most);
    }
  }

  const FingerprintWishes& wishes_;
  EndpointClient client_;
  ServedModel model_;
  LogitEndpoint endpoint_;
  Fingerprint found_;
  bool ids_ = false;
};

}  // namespace

Fingerprint take_fingerprint(const FingerprintWishes& wishes) {
  return FingerprintTaker(wishes).run();
}

std::vector<PublishedSize> published_like(const Fingerprint& found) {
  std::vector<PublishedSize> like;
  if (!found.hidden) return like;
  for (const PublishedSize& size : published_sizes())
    if (size.hidden_size == found.hidden->size) like.push_back(size);
  std::stable_partition(like.begin(), like.end(),
                        [&](const PublishedSize& size) { return found.vocabulary == size.vocabulary; });
  return like;
}

}  // namespace assay
