// Every method against its authors' rule computed from the whole history by NumPy (data/make_cache_fixtures.py): which
// tokens are kept, and what the model says; and faults that caches were shipped with, planted: each is seen there.
#include "refimpl/claims/cache_faults.h"
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

// ---- faults (claims/cache_faults.h)

TEST_F(AuthorsRules, OfAFileAreHeldAndPlantedFaultsAreNamed) {
  CacheRuleChecks checks(test::folder("llama").string(),
                         test::source_dir() / "data/fixtures/caches/llama.safetensors", 1);
  const std::vector<RuleVerdict> rules = checks.as_it_is();
  EXPECT_EQ(rules.size(), 15u);
  for (const RuleVerdict& rule : rules) EXPECT_EQ(rule.found.wrong(), "") << rule.of;
  const std::vector<PlantedCacheFault> planted = checks.planted();
  EXPECT_EQ(planted.size(), cache_faults().size());
  for (const PlantedCacheFault& each : planted)
    EXPECT_NE(each.seen, "") << each.fault.what << " (" << each.fault.of << ")";
}

// Far beyond what is allowed, and where they are about choices by the token that is kept.
TEST_F(AuthorsRules, FaultsShowInLogits) {
  for (const CacheFault& fault : cache_faults()) {
    if (fault.of.find('/') != fault.of.npos || !fault.method->groups().as_ever()) continue;
    double error = 0;
    try {
      error = compare(run_, fault.method, fault.of).error;
    } catch (const Error&) {
      error = INFINITY;  // angles for other rows than there are
    }
    EXPECT_GT(error, 1e3 * kOfDoubles) << fault.what << " (" << fault.of << ")";
  }
}

// Without rows that were thrown away between two steps the shortcut is right.
TEST_F(AuthorsRules, TheCausalShortcutIsSeenInTwoStepsOnly) {
  std::size_t planted = 0;
  for (const CacheFault& fault : cache_faults()) {
    if (!fault.ops) continue;
    MethodRun faulty("llama", fault.ops(Arithmetic{Precision::f64}, 1));
    const std::string name = fault.of.substr(0, fault.of.find('/'));
    EXPECT_LE(compare(faulty, cache_method(name), name).error, kOfDoubles);
    EXPECT_GT(compare(faulty, cache_method(name), name, true).error, 1e3 * kOfDoubles) << name;
    ++planted;
  }
  EXPECT_EQ(planted, 2u);
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
  EXPECT_NE(last_keys(cache_faults().front().method), truth);  // the places of rows
}

}  // namespace
}  // namespace assay
