// Totals that other people published, or counted by other means, for real configs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

Totals totals_of(const std::string& name) {
  return count(describe(ModelConfig::read(test::published_config(name))));
}

// ../shared/cases/configs/TOTALS.md, column "computed (main)", and "computed only".
TEST(PublishedTotals, AreExact) {
  const std::pair<const char*, std::uint64_t> published[] = {
      {"Llama-2-7b-hf", 6'738'415'616},
      {"Llama-3.1-8B", 8'030'261'248},
      {"Llama-3.2-1B-Instruct", 1'235'814'400},
      {"Mistral-7B-Instruct-v0.3", 7'248'023'552},
      {"Mixtral-8x7B-v0.1", 46'702'792'704},
      {"Qwen2.5-7B-Instruct", 7'615'616'512},
      {"Qwen3-0.6B", 596'049'920},
      {"Qwen3-8B", 8'190'735'360},
      {"Qwen3-30B-A3B", 30'532'122'624},
      {"gemma-2-9b-it", 9'241'705'984},
      {"gemma-3-4b-it", 3'880'263'168},  // the text model of the published 4,300,079,472
      {"phi-4", 14'659'507'200},
      {"Kimi-K2-Instruct", 1'026'408'232'448},
      {"gpt-oss-20b", 20'914'757'184},
      {"GLM-4.5", 352'797'829'024},
      {"DeepSeek-V3", 671'026'419'200},
      {"DeepSeek-R1", 671'026'419'200},
      {"DeepSeek-V3.1-NVFP4", 671'026'419'200},
      {"DeepSeek-V3.2", 671'877'944'064},
      {"DeepSeek-V2-Lite", 15'706'484'224},
      {"Qwen-7B-Chat", 7'721'324'544},
      {"Baichuan2-7B", 7'505'973'248},
      {"gpt2-large", 774'030'080},
      {"glm-4-9b-chat", 9'399'951'360},
      {"MiniMax-M2.5", 228'689'764'864},
  };
  for (const auto& [name, total] : published) EXPECT_EQ(totals_of(name).total, total) << name;
}

// inclusionAI's Ling 3: 7.9B of which 1.3B are active in tiny, 124B and 5.1B in flash (its model card), and 917 tensors in the
// GGUF of flash's text model (ggml-org/llama.cpp#29151), where experts are stacked and kv_b_proj is in halves.
TEST(PublishedTotals, OfLing3) {
  const auto described = [](std::uint64_t hidden, std::uint64_t layers, std::uint64_t heads,
                            const std::string& more) {
    const std::string config = fmt::format(
        R"({{"architectures": ["BailingMoeV3ForCausalLM"], "model_type": "bailing_hybrid", "vocab_size": 157184,
        "hidden_size": {}, "num_hidden_layers": {}, "num_attention_heads": {}, "head_dim": 128, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "short_conv_kernel_size": 4, "no_kda_lora": true,
        "gated_attention_proj_granularity_type": "head_wise", "num_experts_per_tok": 8, "num_shared_experts": 1, {}}})",
        hidden, layers, heads, more);
    return describe(ModelConfig::from_json(parse_json(config, "config.json"), "config.json"));
  };
  const Totals tiny = count(described(1536, 24, 16, R"("intermediate_size": 4608, "first_k_dense_replace": 1,
      "layer_group_size": 4, "q_lora_rank": 256, "num_experts": 128, "moe_intermediate_size": 512,
      "moe_shared_expert_intermediate_size": 512, "num_nextn_predict_layers": 0)"));
  EXPECT_EQ(tiny.total, 7'893'392'800);
  const ModuleTree flash = described(2560, 42, 32, R"("intermediate_size": 6144, "first_k_dense_replace": 2,
      "layer_group_size": 6, "q_lora_rank": null, "num_experts": 512, "moe_intermediate_size": 768,
      "moe_shared_expert_intermediate_size": 768, "num_nextn_predict_layers": 1)");
  const Totals totals = count(flash);
  EXPECT_EQ(totals.total, 124'414'211'552);
  EXPECT_EQ(totals.active_without_embedding, 5'103'302'112);
  EXPECT_GT(totals.mtp_own, 3'000'000'000);
  std::size_t tensors = 0;
  for_each_spec(flash, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.main() || spec.storage != Storage::own) return;
    const std::size_t times = where.copies / (spec.part == Part::routed_expert ? flash.experts : 1);
    tensors += times * (spec.role == Role::kv_b ? 2 : 1);
  });
  EXPECT_EQ(tensors, 917);
}

// Models whose checkpoints bring code of their own. Published are totals rounded, as said beside each, which a missing norm
// or bias would not change: so tensors are counted, too, where somebody told how many a file of the model has.
struct OwnCode {
  const char* architecture;
  const char* sizes;
  std::uint64_t total;
  std::size_t tensors;  // 0: nobody told
};
constexpr OwnCode kOwnCode[] = {
    // deepseek-ai/deepseek-moe-16b-base: 16.4B
    {"DeepseekForCausalLM", R"("vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 10944,
     "moe_intermediate_size": 1408, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16,
     "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
     "moe_layer_freq": 1)",
     16'375'728'128, 0},
    // LGAI-EXAONE/EXAONE-3.5: 2.14B, 6.98B and 30.95B without the embedding (model cards); 291 tensors of the 7.8B
    // (Bingsu/exaone-3.0-7.8b-it)
    {"ExaoneForCausalLM",
     R"("vocab_size": 102400, "hidden_size": 2560, "intermediate_size": 7168, "num_layers": 30,
     "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 80, "tie_word_embeddings": true)",
     2'405'327'360, 0},
    {"ExaoneForCausalLM",
     R"("vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 14336, "num_layers": 32,
     "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": false)",
     7'818'448'896, 291},
    {"ExaoneForCausalLM",
     R"("vocab_size": 102400, "hidden_size": 5120, "intermediate_size": 27392, "num_layers": 64,
     "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": false)",
     32'003'200'000, 0},
    // internlm/internlm3-8b-instruct: 8.80B
    {"InternLM3ForCausalLM", R"("vocab_size": 128512, "hidden_size": 4096, "intermediate_size": 10240,
     "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "bias": false,
     "qkv_bias": false, "tie_word_embeddings": false)",
     8'804'241'408, 0},
    // OrionStarAI/Orion-14B-Chat: 14.5B, 444 tensors (ggml-org/llama.cpp#5061)
    {"OrionForCausalLM", R"("vocab_size": 84608, "hidden_size": 5120, "intermediate_size": 15360,
     "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 40, "tie_word_embeddings": false)",
     14'498'703'360, 444},
    // openPangu-Embedded-7B is the class's default: 7B without the embedding
    {"PanguEmbeddedForCausalLM", R"("vocab_size": 153376)", 8'030'887'936, 0},
    // upstage/solar-pro-preview-instruct: 22.1B
    {"SolarForCausalLM", R"("vocab_size": 32128, "hidden_size": 5120, "intermediate_size": 17920,
     "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 10, "sliding_window": 2047)",
     22'140'032'000, 0},
    // Tele-AI/TeleChat2: 3B and 35B (sizes: its README); TeleChat3-36B-Thinking
    {"TeleChat2ForCausalLM",
     R"("vocab_size": 131072, "hidden_size": 3072, "ffn_hidden_size": 6144, "n_layer": 24,
     "n_head": 24, "tie_word_embeddings": false)",
     3'070'528'512, 0},
    {"TeleChat2ForCausalLM",
     R"("vocab_size": 131072, "hidden_size": 6144, "ffn_hidden_size": 20480, "n_layer": 64,
     "n_head": 48, "tie_word_embeddings": false)",
     35'435'059'200, 0},
    {"TeleChat3ForCausalLM", R"("vocab_size": 131072, "hidden_size": 6144, "intermediate_size": 24576,
     "num_hidden_layers": 64, "num_attention_heads": 48, "num_key_value_heads": 8)",
     36'239'579'136, 0},
    // CofeAI/Tele-FLM: 52B (arXiv 2404.16645)
    {"TeleFLMForCausalLM", R"("vocab_size": 80000, "hidden_size": 8192, "intermediate_size": 21824,
     "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 64)",
     52'817'829'888, 0},
    // IQuestLab/IQuest-Coder-V1-40B is the class's default; its loop: 883 tensors (Avarok's GGUF)
    {"IQuestCoderForCausalLM", R"("vocab_size": 76800)", 39'794'283'520, 723},
    {"IQuestLoopCoderForCausalLM", R"("vocab_size": 76800)", 39'794'696'320, 883},
    // EssentialAI/rnj-1: 8.3B (model card)
    {"Rnj1ForCausalLM", R"("vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 16384,
     "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128)",
     8'310'501'376, 0},
    // Nine tensors in each of Nanbeige 4.2's 22 layers, and three more (llama.cpp's nanbeige.cpp), at sizes of our own
    {"NanbeigeForCausalLM",
     R"("vocab_size": 64, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 22,
     "num_attention_heads": 12, "num_key_value_heads": 2, "head_dim": 8, "num_loops": 2)",
     498'288, 201},
};
ModuleTree described(const OwnCode& model) {
  const std::string config =
      fmt::format(R"({{"architectures": ["{}"], {}}})", model.architecture, model.sizes);
  return describe(ModelConfig::from_json(parse_json(config, "config.json"), "config.json"));
}

TEST(PublishedTotals, OfModelsWithCodeOfTheirOwn) {
  for (const OwnCode& model : kOwnCode) {
    const ModuleTree tree = described(model);
    EXPECT_EQ(count(tree).total, model.total) << model.architecture << model.sizes;
    std::size_t tensors = 0;
    for_each_tensor(tree, [&](const std::string&, const TensorSpec& spec, const TensorIndices&) {
      tensors += spec.storage == Storage::own ? 1 : 0;
    });
    if (model.tensors != 0) {
      EXPECT_EQ(tensors, model.tensors) << model.architecture;
    }
  }
}

// Names that do not follow Llama's, as vLLM 0.32 maps them when it loads.
TEST(PublishedTotals, NamesOfModelsWithCodeOfTheirOwn) {
  struct Named {
    const char* architecture;
    const char* tensor;
    Role role;
  };
  const Named names[] = {
      {"ExaoneForCausalLM", "transformer.h.1.attn.attention.out_proj.weight", Role::attention_output},
      {"ExaoneForCausalLM", "transformer.h.1.mlp.c_fc_0.weight", Role::mlp_gate},
      {"ExaoneForCausalLM", "transformer.h.1.mlp.c_fc_1.weight", Role::mlp_up},
      {"ExaoneForCausalLM", "transformer.wte.weight", Role::token_embedding},
      {"TeleChat2ForCausalLM", "transformer.h.1.self_attention.key_value.weight", Role::qkv},
      {"TeleChat2ForCausalLM", "transformer.h.1.self_attention.dense.bias", Role::attention_output},
      {"TeleChat2ForCausalLM", "transformer.ln_f.weight", Role::final_norm},
      {"IQuestLoopCoderForCausalLM", "model.gate_projections.1.weight", Role::attention_gate}};
  for (const Named& wanted : names) {
    const ModuleTree tree = described({wanted.architecture, R"("vocab_size": 80)", 0, 0});
    std::size_t found = 0;
    for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
      found += name == wanted.tensor && spec.role == wanted.role ? 1 : 0;
    });
    EXPECT_EQ(found, 1U) << wanted.tensor;
  }
}

// Blocks of 8 tokens and the block before: 16 at most. Qwen's rule of which layers have a window.
TEST(PublishedTotals, WindowsOfModelsWithCodeOfTheirOwn) {
  const ModuleTree rnj = described({"Rnj1ForCausalLM", R"("num_hidden_layers": 3, "sliding_window": 8,
      "layer_types": ["chunked_attention", "full_attention", "chunked_attention"])",
                                    0, 0});
  ASSERT_EQ(rnj.attention.size(), 2U);
  EXPECT_EQ(rnj.attention[0].layers, (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(rnj.attention[1].layers, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(rnj.attention[1].window, 16U);
  const ModuleTree coder =
      described({"IQuestCoderForCausalLM", R"("num_hidden_layers": 3, "sliding_window": 8,
      "use_sliding_window": true, "max_window_layers": 2)",
                 0, 0});
  ASSERT_EQ(coder.attention.size(), 2U);
  EXPECT_EQ(coder.attention[1].layers, (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(coder.attention[1].window, 8U);
}

TEST(PublishedTotals, RefuseWhatNoPublishedModelTells) {
  const char* const refused[] = {
      R"({"architectures": ["NanbeigeForCausalLM"], "enable_hyper_connection": true})",
      R"({"architectures": ["NanbeigeForCausalLM"], "emb_neighbor_num": 4})",
      R"({"architectures": ["NanbeigeForCausalLM"], "loop_loss_weights": [1]})",
      R"({"architectures": ["PanguEmbeddedForCausalLM"], "sandwich_norm": true})",
      R"({"architectures": ["PanguEmbeddedForCausalLM"], "qkv_bias": false})",
      R"({"architectures": ["TeleChat2ForCausalLM"], "embed_layernorm": true})",
      R"({"architectures": ["DeepseekForCausalLM"], "n_routed_experts": 8})",
      R"({"architectures": ["OrionForCausalLM"], "vocab_size": 8})"};
  for (const char* config : refused)
    EXPECT_THROW(describe(ModelConfig::from_json(parse_json(config, "config.json"), "config.json")), Error)
        << config;
}

// A token passes their layers twice, with a cache each: IQuest's second looks at a window of 64.
TEST(PublishedTotals, LoopedDecodersCacheEveryPass) {
  for (const OwnCode& model : kOwnCode) {
    const std::string_view name = model.architecture;
    if (name != "NanbeigeForCausalLM" && name != "IQuestLoopCoderForCausalLM") continue;
    const ModuleTree tree = described(model);
    ASSERT_EQ(tree.attention.size(), 2U) << name;
    EXPECT_EQ(tree.attention[0].layers, tree.attention[1].layers) << name;
    EXPECT_EQ(tree.attention[1].layers.size(), tree.layers) << name;
    EXPECT_EQ(tree.attention[0].window, 0U) << name;
    EXPECT_EQ(tree.attention[1].window, name == "NanbeigeForCausalLM" ? 0U : 64U) << name;
  }
}

// google/gemma-3n-E2B and E4B as the hub counts them: with the keys and values of layers that read the cache of others,
// which are stored and which nobody computes with.
TEST(PublishedTotals, OfGemma3n) {
  const auto stored = [](const std::string& text) {
    const std::string config =
        R"({"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n", "audio_config": {},
        "vision_config": {}, "text_config": {"model_type": "gemma3n_text")" +
        text + "}}";
    const ModuleTree tree =
        describe(ModelConfig::from_json(parse_json(config, "config.json"), "config.json"));
    const Totals totals = count(tree);
    std::uint64_t idle = 0;
    for_each_tensor(tree, [&](const std::string&, const TensorSpec& spec, const TensorIndices&) {
      if (spec.storage == Storage::buffer) idle += element_count(spec.shape).value();
    });
    return totals.total + totals.towers + idle;
  };
  EXPECT_EQ(stored(""), 7'849'978'192u);
  EXPECT_EQ(stored(R"(, "num_hidden_layers": 30, "num_kv_shared_layers": 10, "intermediate_size": 8192)"),
            5'439'438'272u);
}

// Totals the hub shows for models whose sizes fit in a line; the first four have no oracle or no config
// above.
TEST(PublishedTotals, OfConfigsWrittenDown) {
  struct Written {
    const char* config;
    std::uint64_t total;
  };
  const Written published[] = {
      // internlm/internlm2-7b
      {R"({"architectures": ["InternLM2ForCausalLM"], "vocab_size": 92544, "hidden_size": 4096,
           "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 8, "bias": false, "tie_word_embeddings": false})",
       7'737'708'544},
      // 01-ai/Yi-6B
      {R"({"architectures": ["YiForCausalLM"], "vocab_size": 64000, "hidden_size": 4096,
           "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 4, "tie_word_embeddings": false})",
       6'061'035'520},
      // CohereForAI/aya-23-8B: tied by class default
      {R"({"architectures": ["CohereForCausalLM"], "vocab_size": 256000, "hidden_size": 4096,
           "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 8})",
       8'028'033'024},
      // bigcode/starcoder2-7b
      {R"({"architectures": ["Starcoder2ForCausalLM"], "vocab_size": 49152, "hidden_size": 4608,
           "intermediate_size": 18432, "num_hidden_layers": 32, "num_attention_heads": 36,
           "num_key_value_heads": 4})",
       7'173'923'840},
      // Qwen/Qwen2.5-72B
      {R"({"architectures": ["Qwen2ForCausalLM"], "vocab_size": 152064, "hidden_size": 8192,
           "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64,
           "num_key_value_heads": 8, "tie_word_embeddings": false})",
       72'706'203'648},
      // openai/gpt-oss-120b is the class's default
      {R"({"architectures": ["GptOssForCausalLM"]})", 116'829'156'672},
      // EleutherAI/gpt-neox-20b (arXiv 2204.06745) and EleutherAI/gpt-j-6b are the classes' defaults
      {R"({"architectures": ["GPTNeoXForCausalLM"]})", 20'554'567'680},
      {R"({"architectures": ["GPTJForCausalLM"]})", 6'050'882'784},
      // bigscience/bloom (arXiv 2211.05100)
      {R"({"architectures": ["BloomForCausalLM"], "hidden_size": 14336, "n_layer": 70, "n_head": 112})",
       176'247'271'424},
      // microsoft/phi-2
      {R"({"architectures": ["PhiForCausalLM"], "hidden_size": 2560, "num_hidden_layers": 32,
           "intermediate_size": 10240})",
       2'779'683'840},
      // mosaicml/mpt-7b
      {R"({"architectures": ["MPTForCausalLM"], "d_model": 4096, "n_heads": 32, "n_layers": 32,
           "vocab_size": 50432})",
       6'649'286'656},
      // bigcode/starcoder
      {R"({"architectures": ["GPTBigCodeForCausalLM"], "n_embd": 6144, "n_layer": 40, "n_head": 48,
           "n_inner": 24576, "n_positions": 8192, "vocab_size": 49152})",
       15'517'456'384},
      // databricks/dbrx-base
      {R"({"architectures": ["DbrxForCausalLM"], "d_model": 6144, "n_heads": 48, "n_layers": 40,
           "vocab_size": 100352, "attn_config": {"kv_n_heads": 8},
           "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})",
       131'596'523'520},
      // state-spaces/mamba-2.8b
      {R"({"architectures": ["MambaForCausalLM"], "hidden_size": 2560, "num_hidden_layers": 64,
           "intermediate_size": 5120, "time_step_rank": 160})",
       2'768'345'600},
      // baidu/ERNIE-4.5-21B-A3B-PT is the class's default
      {R"({"architectures": ["Ernie4_5_MoeForCausalLM"]})", 21'825'437'888},
      // tencent/Hunyuan-A13B-Instruct; counts that are the same in all layers are lists there
      {R"({"architectures": ["HunYuanMoEV1ForCausalLM"], "intermediate_size": 3072, "num_key_value_heads": 8,
           "vocab_size": 128167, "num_experts": 64, "num_hidden_layers": 32,
           "moe_topk": [8, 8, 8], "tie_word_embeddings": true})",
       80'393'183'232},
  };
  for (const Written& w : published) {
    const auto config = ModelConfig::from_json(parse_json(w.config, "config.json"), "config.json");
    EXPECT_EQ(count(describe(config)).total, w.total) << w.config;
  }
}

TEST(PublishedTotals, ActivatedAreExact) {
  struct Activated {
    const char* config;
    std::uint64_t with_embedding, without;
  };
  const Activated published[] = {
      {"Mixtral-8x7B-v0.1", 12'879'925'248, 12'748'853'248},
      {"Qwen3-30B-A3B", 3'353'032'704, 3'041'867'776},
      {"gpt-oss-20b", 4'187'440'704, 3'608'307'264},
      {"GLM-4.5", 33'632'266'144, 32'856'319'904},
      {"MiniMax-M2.5", 11'030'553'088, 10'415'956'480},
      {"DeepSeek-V2-Lite", 2'661'150'208, 2'451'435'008},
      {"DeepSeek-V3", 37'552'297'472, 36'625'618'432},
      {"DeepSeek-R1", 37'552'297'472, 36'625'618'432},
      {"Kimi-K2-Instruct", 32'861'500'928, 31'687'095'808},
      {"DeepSeek-V3.2", 38'403'822'336, 37'477'143'296},
  };
  for (const Activated& a : published) {
    const Totals totals = totals_of(a.config);
    EXPECT_EQ(totals.active, a.with_embedding) << a.config;
    EXPECT_EQ(totals.active_without_embedding, a.without) << a.config;
  }
}

TEST(PublishedTotals, MultiTokenPrediction) {
  const Totals v3 = totals_of("DeepSeek-V3");
  EXPECT_EQ(v3.mtp_own, 11'610'068'224u);
  EXPECT_EQ(v3.mtp_duplicates, 2 * 926'679'040u);
  EXPECT_EQ(v3.mtp_active, 688'100'608u);
  const Totals glm = totals_of("GLM-4.5");
  EXPECT_EQ(glm.mtp_own, 3'988'069'792u);
  EXPECT_EQ(glm.mtp_duplicates, 2 * 775'946'240u);
  const Totals v32 = totals_of("DeepSeek-V3.2");
  EXPECT_EQ(v32.mtp_own + v32.mtp_duplicates, 13'477'385'728u);
  EXPECT_EQ(totals_of("Kimi-K2-Instruct").mtp_own, 0u);
}

// What a multiplication touches: no norms, no biases, no lookup.
TEST(PublishedTotals, MatrixParametersOfDeepSeekV3) {
  EXPECT_EQ(totals_of("DeepSeek-V3").matmul_active, 36'624'596'992u);
}

}  // namespace
}  // namespace assay
