// Each line of each engine's table, by what it does to the plan of a model; and what versions change.
#include "paramcount/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/model/config.h"
#include "core/system/error.h"
#include "paramcount/engine_rules.h"
#include "paramcount/plan_cut.h"
#include "tests/support/paths.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

struct Example {
  ModuleTree tree;
  PlanOptions options;
};
// A published model, or a small one of data/fixtures/configs.
Example example(const std::string& model, const std::string& engines, const std::string& weights = {}) {
  fs::path path = test::published_config(model);
  if (!fs::exists(path)) path = test::published_configs().parent_path() / "configs" / (model + ".json");
  const ModelConfig config = ModelConfig::read(path);
  Example made{describe(config), {}};
  EngineChoice choice = parse_engines(engines);
  made.options.engines = std::move(choice.engines);
  made.options.remarks = std::move(choice.remarks);
  made.options.format = weights.empty() ? configured_format(config) : *weight_format(weights);
  return made;
}

struct Witness {
  const char *engines, *rule, *model, *weights, *layout;
  const char* said;  // by a refusal under this rule, or in a note
};

constexpr Witness kWitnesses[] = {
    {"vllm", "heads", "Qwen2.5-7B-Instruct", "", "tp=8",
     "Total number of attention heads (28) must be divisible by tensor parallel size (8)."},
    {"sglang", "heads", "Qwen2.5-7B-Instruct", "", "tp=8", "assert self.total_num_heads % tp_size == 0"},
    {"trtllm", "heads", "Qwen2.5-7B-Instruct", "", "tp=8", "its words are not known"},
    {"vllm,sglang", "key-heads", "Llama-3.1-8B", "", "tp=12",
     "assert tp_size % self.total_num_kv_heads == 0"},
    {"vllm,sglang", "key-heads", "Llama-3.1-8B", "", "tp=6", "assert self.total_num_kv_heads % tp_size == 0"},
    {"trtllm", "key-heads", "Llama-3.1-8B", "", "tp=6", "its words are not known"},
    {"vllm,sglang,trtllm", "key-heads-repeated", "Llama-3.1-8B", "", "tp=16",
     "8 key and value heads are repeated over 16 ranks"},
    {"vllm,sglang,trtllm", "latent-everywhere", "DeepSeek-V3", "", "tp=8",
     "the latent KV cache is the same on all 8 ranks"},
    {"vllm,sglang", "mamba-heads", "nemotron_h", "", "tp=4",
     "Tensor parallel world size must divide num heads."},
    {"vllm,sglang", "mamba-groups", "nemotron_h", "", "tp=2",
     "If tensor parallel world size does not divide num_groups, then num_groups must equal 1."},
    {"vllm,sglang", "delta-heads", "qwen3_next", "", "tp=2", "3 is not divisible by 2"},
    {"vllm", "kda-heads", "kimi_linear", "", "tp=3", "assert self.num_heads % self.tp_size == 0"},
    {"vllm@0.11,vllm@0.20,vllm@0.25,vllm@0.30,sglang@0.4,sglang@0.5.6,sglang@0.5.15,sglang",
     "experts-at-most-tp", "Qwen3-30B-A3B", "", "tp=256",
     "Tensor parallel size 256 is greater than the number of experts 128."},
    {"vllm", "experts-at-most-ep", "Mixtral-8x7B-v0.1", "", "tp=16,ep=16", "its words are not known"},
    {"vllm", "experts-uneven", "DeepSeek-V3", "", "tp=3,ep=3", "the first 1 ranks of 3 hold one expert more"},
    {"trtllm", "experts-lost", "DeepSeek-V3", "", "tp=3,ep=3",
     "no message: 85 experts a rank, and the last 1 belong to nobody"},
    {"sglang@0.4", "experts-divide", "DeepSeek-V3", "", "tp=3,ep=3",
     "assert num_experts % self.moe_ep_size == 0"},
    {"sglang@0.5.6", "experts-divide", "DeepSeek-V3", "", "tp=3,ep=3",
     "assert (num_experts - num_fused_shared_experts) % self.moe_ep_size == 0"},
    {"sglang@0.5.15", "experts-divide", "DeepSeek-V3", "", "tp=3,ep=3",
     "assert (num_experts - num_shared_slots) % self.moe_ep_size == 0"},
    {"sglang", "experts-divide", "DeepSeek-V3", "", "tp=3,ep=3",
     "assert self._num_global_routed % storage_ep_size == 0"},
    {"vllm", "experts-needed", "Llama-3.1-8B", "", "tp=2,ep=2",
     "Number of experts in the model must be greater than 0 when expert parallelism is enabled."},
    {"sglang,trtllm", "experts-needed", "Llama-3.1-8B", "", "tp=2,ep=2", "its words are not known"},
    {"vllm", "experts-over-all-ranks", "DeepSeek-V3", "", "tp=8,ep=2",
     "--enable-expert-parallel gives ep=8, not 2"},
    {"vllm,sglang", "widths", "Llama-3.1-8B", "", "tp=3", "14336 is not divisible by 3"},
    {"trtllm", "widths", "Llama-3.1-8B", "", "tp=3", "its words are not known"},
    {"vllm", "expert-widths", "Mixtral-8x7B-v0.1", "", "tp=3",
     "assert self.intermediate_size % tp_size == 0"},
    {"sglang", "expert-widths", "Mixtral-8x7B-v0.1", "", "tp=3",
     "assert intermediate_size % self.moe_tp_size == 0"},
    {"trtllm", "expert-widths", "Mixtral-8x7B-v0.1", "", "tp=3", "its words are not known"},
    {"vllm,sglang", "fp8-inputs", "DeepSeek-V3", "", "tp=32",
     "Weight input_size_per_partition = 576 is not divisible by weight quantization block_k = 128."},
    {"vllm,sglang", "fp8-outputs", "MiniCPM3-4B", "fp8-block", "tp=8",
     "Weight output_partition_size = 480 is not divisible by weight quantization block_n = 128."},
    {"sglang", "fp8-merged", "DeepSeek-V2-Lite", "fp8-block", "tp=1",
     "Weight output_partition_size = 10944 is not divisible by weight quantization block_n = 128."},
    {"vllm@0.11", "fp8-merged-but-last", "DeepSeek-V2-Lite", "fp8-block", "tp=1",
     "Weight output_partition_size = 10944 is not divisible by weight quantization block_n = 128."},
    {"vllm@0.20,vllm", "fp8-merged-tolerated", "DeepSeek-V2-Lite", "fp8-block", "tp=1",
     "vLLM lets merged matrices end inside a block: intermediate_size 10944/1 = 10944 = 85.5 × 128"},
    {"vllm", "fp8-experts", "Qwen3-235B-A22B-FP8", "", "tp=32",
     "The output_size of gate's and up's weight = 48 is not divisible by weight quantization block_n = 128."},
    {"vllm@0.11,sglang", "fp8-experts", "Qwen3-235B-A22B-FP8", "", "tp=8",
     "The input_size of down's weight = 192 is not divisible by weight quantization block_k = 128."},
    {"vllm@0.30,vllm", "fp8-experts-refined", "Qwen3-235B-A22B-FP8", "", "tp=8",
     "FP8 MoE block scales refined from [128, 128] to [64, 64] to fit the TP-sharded intermediate size 192."},
    {"trtllm", "fp8-whole-blocks", "Qwen3-235B-A22B-FP8", "", "tp=8", "its words are not known"},
    {"vllm,sglang", "int4-groups", "Qwen2.5-7B-Instruct", "int4-g128", "tp=8",
     "The input size is not aligned"},
    {"vllm,sglang", "fp4-groups", "gpt_neox", "nvfp4", "tp=2", "its words are not known"},
    {"vllm@0.11", "marlin-tiles", "Qwen2.5-7B-Instruct", "int4-g128", "tp=32",
     "Weight output_size_per_partition = 592 is not divisible by min_thread_n = 64."},
    {"sglang", "marlin-tiles", "Qwen2.5-7B-Instruct", "int4-g128", "tp=32",
     "Weight output_size_per_partition = 592 is not divisible by min_thread_n = 64."},
    {"vllm@0.25,vllm", "marlin-padded", "Qwen2.5-7B-Instruct", "int4-g128", "tp=32",
     "vLLM pads matrices to Marlin's tiles: intermediate_size 18944/32 = 592"},
    {"vllm,sglang@0.5.6,sglang", "mxfp4-whole-blocks", "gpt-oss-20b", "", "tp=8",
     "intermediate_size 2880/8 = 360 = 11.25 × 32, so 384 a rank until none is left"},
    {"trtllm", "mlp-over-fewer", "DeepSeek-V3", "", "tp=32", "18432 is 144 blocks of 128"},
    {"vllm,sglang", "vocabulary-padded", "gpt2-large", "", "tp=2",
     "pads the vocabulary of 50257 to 50304, a multiple of 64"},
    {"vllm", "layers-to-middle", "DeepSeek-V3", "", "tp=8,pp=4",
     "vLLM puts 16 in stage 3 and 15 in the others"},
    {"sglang", "layers-to-last-stages", "DeepSeek-V3", "", "tp=8,pp=4",
     "SGLang puts 16 in stage 4 and 15 in the others"},
    {"sglang@0.4", "layers-to-last-stage", "DeepSeek-V3", "", "tp=8,pp=8",
     "SGLang puts 12 in stage 8 and 7 in the others"},
    {"trtllm", "layers-to-first-stages", "DeepSeek-V3", "", "tp=8,pp=4",
     "TensorRT-LLM puts 16 in stage 1 and 15 in the others"},
    {"vllm,sglang", "layers-fill-stages", "Llama-3.1-8B", "", "tp=1,pp=64", "its words are not known"},
    {"trtllm", "layers-fill-stages", "Llama-3.1-8B", "", "tp=1,pp=64",
     "pp size cannot be larger than num_hidden_layers"},
};

bool told(const Plan& plan, const Witness& witness) {
  const auto holds = [&](const std::string& text) { return text.find(witness.said) != std::string::npos; };
  return std::any_of(plan.refusals.begin(), plan.refusals.end(),
                     [&](const Refusal& r) { return r.rule == witness.rule && holds(r.message); }) ||
         std::any_of(plan.notes.begin(), plan.notes.end(), holds);
}

TEST(EngineRules, EachDoesWhatItSays) {
  for (const Witness& witness : kWitnesses) {
    for (const EngineAt& engine : parse_engines(witness.engines).engines) {
      Example m = example(witness.model, "all", witness.weights);
      m.options.engines = {engine};
      const Plan plan = make_plan(m.tree, parse_layout(witness.layout), m.options);
      EXPECT_TRUE(told(plan, witness)) << engine.text() << ": " << witness.rule << ": " << witness.said;
    }
  }
}

// Theirs are in plan_towers_test.cpp: of towers, whose rules name architectures, and of what bitsandbytes has stored.
bool held_elsewhere(const EngineRule& line) {
  return name(line.rule).starts_with("tower-") || name(line.rule).starts_with("bnb-");
}

// No line of a table goes without a witness: one whose model and version that line is for.
TEST(EngineRules, EachLineHasAWitness) {
  std::set<const EngineRule*> seen;
  for (const Witness& witness : kWitnesses) {
    const std::string family = example(witness.model, "all", witness.weights).tree.family;
    for (const EngineAt& engine : parse_engines(witness.engines).engines) {
      for (const EngineRule& line : engine_table(engine.engine).rules) {
        if (name(line.rule) == witness.rule && line.holds(engine.version, family)) seen.insert(&line);
      }
    }
  }
  for (const EngineTable* table : engine_tables()) {
    for (const EngineRule& line : table->rules)
      EXPECT_TRUE(seen.contains(&line) || held_elsewhere(line))
          << table->name << ": " << name(line.rule) << " " << line.from.text();
  }
}

// A misspelt family, or a version nobody read, would silently be no rule.
TEST(EngineRules, SpeakOfKnownFamiliesAndVersions) {
  std::set<std::string> families;
  for (const auto& entry : fs::directory_iterator(test::published_configs().parent_path() / "configs"))
    families.insert(describe(ModelConfig::read(entry.path())).family);
  for (const auto& entry : fs::directory_iterator(test::published_configs()))
    families.insert(describe(ModelConfig::read(entry.path())).family);
  const std::set<std::string> elsewhere = {"laguna", "kimi_k25",
                                           "deepseek_v4"};  // described, or soon; no config here
  for (const EngineTable* table : engine_tables()) {
    const auto known = [&](const EngineVersion& version) {
      return version == EngineVersion{} ||
             std::find(table->known.begin(), table->known.end(), version) != table->known.end();
    };
    EXPECT_TRUE(std::is_sorted(table->known.begin(), table->known.end()));
    for (const EngineRule& line : table->rules) {
      EXPECT_TRUE(known(line.from) && known(line.until)) << table->name << ": " << name(line.rule);
      if (held_elsewhere(line)) continue;
      for (const std::string_view family : line.families)
        EXPECT_TRUE(families.contains(std::string(family)) || elsewhere.contains(std::string(family)))
            << family;
    }
  }
}

TEST(EngineRules, AreTheTablesOfTheDocuments) {
  EXPECT_EQ(test::read_file(test::source_dir() / "docs/engines.md"), render_engine_rules({}))
      << "write it again: assay paramcount --rules -o docs/engines.md";
}

struct Serves {
  const char *model, *weights, *engine;
  std::set<std::uint64_t> tp;  // of 1, 2, 4 … 64
};
class EngineServes : public testing::TestWithParam<Serves> {};
void PrintTo(const Serves& s, std::ostream* out) {
  *out << s.engine << " " << s.model;
}

TEST_P(EngineServes, TensorParallel) {
  const Serves& s = GetParam();
  const Example m = example(s.model, s.engine, s.weights);
  std::set<std::uint64_t> legal;
  for (std::uint64_t tp = 1; tp <= 64; tp *= 2) {
    if (make_plan(m.tree, {tp, 1, 1, 1}, m.options).launches()) legal.insert(tp);
  }
  EXPECT_EQ(legal, s.tp);
}

const std::set<std::uint64_t> kTo16 = {1, 2, 4, 8, 16}, kTo64 = {1, 2, 4, 8, 16, 32, 64};
INSTANTIATE_TEST_SUITE_P(Models, EngineServes,
                         testing::Values(Serves{"gpt-oss-20b", "", "vllm@0.11", kTo64},
                                         Serves{"gpt-oss-20b", "", "vllm", kTo64},
                                         Serves{"gpt-oss-20b", "", "sglang@0.5.6", kTo64},
                                         Serves{"gpt-oss-20b", "", "sglang", kTo64},
                                         Serves{"Qwen3-235B-A22B-FP8", "", "vllm@0.25", {1, 2, 4}},
                                         Serves{"Qwen3-235B-A22B-FP8", "", "vllm@0.30", kTo16},
                                         Serves{"Qwen3-235B-A22B-FP8", "", "vllm@0.33", kTo16},
                                         Serves{"Qwen3-235B-A22B-FP8", "", "sglang", {1, 2, 4}},
                                         Serves{"MiniMax-M2.5", "", "sglang", {1, 2, 4}},
                                         Serves{"MiniMax-M2.5", "", "vllm", kTo16},
                                         Serves{"Qwen3-30B-A3B-FP8", "", "vllm@0.11", {1, 2}},
                                         Serves{"Qwen3-30B-A3B-FP8", "", "vllm", {1, 2, 4, 8}},
                                         Serves{"DeepSeek-V3", "", "vllm@0.11", kTo16},
                                         Serves{"DeepSeek-V3", "", "vllm", kTo16},
                                         Serves{"DeepSeek-V3", "", "sglang", kTo16},
                                         Serves{"DeepSeek-V2-Lite", "fp8-block", "vllm@0.11", {}},
                                         Serves{"DeepSeek-V2-Lite", "fp8-block", "vllm", {1}},
                                         Serves{"DeepSeek-V2-Lite", "fp8-block", "sglang", {}},
                                         Serves{"Mixtral-8x7B-v0.1", "", "vllm", {1, 2, 4, 8, 16, 32}},
                                         Serves{"Llama-3.1-8B", "", "sglang", {1, 2, 4, 8, 16, 32}}));

std::vector<std::uint64_t> sizes(std::uint64_t layers, std::uint64_t stages, const EngineAt& engine) {
  std::vector<std::uint64_t> list;
  for (const IndexRange& stage : pipeline_stages(layers, stages, engine)) list.push_back(stage.size());
  return list;
}

TEST(EngineStages, WhoGetsTheRemainder) {
  using Sizes = std::vector<std::uint64_t>;
  const EngineAt old_sglang = parse_engines("sglang@0.4.10").engines.front();
  EXPECT_EQ(sizes(61, 4, Engine::vllm), (Sizes{15, 15, 16, 15}));
  EXPECT_EQ(sizes(62, 4, Engine::vllm), (Sizes{15, 16, 16, 15}));
  EXPECT_EQ(sizes(63, 4, Engine::vllm), (Sizes{16, 16, 16, 15}));
  EXPECT_EQ(sizes(61, 2, Engine::vllm), (Sizes{31, 30}));
  EXPECT_EQ(sizes(62, 4, Engine::sglang), (Sizes{15, 15, 16, 16}));
  EXPECT_EQ(sizes(62, 4, old_sglang), (Sizes{15, 15, 15, 17}));
  EXPECT_EQ(sizes(62, 4, Engine::trtllm), (Sizes{16, 16, 15, 15}));
}

// What --tensors --plan lists: the widest rank's part, as the engine pads and deals out.
TEST(EngineShapes, AreThoseOfTheEngine) {
  const auto shape = [](const std::string& model, const std::string& engine, const Layout& layout,
                        const std::string& ending) {
    const Example m = example(model, engine);
    std::vector<std::uint64_t> found;
    for_each_spec(m.tree, [&](const TensorSpec& spec, const Occurrence&) {
      if (spec.name.ends_with(ending))
        found = EngineCut(m.tree, layout, m.options.engines.front(), m.options.format).rank_shape(spec);
    });
    return found;
  };
  using Shape = std::vector<std::uint64_t>;
  EXPECT_EQ(shape("gpt-oss-20b", "vllm", {8, 1, 1, 1}, "down_proj"), (Shape{32, 384, 2880}));
  EXPECT_EQ(shape("gpt-oss-20b", "sglang", {4, 1, 1, 1}, "gate_up_proj"), (Shape{32, 2880, 1472}));
  EXPECT_EQ(shape("gpt-oss-20b", "sglang@0.4", {4, 1, 1, 1}, "gate_up_proj"), (Shape{32, 2880, 1440}));
  EXPECT_EQ(shape("gpt2-large", "vllm", {2, 1, 1, 1}, "wte.weight"), (Shape{25152, 1280}));
  EXPECT_EQ(shape("gpt2-large", "trtllm", {2, 1, 1, 1}, "wte.weight"), (Shape{25129, 1280}));
  // One key head stays on each rank, however many ranks there are.
  EXPECT_EQ(shape("Llama-3.1-8B", "vllm", {32, 1, 1, 1}, "k_proj.weight"), (Shape{128, 4096}));
}

TEST(EngineVersions, AreChosen) {
  EXPECT_EQ(parse_engines("vllm").engines, std::vector<EngineAt>{Engine::vllm});
  EXPECT_EQ(EngineAt(Engine::vllm).text(), "vLLM 0.33.0");
  EXPECT_EQ(EngineAt(Engine::sglang).text(), "SGLang 0.5.23");
  EXPECT_EQ(parse_engines("all").engines.size(), 3u);
  EXPECT_EQ(parse_engines("vllm, sglang,vllm").engines.size(), 2u);
  const struct {
    const char *asked, *chosen, *remark;
  } cases[] = {{"vllm@0.33", "vLLM 0.33.0", ""},
               {"vllm@v0.20.2", "vLLM 0.20.2", ""},
               {"vllm@0.20", "vLLM 0.20.2", ""},
               {"vllm@0.29.1", "vLLM 0.25.1", "nearest older one"},
               {"vllm@1.2", "vLLM 0.33.0", "nearest older one"},
               {"vllm@0.6.6.post1", "vLLM 0.11.0", "oldest known"},
               {"sglang@0.5.15.post1", "SGLang 0.5.15", ""},
               {"sglang@0.5.20", "SGLang 0.5.15", "nearest older one"}};
  for (const auto& c : cases) {
    const EngineChoice choice = parse_engines(c.asked);
    EXPECT_EQ(choice.engines.front().text(), c.chosen) << c.asked;
    const std::string remark = choice.remarks.empty() ? "" : choice.remarks.front();
    EXPECT_EQ(remark.empty(), std::string(c.remark).empty()) << remark;
    EXPECT_NE(remark.find(c.remark), std::string::npos) << remark;
  }
  for (const char* wrong : {"tgi", "vllm@", "vllm@new", "", "vllm,,sglang", "vllm@0.33@1"}) {
    try {
      parse_engines(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_NE(error.line().find("vllm (0.11.0"), std::string::npos) << error.line();
    }
  }
}

TEST(EngineVersions, AreSaidInThePlan) {
  const Example m = example("Llama-3.1-8B", "vllm@0.29");
  const Plan plan = make_plan(m.tree, {2, 1, 1, 1}, m.options);
  ASSERT_FALSE(plan.notes.empty());
  EXPECT_EQ(
      plan.notes.front(),
      "vLLM 0.29 is not among the versions known: held against the rules of 0.25.1, the nearest older one");
}

}  // namespace
}  // namespace assay
