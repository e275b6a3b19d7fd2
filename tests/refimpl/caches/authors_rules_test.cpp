// Every method against its authors' rule computed from the whole history by NumPy (data/make_cache_fixtures.py): which
// tokens are kept, and what the model says; and faults that caches were shipped with, planted: each is seen there.
#include "tests/refimpl/caches/method_run.h"

namespace assay {
namespace {

using test::difference_beyond_float32;
using test::kOfDoubles;
using test::largest;
using test::MethodRun;
using test::Numbers;

constexpr std::size_t kSecondStep = 13;  // of a prompt read in two

struct Seen {
  double error = 0;  // of logits, of the largest
  std::size_t layers_kept_otherwise = 0;
};

class AuthorsRules : public testing::Test {
 protected:
  Seen compare(MethodRun& run, const std::shared_ptr<const CacheMethod>& method, std::string name,
               bool chunked = false) {
    const std::size_t vocabulary = run.model().vocabulary();
    const std::vector<std::size_t> steps =
        chunked ? std::vector{prompt_ - kSecondStep, kSecondStep} : std::vector{prompt_};
    if (chunked) name += "/chunked";
    const std::vector<double> said = run(method, tokens_, steps, prompt_);
    const std::size_t from = chunked ? prompt_ - kSecondStep : prompt_ - 1;
    const std::vector<double>& truth = truth_.at(name + "/logits").values;
    Seen seen;
    seen.error = difference_beyond_float32(
                     {said.begin() + static_cast<std::ptrdiff_t>(from * vocabulary), said.end()}, truth) /
                 largest(truth);
    for (std::size_t layer = 0; layer < run.cache().layers(); ++layer) {
      const Numbers& kept = truth_.at(name + "/kept." + std::to_string(layer));
      std::vector<double> ours;
      const LayerPolicy* policy = run.cache().policy(layer);
      if (policy == nullptr || policy->kept().empty()) continue;  // all
      for (const auto& head : policy->kept()) ours.insert(ours.end(), head.begin(), head.end());
      seen.layers_kept_otherwise += ours == kept.values ? 0 : 1;
    }
    return seen;
  }

  std::map<std::string, Numbers> truth_ =
      test::read_tensors(test::source_dir() / "data/fixtures/caches/llama.safetensors");
  std::vector<TokenId> tokens_ = test::tokens_of(truth_.at("tokens"));
  std::size_t prompt_ = static_cast<std::size_t>(truth_.at("prompt").values[0]);
  MethodRun run_{"llama"};
};

// FP8 and INT8 divide in float32, and a code may be a neighbour where a double's last bits decide: none does here.
TEST_F(AuthorsRules, KeepAndComputeTheSame) {
  const Seen full = compare(run_, nullptr, "full");
  EXPECT_LE(full.error, kOfDoubles);
  for (const char* name :
       {"fp8", "fp8:scale=head", "int8", "kivi2:group=8,residual=16", "kivi4:group=8,residual=16",
        "streaming:sinks=2,window=12", "h2o:budget=16,recent=8", "snapkv:budget=16,window=6,kernel=5",
        "snapkv:budget=16,window=6,kernel=3,pool=max", "pyramidkv:budget=16,window=6,kernel=5,beta=4"}) {
    const Seen seen = compare(run_, cache_method(name), name);
    EXPECT_EQ(seen.layers_kept_otherwise, 0u) << name;
    EXPECT_LE(seen.error, kOfDoubles) << name;
  }
}

TEST_F(AuthorsRules, GroupedLayersComputeTheSame) {
  for (const char* name : {"grouped:every=3,window=9", "grouped:every=3,window=9,share=2"}) {
    const auto method = cache_method(name);
    MethodRun run("llama", Precision::f64, method->groups());
    EXPECT_LE(compare(run, method, name).error, kOfDoubles) << name;
  }
  const char* name = "grouped:every=3,window=9,share=2";  // and not shared, it is another model
  MethodRun unshared("llama", Precision::f64, cache_method("grouped:every=3,window=9")->groups());
  EXPECT_GT(compare(unshared, nullptr, name).error, 1e3 * kOfDoubles);
}

TEST_F(AuthorsRules, KeepTheSameWhereAPromptIsReadInTwoSteps) {
  for (const char* name : {"streaming:sinks=2,window=12", "h2o:budget=16,recent=8"}) {
    const Seen seen = compare(run_, cache_method(name), name, true);
    EXPECT_EQ(seen.layers_kept_otherwise, 0u) << name;
    EXPECT_LE(seen.error, kOfDoubles) << name;
  }
}

// Votes of the window's queries are the same whatever steps bring them.
TEST_F(AuthorsRules, SnapVotesDoNotDependOnChunks) {
  for (const char* name :
       {"snapkv:budget=16,window=6,kernel=5", "pyramidkv:budget=16,window=6,kernel=5,beta=4"}) {
    for (const std::vector<std::size_t>& steps :
         {std::vector<std::size_t>{36, 4}, {34, 6}, {33, 7}, {35, 1, 4}, {10, 10, 10, 10}}) {
      const std::vector<double> said = run_(cache_method(name), tokens_, steps, prompt_);
      const std::vector<double>& truth = truth_.at(std::string(name) + "/logits").values;
      const auto from = said.begin() + static_cast<std::ptrdiff_t>((prompt_ - 1) * run_.model().vocabulary());
      EXPECT_LE(difference_beyond_float32({from, said.end()}, truth), kOfDoubles * largest(truth)) << name;
    }
  }
}

// ---- faults

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

// VeloxQuant-MLX#389, #175: the next token stands where the rows end, not where the text does.
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

// VeloxQuant-MLX#138: scores of the step in place of the sum of all.
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

// VeloxQuant-MLX#370: the mask is taken for aligned at the end of keys that were thrown away before.
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

struct Fault {
  const char* what;
  std::shared_ptr<const CacheMethod> method;
  const char* instead_of;
};

std::vector<Fault> faults() {
  const char* h2o = "h2o:budget=16,recent=8";
  const char* snap = "snapkv:budget=16,window=6,kernel=5";
  const char* streaming = "streaming:sinks=2,window=12";
  const char* pyramid = "pyramidkv:budget=16,window=6,kernel=5,beta=4";
  const char* kivi = "kivi2:group=8,residual=16";
  return {
      {"places after eviction are rows", std::make_shared<PlacesAreRows>(h2o), h2o},
      {"places after eviction are rows", std::make_shared<PlacesAreRows>(snap), snap},
      {"rows renumbered, the next token not", std::make_shared<PlacesAreTokens>(streaming), streaming},
      {"sinks dropped", cache_method("streaming:sinks=0,window=14"), streaming},
      {"the window one short", cache_method("streaming:sinks=2,window=11"), streaming},
      {"scores not summed", std::make_shared<WithPolicy<ScoresOfTheLastStep>>(h2o), h2o},
      {"nothing recent is kept", cache_method("h2o:budget=16,recent=0"), h2o},
      {"votes not pooled", cache_method("snapkv:budget=16,window=6,kernel=1"), snap},
      {"votes pooled by their maximum", cache_method("snapkv:budget=16,window=6,kernel=5,pool=max"), snap},
      {"the window not of the prompt's end", cache_method("snapkv:budget=16,window=5,kernel=5"), snap},
      {"the same budget in all layers", cache_method(snap), pyramid},
      {"budgets a layer off", std::make_shared<ALayerOff>(pyramid), pyramid},
      {"keys by token", cache_method("kivi2:group=8,residual=16,keys=token"), kivi},
      {"residual rows lost", std::make_shared<WithPolicy<ResidualLost>>(kivi), kivi},
      {"residual rows quantized", cache_method("kivi2:group=8,residual=8"), kivi},
      {"one scale for all heads", cache_method("fp8:scale=tensor"), "fp8:scale=head"},
  };
}

TEST_F(AuthorsRules, PlantedFaultsAreSeen) {
  for (const Fault& fault : faults()) {
    double error = 0;
    try {
      error = compare(run_, fault.method, fault.instead_of).error;
    } catch (const Error&) {
      error = INFINITY;  // angles for other rows than there are
    }
    EXPECT_GT(error, 1e3 * kOfDoubles) << fault.what << " (" << fault.instead_of << ")";
  }
}

TEST_F(AuthorsRules, TheCausalShortcutIsSeen) {
  MethodRun faulty("llama", std::make_unique<EveryQuerySeesAll>(Arithmetic{Precision::f64}, 1));
  for (const char* name : {"streaming:sinks=2,window=12", "h2o:budget=16,recent=8"}) {
    EXPECT_LE(compare(faulty, cache_method(name), name).error, kOfDoubles) << "shows in two steps only";
    EXPECT_GT(compare(faulty, cache_method(name), name, true).error, 1e3 * kOfDoubles) << name;
  }
}

// Of layer 0 keys depend on a token and its place alone: those of a cache that throws rows away are the full one's.
TEST_F(AuthorsRules, KeysAreRotatedToTheirPlaceInTheText) {
  MethodRun full("llama");
  full(nullptr, tokens_, {prompt_}, prompt_);
  const auto last_keys = [&](const std::shared_ptr<const CacheMethod>& method) {
    run_(method, tokens_, {prompt_}, prompt_);
    return run_.taps().at("layers.0.k");
  };
  const std::vector<double>& truth = full.taps().at("layers.0.k");
  EXPECT_EQ(last_keys(cache_method("h2o:budget=16")), truth);
  EXPECT_EQ(last_keys(cache_method("snapkv:budget=16")), truth);
  EXPECT_NE(last_keys(std::make_shared<PlacesAreRows>("h2o:budget=16")), truth);
}

}  // namespace
}  // namespace assay
