#include "refimpl/claims/cache_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/caches/grouped_model.h"
#include "refimpl/ops/kernel_set.h"

namespace assay {
namespace {

// One method around another: what a fault changes is overridden.
class FaultyMethod : public CacheMethod {
 public:
  explicit FaultyMethod(const std::string& text) : right_(cache_method(text)) {}
  std::string name() const override { return right_->name(); }
  std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t prompt) const override {
    return right_->layer(layer, prompt);
  }
  std::size_t place(std::size_t tokens, std::size_t rows) const override {
    return right_->place(tokens, rows);
  }
  bool renumbers() const override { return right_->renumbers(); }

 private:
  std::shared_ptr<const CacheMethod> right_;
};

// The next token stands where the rows end, not where the text does.
class PlacesAreRows : public FaultyMethod {
 public:
  using FaultyMethod::FaultyMethod;
  std::size_t place(std::size_t, std::size_t rows) const override { return rows; }
};

// The other way round: rows that are renumbered, and a next token that is not.
class PlacesAreTokens : public FaultyMethod {
 public:
  using FaultyMethod::FaultyMethod;
  std::size_t place(std::size_t tokens, std::size_t) const override { return tokens; }
};

class ALayerOff : public FaultyMethod {
 public:
  using FaultyMethod::FaultyMethod;
  std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t prompt) const override {
    return FaultyMethod::layer({layer.width, layer.index + 1, layer.layers + 1}, prompt);
  }
};

// A policy around another.
class FaultyPolicy : public LayerPolicy {
 public:
  explicit FaultyPolicy(std::unique_ptr<LayerPolicy> right) : right_(std::move(right)) {}
  std::size_t rows() const override { return right_->rows(); }
  void write(Matrix& keys, Matrix& values, Ops& ops) override { right_->write(keys, values, ops); }
  std::size_t watched_from(std::size_t count) const override { return right_->watched_from(count); }
  void seen(AttentionMass mass) override { right_->seen(std::move(mass)); }
  void settle(const CacheRows& rows, std::size_t count) override { right_->settle(rows, count); }
  double bytes() const override { return right_->bytes(); }
  std::vector<std::vector<std::size_t>> kept() const override { return right_->kept(); }

 private:
  std::unique_ptr<LayerPolicy> right_;
};

template <class Policy>
class WithPolicy : public FaultyMethod {
 public:
  using FaultyMethod::FaultyMethod;
  std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t prompt) const override {
    return std::make_unique<Policy>(FaultyMethod::layer(layer, prompt));
  }
};

// The newest rows, which nobody has quantized yet, are those of nothing.
class ResidualLost : public FaultyPolicy {
 public:
  using FaultyPolicy::FaultyPolicy;
  void settle(const CacheRows& rows, std::size_t count) override {
    FaultyPolicy::settle(rows, count);
    const std::size_t last = FaultyPolicy::rows() - 1;
    rows.ops.store({.base = rows.values.base}, last, rows.ops.allocate(1, rows.values.base.columns()));
  }
};

// Scores of the step in place of the sum of all.
class ScoresOfTheLastStep : public FaultyPolicy {
 public:
  using FaultyPolicy::FaultyPolicy;
  void seen(AttentionMass mass) override {
    AttentionMass more = mass;
    for (std::size_t head = 0; head < mass.size(); ++head) {
      last_.resize(mass.size());
      for (std::size_t row = 0; row < last_[head].size() && row < mass[head].size(); ++row)
        more[head][row] -= last_[head][row];
      last_[head] = mass[head];
    }
    FaultyPolicy::seen(std::move(more));
  }

 private:
  AttentionMass last_;
};

// The mask is taken for aligned at the end of keys that were thrown away before.
class EveryQuerySeesAll : public ReferenceOps {
 public:
  using ReferenceOps::ReferenceOps;
  using ReferenceOps::run;
  Matrix run(const AttentionCall& call) override {
    AttentionCall faulty = call;
    faulty.sequences.clear();
    for (const SequenceMetadata& span : call.sequences) {
      for (std::size_t i = 0; i < span.queries; ++i) {
        SequenceMetadata one = span;
        one.first += i;
        one.queries = 1;
        if (span.queries == span.keys) one.keys = i + 1;  // nothing lies before it: the shortcut holds
        faulty.sequences.push_back(one);
      }
    }
    return ReferenceOps::run(faulty);
  }
};

std::unique_ptr<Ops> every_query_sees_all(const Arithmetic& arithmetic, int jobs) {
  return std::make_unique<EveryQuerySeesAll>(arithmetic, jobs);
}

constexpr const char* kHeavy = "h2o:budget=16,recent=8";
constexpr const char* kSnap = "snapkv:budget=16,window=6,kernel=5";
constexpr const char* kStreaming = "streaming:sinks=2,window=12";
constexpr const char* kPyramid = "pyramidkv:budget=16,window=6,kernel=5,beta=4";
constexpr const char* kKivi = "kivi2:group=8,residual=16";
constexpr const char* kShared = "grouped:every=3,window=9,share=2";

std::string chunked(const char* method) {
  return std::string(method) + "/chunked";
}

std::vector<CacheFault> faults_of_places() {
  const char *shipped = "VeloxQuant-MLX#389", *shortcut = "VeloxQuant-MLX#370";
  const char *rows = "the next token's place is the number of rows that are left",
             *mask = "a causal mask for keys that were thrown away before the step attended";
  return {
      {49, shipped, rows, kHeavy, std::make_shared<PlacesAreRows>(kHeavy)},
      {49, shipped, rows, kSnap, std::make_shared<PlacesAreRows>(kSnap)},
      {49, "transformers#35350", "rows are renumbered, the next token's place is the text's", kStreaming,
       std::make_shared<PlacesAreTokens>(kStreaming)},
      {49, shortcut, mask, chunked(kStreaming), cache_method(kStreaming), every_query_sees_all},
      {49, shortcut, mask, chunked(kHeavy), cache_method(kHeavy), every_query_sees_all},
  };
}

std::vector<CacheFault> faults_of_choices() {
  return {
      {0, "", "the sinks are dropped", kStreaming, cache_method("streaming:sinks=0,window=14")},
      {0, "", "a window one token short", kStreaming, cache_method("streaming:sinks=2,window=11")},
      {0, "VeloxQuant-MLX#138", "scores of the last step in place of the sum", kHeavy,
       std::make_shared<WithPolicy<ScoresOfTheLastStep>>(kHeavy)},
      {0, "", "nothing recent is kept", kHeavy, cache_method("h2o:budget=16,recent=0")},
      {0, "", "votes are not pooled", kSnap, cache_method("snapkv:budget=16,window=6,kernel=1")},
      {0, "", "votes are pooled by their maximum", kSnap,
       cache_method("snapkv:budget=16,window=6,kernel=5,pool=max")},
      {0, "", "a window that is not the prompt's end", kSnap,
       cache_method("snapkv:budget=16,window=5,kernel=5")},
      {0, "", "the same budget in all layers", kPyramid, cache_method(kSnap)},
      {0, "", "budgets a layer off", kPyramid, std::make_shared<ALayerOff>(kPyramid)},
  };
}

std::vector<CacheFault> faults_of_numbers() {
  return {
      {0, "", "keys are quantized by token", kKivi, cache_method("kivi2:group=8,residual=16,keys=token")},
      {0, "", "residual rows are lost", kKivi, std::make_shared<WithPolicy<ResidualLost>>(kKivi)},
      {0, "", "residual rows are quantized", kKivi, cache_method("kivi2:group=8,residual=8")},
      {0, "", "one scale for all heads", "fp8:scale=head", cache_method("fp8:scale=tensor")},
      {0, "", "a scale of each token in place of the first step's", "fp8", cache_method("int8")},
      {0, "", "neighbours do not share their keys", kShared, cache_method("grouped:every=3,window=9")},
      {0, "", "a window one token short", kShared, cache_method("grouped:every=3,window=8,share=2")},
  };
}

}  // namespace

std::vector<CacheFault> cache_faults() {
  std::vector<CacheFault> all = faults_of_places();
  for (std::vector<CacheFault>& some : std::vector{faults_of_choices(), faults_of_numbers()})
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  return all;
}

CacheRuleChecks::CacheRuleChecks(std::string model, const std::filesystem::path& truth, int jobs)
    : path_(std::move(model)),
      truth_(truth),
      jobs_(jobs),
      weights_(path_, jobs),
      model_(make_model(weights_, {})) {}

CacheTruth::Verdict CacheRuleChecks::compare(const std::string& of,
                                             const std::shared_ptr<const CacheMethod>& method, Ops& ops) {
  if (!method || method->groups().as_ever()) return truth_.compare(of, method, *model_, ops);
  return truth_.compare(of, method, GroupedModel(path_, jobs_, method->groups()).model(), ops);
}

std::vector<RuleVerdict> CacheRuleChecks::as_it_is() {
  const auto ops = reference_kernels().make({Precision::f64}, jobs_);
  std::vector<RuleVerdict> verdicts;
  for (const std::string& of : truth_.cases()) {
    if (interrupted()) break;
    verdicts.push_back({of, compare(of, CacheTruth::method_of(of), *ops)});
    // The full cache has no rule to break: what is otherwise there is the model.
    if (!CacheTruth::method_of(of) && !verdicts.back().found.holds())
      throw Error::input(
          fmt::format("is about another model: of the full cache {}", verdicts.back().found.wrong()))
          .in(truth_.path())
          .remedy("make one of this model by data/make_cache_fixtures.py");
  }
  weights_.check_unchanged();
  return verdicts;
}

std::vector<PlantedCacheFault> CacheRuleChecks::planted() {
  const std::vector<std::string> cases = truth_.cases();
  std::vector<PlantedCacheFault> results;
  for (const CacheFault& fault : cache_faults()) {
    if (interrupted()) break;
    if (std::find(cases.begin(), cases.end(), fault.of) == cases.end()) continue;
    const Arithmetic arithmetic{Precision::f64};
    const auto ops = fault.ops ? fault.ops(arithmetic, jobs_) : reference_kernels().make(arithmetic, jobs_);
    results.push_back({fault, compare(fault.of, fault.method, *ops).wrong()});
  }
  return results;
}

}  // namespace assay
