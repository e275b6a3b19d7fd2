// Vision towers over the ranks of vLLM 0.33 and SGLang 0.5.23, and what bitsandbytes has quantized.
#include <gtest/gtest.h>

#include <algorithm>

#include "paramcount/plan.h"
#include "paramcount/plan_ranks.h"
#include "paramcount/tower_cut.h"
#include "tests/support/described.h"

namespace assay {
namespace {

struct Loaded {
  ModuleTree tree;
  PlanOptions options;
};
Loaded load(const std::string& architecture, const std::string& keys, std::string_view engines) {
  const ModelConfig config = test::config_of(architecture, keys);
  Loaded loaded{describe(config), {}};
  loaded.options.engines = parse_engines(engines).engines;
  loaded.options.format = configured_format(config);
  return loaded;
}

const Refusal* refused_by(const Plan& plan, std::string_view rule) {
  const auto found = std::find_if(plan.refusals.begin(), plan.refusals.end(),
                                  [&](const Refusal& r) { return r.rule == rule; });
  return found == plan.refusals.end() ? nullptr : &*found;
}

bool notes(const Plan& plan, std::string_view part) {
  return std::any_of(plan.notes.begin(), plan.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

// Qwen2.5-VL-3B.
constexpr const char* kText = R"("hidden_size": 2048, "intermediate_size": 11008, "num_attention_heads": 16,
    "num_hidden_layers": 36, "num_key_value_heads": 2, "tie_word_embeddings": true, "vocab_size": 151936,
    "torch_dtype": "bfloat16")";
constexpr const char* kVision =
    R"(, "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420,
    "num_heads": 16, "out_hidden_size": 2048, "patch_size": 14, "temporal_patch_size": 2})";
Loaded qwen(std::string_view engines, bool sees = true, const std::string& more = "") {
  return load("Qwen2_5_VLForConditionalGeneration", std::string(kText) + (sees ? kVision : "") + more,
              engines);
}

std::uint64_t tower_bytes(std::string_view engines, const Layout& layout, std::uint64_t stage = 0) {
  const Loaded all = qwen(engines), blind = qwen(engines, false);
  const EngineAt engine = all.options.engines.front();
  return held_weights(all.tree, layout, all.options, engine, stage).bytes -
         held_weights(blind.tree, layout, blind.options, engine, stage).bytes;
}

// Of four ranks, in BF16, by the shapes that Qwen2_5_VisionTransformer gives its layers.
constexpr std::uint64_t kBlock = (3840 * 1280 + 3840) / 4 + 1280 * 1280 / 4 + 1280 +
                                 2 * (3420 * 1280 + 3420) / 4 + 1280 * 3420 / 4 + 1280 + 2 * 1280;
constexpr std::uint64_t kMerger = 1280 + (5120 * 5120 + 5120) / 4 + 2048 * 5120 / 4 + 2048;
constexpr std::uint64_t kPatches = 1280 * 3 * 2 * 14 * 14, kWhole = 2 * 668'684'288ULL;

TEST(PlanTowers, AreCutAsTheirClassCuts) {
  EXPECT_EQ(tower_bytes("vllm@0.33", parse_layout("tp=4")), 2 * (32 * kBlock + kMerger + kPatches));
  EXPECT_EQ(tower_bytes("sglang@0.5.23", parse_layout("tp=4")), 2 * (32 * kBlock + kMerger + kPatches));
  EXPECT_EQ(tower_bytes("vllm@0.33", parse_layout("tp=1")), kWhole);
  // How older ones cut is not known here.
  EXPECT_EQ(tower_bytes("vllm@0.30", parse_layout("tp=4")), kWhole);
  const Loaded old = qwen("vllm@0.30");
  EXPECT_TRUE(notes(make_plan(old.tree, parse_layout("tp=4"), old.options),
                    "how vLLM 0.30.0 lays the vision and audio parts"));
}

TEST(PlanTowers, StandOnTheFirstStageOrOnEach) {
  EXPECT_EQ(tower_bytes("vllm@0.33", parse_layout("pp=2"), 1), 0U);
  EXPECT_EQ(tower_bytes("sglang@0.5.23", parse_layout("pp=2"), 1), kWhole);
}

TEST(PlanTowers, WidthsThatDoNotDivideAreRefused) {
  const Loaded m = qwen("vllm@0.33");
  EXPECT_TRUE(make_plan(m.tree, parse_layout("tp=4"), m.options).launches());
  const Plan plan = make_plan(m.tree, parse_layout("tp=8"), m.options);
  const Refusal* refusal = refused_by(plan, "tower-widths");
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->arithmetic, "3420/8 = 427.50");
  EXPECT_EQ(refusal->message, "3420 is not divisible by 8");
  const auto ways = ways_out(m.tree, plan, m.options);
  EXPECT_TRUE(std::any_of(ways.begin(), ways.end(), [](const WayOut& way) {
    return way.launches && way.command.find("--mm-encoder-tp-mode data") != std::string::npos;
  }));
}

TEST(PlanTowers, HeadsThatDoNotDivideAreRefusedOrKeptWhole) {
  // GLM-4.5V's tower has 12.
  const Loaded glm = load(
      "Glm4vMoeForConditionalGeneration",
      R"("model_type": "glm4v_moe", "text_config": {"model_type": "glm4v_moe_text", "num_attention_heads": 96,
      "num_key_value_heads": 8, "head_dim": 8, "num_hidden_layers": 1, "hidden_size": 64, "vocab_size": 64,
      "intermediate_size": 64, "moe_intermediate_size": 64}, "vision_config": {"depth": 1, "num_heads": 12,
      "hidden_size": 96, "intermediate_size": 64, "out_hidden_size": 64})",
      "vllm@0.33");
  const Plan refused = make_plan(glm.tree, parse_layout("tp=8"), glm.options);
  ASSERT_NE(refused_by(refused, "tower-heads"), nullptr);
  EXPECT_EQ(refused_by(refused, "tower-heads")->message, "12 is not divisible by 8");

  const Loaded kimi = load("KimiK25ForConditionalGeneration", R"("text_config": {"num_hidden_layers": 1,
      "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 64}, "vision_config": {"vt_hidden_size": 96,
      "vt_num_attention_heads": 12, "vt_num_hidden_layers": 1, "vt_intermediate_size": 64})",
                           "vllm@0.33");
  const Plan kept = make_plan(kimi.tree, parse_layout("tp=8"), kimi.options);
  EXPECT_EQ(refused_by(kept, "tower-heads"), nullptr);
  EXPECT_TRUE(
      notes(kept, "vLLM holds the vision tower whole on each rank: 12 heads of the vision tower / 8 = 1.50"));
}

TEST(PlanTowers, OnlySomeOfATowerMayStayWhole) {
  const std::string keys = R"("downsample_ratio": 0.5, "llm_config": {"architectures": ["Qwen2ForCausalLM"],
      "model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
      "num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": 64}, "vision_config": {"hidden_size": 100,
      "num_hidden_layers": 1, "num_attention_heads": 25, "intermediate_size": 64, "image_size": 28, "patch_size": 14})";
  const Loaded m = load("InternVLChatModel", keys, "vllm@0.33");
  const Plan plan = make_plan(m.tree, parse_layout("tp=2"), m.options);
  EXPECT_TRUE(plan.launches());
  EXPECT_TRUE(notes(plan, "vLLM holds the attention of the vision tower whole on each rank"));
  const TowerCut cut(m.tree, parse_layout("tp=2"), m.options.engines.front(), false);
  for_each_spec(m.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.tower) return;
    const bool first = spec.name.find("mlp.fc1.") != std::string::npos,
               second = spec.name.ends_with("mlp.fc2.weight");
    EXPECT_EQ(cut.dimension(spec).has_value(), first || second) << spec.name;
  });
}

TEST(PlanTowers, SglangAndLlama4SayItInTheirWords) {
  const Loaded sglang = qwen("sglang@0.5.23");
  const Plan eight = make_plan(sglang.tree, parse_layout("tp=8"), sglang.options);
  EXPECT_NE(refused_by(eight, "tower-widths"), nullptr);
  const auto ways = ways_out(sglang.tree, eight, sglang.options);
  EXPECT_TRUE(std::any_of(ways.begin(), ways.end(), [](const WayOut& way) {
    return way.launches && way.command.find("--mm-enable-dp-encoder") != std::string::npos;
  }));
  const Plan three = make_plan(sglang.tree, parse_layout("tp=3"), sglang.options);
  ASSERT_NE(refused_by(three, "tower-heads"), nullptr);
  EXPECT_EQ(refused_by(three, "tower-heads")->message, "16 is not divisible by 3");
  const Loaded llama = load("Llama4ForConditionalGeneration", R"("text_config": {"num_hidden_layers": 1},
      "vision_config": {"num_hidden_layers": 1, "num_attention_heads": 12})",
                            "vllm@0.33");
  const Plan plan = make_plan(llama.tree, parse_layout("tp=8"), llama.options);
  ASSERT_NE(refused_by(plan, "tower-heads"), nullptr);
  EXPECT_EQ(refused_by(plan, "tower-heads")->message, "assert self.num_heads % self.tp_size == 0");
}

TEST(PlanTowers, EveryArchitectureThatIsCutHasItsClass) {
  for (const EngineTable* table : engine_tables()) {
    for (const EngineRule& rule : table->rules) {
      if (rule.rule != Rule::tower_cut) continue;
      for (const std::string_view architecture : rule.families)
        EXPECT_NE(tower_class(architecture), nullptr) << architecture;
    }
  }
}

TEST(PlanTowers, OfOthersIsSaidThatNothingIsKnown) {
  const Loaded m = load("Gemma4ForConditionalGeneration", R"("text_config": {"num_hidden_layers": 2},
      "vision_config": {"num_hidden_layers": 1})",
                        "vllm@0.33");
  EXPECT_TRUE(notes(make_plan(m.tree, parse_layout("tp=2"), m.options), "is not known here"));
}

constexpr const char* kFourBits =
    R"(, "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true})";

TEST(PlanBitsandbytes, IsLoadedByOneRankOfAGroup) {
  for (const auto& [engine, message] :
       {std::pair{"vllm@0.33",
                  "Prequant BitsAndBytes models with tensor parallelism is not supported. Please try "
                  "with pipeline parallelism."},
        std::pair{"vllm@0.11",
                  "Prequant BitsAndBytes models with tensor parallelism is not supported. Please try "
                  "with pipeline parallelism."},
        std::pair{"sglang@0.5.23",
                  "Prequant BitsAndBytes models with TP is not supported.Please try with PP."}}) {
    const Loaded m = qwen(engine, false, kFourBits);
    const Plan plan = make_plan(m.tree, parse_layout("tp=2"), m.options);
    ASSERT_NE(refused_by(plan, "bnb-uncut"), nullptr) << engine;
    EXPECT_EQ(refused_by(plan, "bnb-uncut")->message, message);
    EXPECT_TRUE(make_plan(m.tree, parse_layout("pp=2"), m.options).launches()) << engine;
  }
  const Loaded plain = qwen("vllm@0.33", false);
  EXPECT_TRUE(make_plan(plain.tree, parse_layout("tp=2"), plain.options).launches());
}

TEST(PlanBitsandbytes, NeedsAPluginOrIsNotKnown) {
  const auto plan = [](const char* engine) {
    const Loaded m = qwen(engine, false, kFourBits);
    return make_plan(m.tree, parse_layout("tp=1"), m.options);
  };
  EXPECT_TRUE(notes(plan("vllm@0.33"), "with vllm-bnb-plugin installed"));
  EXPECT_FALSE(notes(plan("vllm@0.25.1"), "with vllm-bnb-plugin installed"));
  EXPECT_NE(refused_by(plan("sglang@0.5.6"), "bnb-unknown"), nullptr);
  EXPECT_TRUE(plan("sglang@0.5.23").launches());
}

TEST(PlanBitsandbytes, HasNoExpertsInEightBits) {
  const auto refused = [](const char* engine, int bits) {
    const Loaded m =
        load("Qwen3MoeForCausalLM",
             fmt::format(R"("num_hidden_layers": 1, "hidden_size": 64, "num_experts": 4, "vocab_size": 64,
        "num_experts_per_tok": 1, "quantization_config": {{"quant_method": "bitsandbytes", "load_in_{}bit": true}})",
                         bits),
             engine);
    const Plan plan = make_plan(m.tree, parse_layout("tp=1"), m.options);
    const Refusal* refusal = refused_by(plan, "bnb-int8-experts");
    return refusal == nullptr ? std::string() : refusal->message;
  };
  EXPECT_EQ(refused("vllm@0.33", 8),
            "Prequant BitsAndBytes 8bit models with RoutedExperts is not supported yet.");
  EXPECT_EQ(refused("vllm@0.11", 8), "Prequant BitsAndBytes 8bit models with FusedMoE is not supported yet.");
  EXPECT_EQ(refused("vllm@0.33", 4), "");
}

}  // namespace
}  // namespace assay
