// Plans against what engines said to the people who tried them.
#include "paramcount/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/formats/json.h"
#include "paramcount/plan_ranks.h"
#include "tests/support/paths.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

struct Loaded {
  ModuleTree tree;
  PlanOptions options;
};
Loaded load(const std::filesystem::path& path, std::initializer_list<Engine> engines) {
  const ModelConfig config = ModelConfig::read(path);
  Loaded loaded{describe(config), {}};
  for (const Engine engine : engines) loaded.options.engines.emplace_back(engine);
  loaded.options.format = configured_format(config);
  return loaded;
}

bool says(const Plan& plan, const std::string& text) {
  return std::any_of(plan.refusals.begin(), plan.refusals.end(),
                     [&](const Refusal& r) { return r.message == text || r.arithmetic == text; });
}

// sglang#3345, #3491, vllm#12256: DeepSeek-V3 and R1 at tp=32.
TEST(Plan, DeepSeekV3At32) {
  const fs::path path = test::published_config("DeepSeek-V3");
  Loaded m = load(path, {});
  m.options.engines = parse_engines("vllm@0.11,sglang").engines;
  const Plan plan = make_plan(m.tree, parse_layout("tp=32"), m.options);
  EXPECT_FALSE(plan.launches());
  EXPECT_TRUE(says(plan, "intermediate_size 18432/32 = 576 = 4.5 × 128"));
  EXPECT_TRUE(says(plan, "moe_intermediate_size 2048/32 = 64 = 0.5 × 128"));
  EXPECT_TRUE(says(
      plan, "Weight output_partition_size = 576 is not divisible by weight quantization block_n = 128."));
  EXPECT_TRUE(says(
      plan, "Weight input_size_per_partition = 576 is not divisible by weight quantization block_k = 128."));
  EXPECT_TRUE(says(plan,
                   "The output_size of gate's and up's weight = 64 is not divisible by weight quantization "
                   "block_n = 128."));
  EXPECT_TRUE(says(
      plan, "The input_size of down's weight = 64 is not divisible by weight quantization block_k = 128."));
}

TEST(Plan, ExpertParallelExemptsRoutedExpertsOnly) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const Loaded m = load(path, {Engine::vllm, Engine::sglang});
  std::set<std::string> parts;
  for (const Refusal& r : make_plan(m.tree, parse_layout("tp=32,ep=32"), m.options).refusals)
    parts.insert(r.part);
  EXPECT_EQ(parts, (std::set<std::string>{"dense MLP", "shared experts"}));
}

struct LegalTp {
  const char* config;
  std::set<std::uint64_t> legal;  // of the powers of two up to 64
};
void PrintTo(const LegalTp& c, std::ostream* out) {
  *out << c.config;
}
class LegalTensorParallel : public testing::TestWithParam<LegalTp> {};

TEST_P(LegalTensorParallel, Fp8Blocks) {
  const fs::path path = test::published_config(GetParam().config);
  Loaded m = load(path, {Engine::sglang});
  m.options.format = *weight_format("fp8-block");
  std::set<std::uint64_t> legal;
  for (std::uint64_t tp = 1; tp <= 64; tp *= 2) {
    if (make_plan(m.tree, {tp, 1, 1, 1}, m.options).launches()) legal.insert(tp);
  }
  EXPECT_EQ(legal, GetParam().legal);
}

// From the divisors of each width and the threads that ran into them (vllm#17569, vllm#48173, ATOM#1488).
INSTANTIATE_TEST_SUITE_P(Models, LegalTensorParallel,
                         testing::Values(LegalTp{"DeepSeek-V3", {1, 2, 4, 8, 16}},
                                         LegalTp{"Kimi-K2-Instruct", {1, 2, 4, 8, 16}},
                                         LegalTp{"Qwen3-235B-A22B-FP8", {1, 2, 4}},
                                         LegalTp{"MiniMax-M2.5", {1, 2, 4}},
                                         LegalTp{"Qwen3-30B-A3B-FP8", {1, 2}}));

TEST(Plan, QwenAt8) {  // vllm#17569
  const fs::path path = test::published_config("Qwen3-235B-A22B-FP8");
  Loaded m = load(path, {});
  m.options.engines = parse_engines("vllm@0.11").engines;
  EXPECT_TRUE(
      says(make_plan(m.tree, {8, 1, 1, 1}, m.options), "moe_intermediate_size 1536/8 = 192 = 1.5 × 128"));
}

TEST(Plan, HeadsMustDivide) {
  const fs::path path = test::published_config("Qwen2.5-7B-Instruct");
  const Loaded m = load(path, {Engine::vllm});
  EXPECT_TRUE(says(make_plan(m.tree, {8, 1, 1, 1}, m.options),
                   "Total number of attention heads (28) must be divisible by tensor parallel size (8)."));
}

TEST(Plan, TensorRtLlmLowersTheMlpSilently) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const Loaded m = load(path, {Engine::trtllm});
  const Plan plan = make_plan(m.tree, {32, 1, 1, 32}, m.options);
  EXPECT_TRUE(plan.refusals.empty());
  const bool told = std::any_of(plan.notes.begin(), plan.notes.end(), [](const std::string& note) {
    return note.find("silently") != std::string::npos &&
           note.find("18432 is 144 blocks of 128") != std::string::npos;
  });
  EXPECT_TRUE(told);
}

TEST(Plan, TensorRtLlmLosesExperts) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const Loaded m = load(path, {Engine::trtllm});
  const Plan plan = make_plan(m.tree, {3, 1, 1, 3}, m.options);
  EXPECT_TRUE(
      std::any_of(plan.refusals.begin(), plan.refusals.end(), [](const Refusal& r) { return r.silent; }));
}

TEST(Plan, WaysOutComeInOrderAndWork) {
  const fs::path path = test::published_config("DeepSeek-V3");
  Loaded m = load(path, {Engine::sglang});
  m.options.gpu_memory = 48'000'000'000;
  const Plan plan = make_plan(m.tree, parse_layout("tp=32"), m.options);
  const std::vector<WayOut> ways = ways_out(m.tree, plan, m.options);
  ASSERT_EQ(ways.size(), 5u);
  EXPECT_TRUE(ways[0].what.starts_with("expert parallel"));
  EXPECT_FALSE(ways[0].launches);
  EXPECT_TRUE(ways[1].what.starts_with("DP attention"));
  EXPECT_TRUE(ways[2].what.starts_with("tensor × pipeline parallel (tp=16,pp=2)"));
  EXPECT_TRUE(ways[2].launches);
  EXPECT_TRUE(ways[3].what.starts_with("fewer ranks"));
  EXPECT_EQ(ways[4].command, "assay convert IN OUT --to reblock=64x64");
  EXPECT_TRUE(ways[4].launches);
}

TEST(Plan, RanksHoldTheirShare) {
  const fs::path path = test::published_config("Llama-3.1-8B");
  const Loaded m = load(path, {Engine::vllm});
  const Plan whole = make_plan(m.tree, {1, 1, 1, 1}, m.options);
  EXPECT_EQ(whole.load.weight_bytes, 2u * 8'030'261'248u);
  // Norms are on every rank; all else divides by 8.
  const std::uint64_t norms = 65 * 4096;
  EXPECT_EQ(make_plan(m.tree, {8, 1, 1, 1}, m.options).load.parameters, (8'030'261'248u - norms) / 8 + norms);
}

// Of 61 layers over 4 stages vLLM gives the third one more; ranks of a stage hold the same. The fullest rank is one of them.
TEST(Plan, EveryRankIsTold) {
  const Loaded m = load(test::published_config("DeepSeek-V3"), {Engine::vllm});
  const Layout layout = parse_layout("tp=2,pp=4,ep=2");
  const Plan plan = make_plan(m.tree, layout, m.options);
  const PlannedRanks planned =
      planned_ranks(m.tree, layout, m.options, m.options.engines.front(), plan.refusals);
  ASSERT_EQ(planned.ranks.size(), 8U);
  EXPECT_EQ(planned.engine->text(), "vLLM 0.33.0");
  std::uint64_t fullest = 0;
  for (std::size_t r = 0; r < 8; ++r) {
    EXPECT_EQ(planned.ranks[r].place.rank, r);
    EXPECT_EQ(planned.ranks[r].bytes, planned.ranks[r / 2 * 2].bytes);
    fullest = std::max(fullest, planned.ranks[r].bytes);
  }
  EXPECT_EQ(fullest, plan.load.weight_bytes);
  EXPECT_GT(planned.ranks[4].bytes, planned.ranks[2].bytes);
}

// Each rank of an engine's own: where experts do not divide, the first vLLM ranks hold one more, TensorRT-LLM's last ones are
// nobody's; and MXFP4's whole blocks leave less to the last rank.
TEST(Plan, RanksThatHoldLessAreTold) {
  const auto ranks = [](const Loaded& m, const char* layout) {
    std::vector<std::uint64_t> parameters;
    for (const RankWeights& rank :
         planned_ranks(m.tree, parse_layout(layout), m.options, m.options.engines.front(), {}).ranks)
      parameters.push_back(rank.parameters);
    return parameters;
  };
  const fs::path path = test::published_config("DeepSeek-V3");
  constexpr std::uint64_t kExpert = 44'040'192, kLayers = 58;
  const auto uneven = ranks(load(path, {Engine::vllm}), "tp=3,ep=3"),
             lost = ranks(load(path, {Engine::trtllm}), "tp=3,ep=3");
  EXPECT_EQ(uneven[0] - uneven[1], kLayers * kExpert);  // 86, 85 and 85 of 256
  EXPECT_EQ(uneven[1], uneven[2]);
  EXPECT_EQ(lost[0], lost[2]);
  const Loaded oss = load(test::source_dir() / "data/models/gpt-oss/config.json", {Engine::vllm});
  const auto blocks = ranks(oss, "tp=2");  // of 32 columns one block: rank 1 has none
  EXPECT_GT(blocks[0], blocks[1]);
  const auto own =
      ranks(load(test::source_dir() / "data/models/gpt-oss/config.json", {Engine::assay}), "tp=2");
  EXPECT_EQ(own[0], own[1]);
}

// What assay would not run it refuses in its plans, too, and tells no ranks of it.
TEST(Plan, OwnRanksAreThoseThatRun) {
  const Loaded m = load(test::published_config("DeepSeek-V3"), {Engine::assay});
  const Layout layout = parse_layout("tp=3");
  const Plan plan = make_plan(m.tree, layout, m.options);
  EXPECT_FALSE(plan.launches());
  EXPECT_TRUE(says(plan, "deepseek_v3 cannot be cut into tp=3"));
  EXPECT_TRUE(
      planned_ranks(m.tree, layout, m.options, m.options.engines.front(), plan.refusals).ranks.empty());
  EXPECT_FALSE(make_plan(m.tree, parse_layout("tp=2048"), m.options).launches());
  EXPECT_TRUE(make_plan(m.tree, parse_layout("tp=8,ep=8"), m.options).launches());
  const EngineChoice all = parse_engines("all");
  EXPECT_EQ(std::count(all.engines.begin(), all.engines.end(), EngineAt(Engine::assay)), 0);
}

// As each engine cuts that is asked about, not as the first of them does: gpt-oss' experts assay cuts evenly.
TEST(Plan, OwnRanksAreAssaysBehindAnotherEngine) {
  const fs::path path = test::source_dir() / "data/models/gpt-oss/config.json";
  const Layout layout = parse_layout("tp=2");
  const Loaded alone = load(path, {Engine::assay}), behind = load(path, {Engine::vllm, Engine::assay});
  const auto bytes = [](const std::vector<RankWeights>& ranks) {
    std::vector<std::uint64_t> all;
    for (const RankWeights& rank : ranks) all.push_back(rank.bytes);
    return all;
  };
  const auto own = bytes(make_plan(alone.tree, layout, alone.options).own_ranks);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(bytes(make_plan(behind.tree, layout, behind.options).own_ranks), own);
  EXPECT_NE(bytes(planned_ranks(behind.tree, layout, behind.options, Engine::vllm, {}).ranks), own);
}

// Of 1024 ranks each fourth holds the same: a quarter of one expert's matrices.
TEST(Plan, RanksOfManyGroupsAreComputedOnce) {
  const Loaded m = load(test::published_config("DeepSeek-R1"), {Engine::assay});
  const Plan plan = make_plan(m.tree, parse_layout("tp=1,dp=1024,ep=256"), m.options);
  ASSERT_EQ(plan.own_ranks.size(), 1024U);
  for (std::size_t r = 0; r < 1024; ++r) {
    EXPECT_EQ(plan.own_ranks[r].place.rank, r);
    EXPECT_EQ(plan.own_ranks[r].bytes, plan.own_ranks[r % 4].bytes);
  }
}

// A config may say any width: nothing is listed block by block.
TEST(Plan, WidthsOfAnySizeAreCounted) {
  ParsedJson config = parse_json(test::read_file(test::published_config("Qwen3-30B-A3B-FP8")), "config.json");
  config["moe_intermediate_size"] = 4'294'967'290u;
  const test::TempDir dir;
  test::write_file(dir / "config.json", config.dump());
  const Loaded m = load(dir / "config.json", {Engine::assay});
  const Plan plan = make_plan(m.tree, parse_layout("tp=2"), m.options);
  ASSERT_EQ(plan.own_ranks.size(), 2U) << (plan.refusals.empty() ? "" : plan.refusals.front().arithmetic);
  EXPECT_GT(plan.own_ranks[0].bytes, 48u * 128 * 3 * 2048 * 2'147'483'645u);
}

TEST(Plan, PipelineStagesCarryWhatTheyMust) {
  const fs::path path = test::published_config("Llama-3.1-8B");
  const Loaded m = load(path, {Engine::vllm});
  const Plan plan = make_plan(m.tree, {1, 2, 1, 1}, m.options);
  const std::uint64_t vocabulary = 128'256ull * 4096, layer = (8'030'261'248ull - 2 * vocabulary - 4096) / 32;
  EXPECT_EQ(plan.load.stage, 1u);  // 16 layers, the head, and the final norm
  EXPECT_EQ(plan.load.parameters, 16 * layer + vocabulary + 4096);
}

TEST(Plan, TooLargeIsInfeasible) {
  const fs::path path = test::published_config("DeepSeek-V3");
  Loaded m = load(path, {Engine::vllm});
  m.options.gpu_memory = 80'000'000'000;
  const Plan plan = make_plan(m.tree, {8, 1, 1, 1}, m.options);
  EXPECT_TRUE(plan.refusals.empty());
  EXPECT_FALSE(plan.fits());
}

TEST(Plan, SearchFindsOnlyWhatLaunches) {
  const fs::path path = test::published_config("DeepSeek-V3");
  Loaded m = load(path, {Engine::vllm, Engine::sglang});
  m.options.gpu_memory = 48'000'000'000;
  const std::vector<Plan> plans = search_plans(m.tree, 32, m.options);
  ASSERT_FALSE(plans.empty());
  for (const Plan& plan : plans) {
    EXPECT_TRUE(plan.launches());
    EXPECT_EQ(plan.layout.ranks(), 32u);
    EXPECT_LE(plan.layout.tp, 16u);
  }
  EXPECT_EQ(plans.front().layout.pp, 1u);
}

TEST(Layout, IsParsedStrictly) {
  EXPECT_EQ(parse_layout("tp=16,pp=2").ranks(), 32u);
  EXPECT_EQ(parse_layout("dp=4, tp=8,ep=32").moe_tp(), 1u);
  for (const char* wrong : {"tp", "tp=0", "tp=-1", "xx=2", "tp=8,ep=3", "tp=99999999999999999999"})
    EXPECT_ANY_THROW(parse_layout(wrong)) << wrong;
}

}  // namespace
}  // namespace assay
