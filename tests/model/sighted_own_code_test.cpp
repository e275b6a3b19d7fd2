// Models that see whose code stands beside their weights: totals that were published, towers put together of transformers'
// and timm's parts (data/make_own_code_towers.py), names as vLLM 0.33 loads them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

ModuleTree described(const ParsedJson& document) {
  return describe(ModelConfig::from_json(document, "config.json"));
}

ModuleTree written(const std::string& text) {
  return described(parse_json(text, "config.json"));
}

// Name, shape: those of a layer or an expert once.
using Shapes = std::map<std::string, std::vector<std::uint64_t>>;
Shapes shapes_of(const ModuleTree& tree) {
  Shapes shapes;
  for_each_spec(tree,
                [&](const TensorSpec& spec, const Occurrence&) { shapes.emplace(spec.name, spec.shape); });
  return shapes;
}

void expect_shapes(const ParsedJson& document, const Shapes& expected) {
  const Shapes shapes = shapes_of(described(document));
  for (const auto& [name, shape] : expected) {
    const auto found = shapes.find(name);
    ASSERT_NE(found, shapes.end()) << name;
    EXPECT_EQ(found->second, shape) << name;
  }
}

std::string intern_vl(const std::string& language, const std::string& vision) {
  return fmt::format(
      R"({{"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "downsample_ratio": 0.5,
      "llm_config": {{{}, "tie_word_embeddings": false}}, "vision_config": {{{}}}}})",
      language, vision);
}

std::string language(const std::string& kind, std::uint64_t hidden, std::uint64_t intermediate,
                     std::uint64_t layers, std::uint64_t heads, std::uint64_t kv_heads,
                     std::uint64_t vocabulary) {
  return fmt::format(
      R"("model_type": "{}", "hidden_size": {}, "intermediate_size": {}, "num_hidden_layers": {},
      "num_attention_heads": {}, "num_key_value_heads": {}, "vocab_size": {}, "bias": false)",
      kind, hidden, intermediate, layers, heads, kv_heads, vocabulary);
}

constexpr const char* k300M = R"("hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
    "num_attention_heads": 16, "image_size": 448, "patch_size": 14, "qk_normalization": false, "qkv_bias": true)";
constexpr const char* k6B = R"("hidden_size": 3200, "intermediate_size": 12800, "num_hidden_layers": 45,
    "num_attention_heads": 25, "image_size": 448, "patch_size": 14, "qk_normalization": true, "qkv_bias": false,
    "norm_type": "rms_norm")";
constexpr const char* kSo400M = R"("hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
    "num_attention_heads": 16)";

// Of the hub's safetensors metadata, all seven InternVL 2.5.
TEST(SightedOwnCode, InternVlAsCounted) {
  const std::pair<std::string, std::uint64_t> published[] = {
      {intern_vl(language("qwen2", 896, 4864, 24, 14, 2, 151674), k300M), 938'193'024},
      {intern_vl(language("internlm2", 2048, 8192, 24, 16, 8, 92553), k300M), 2'205'754'368},
      {intern_vl(language("qwen2", 2048, 11008, 36, 16, 2, 151674), k300M), 3'712'637'952},
      {intern_vl(language("internlm2", 4096, 14336, 32, 32, 8, 92553), k300M), 8'075'365'376},
      {intern_vl(language("internlm2", 6144, 16384, 48, 48, 8, 92553), k6B), 25'514'186'112},
      {intern_vl(language("qwen2", 5120, 27648, 64, 40, 8, 151674), k6B), 38'388'164'992},
      {intern_vl(language("qwen2", 8192, 29568, 80, 64, 8, 151674), k6B), 78'408'318'336},
  };
  for (const auto& [config, all] : published) EXPECT_EQ(count(written(config)).all(), all) << config;
}

// Likewise MiniCPM-V 2.6 and Ovis 2.5 9B; OpenCUA 7B has the sizes of Qwen2.5-VL 7B.
TEST(SightedOwnCode, OthersAsCounted) {
  const std::string qwen3 = R"("model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
      "tie_word_embeddings": false)";
  const std::string sizes = R"("hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
      "num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": false)";
  const std::string minicpm =
      fmt::format(R"({{"architectures": ["MiniCPMV"], "model_type": "minicpmv", "version": 2.6, {},
      "vocab_size": 151666, "query_num": 64, "drop_vision_last_layer": false, "vision_config": {{{}, "image_size": 980,
      "patch_size": 14}}}})",
                  sizes, kSo400M);
  EXPECT_EQ(count(written(minicpm)).all(), 8'099'175'152);
  const std::string ovis = fmt::format(R"({{"architectures": ["Ovis2_5"], "model_type": "ovis2_5",
      "hidden_size": 4096, "visual_vocab_size": 65536, "llm_config": {{{}}}, "vit_config": {{{}, "num_patches": -1,
      "image_size": 512, "patch_size": 16, "hidden_stride": 2, "preserve_original_pe": true}}}})",
                                       qwen3, kSo400M);
  const ModuleTree tree = written(ovis);
  EXPECT_EQ(count(tree).all(), 9'174'807'784);
  std::uint64_t tensors = 0;
  for_each_spec(tree, [&](const TensorSpec&, const Occurrence& where) { tensors += where.copies; });
  EXPECT_EQ(tensors, 840U);
  const std::string opencua = fmt::format(R"({{"architectures": ["OpenCUAForConditionalGeneration"],
      "text_config": {{"model_type": "qwen2", "vocab_size": 152064, {}}}, "vision_config": {{"hidden_size": 1280,
      "intermediate_size": 3420, "depth": 32, "num_heads": 16, "out_hidden_size": 3584}}}})",
                                          sizes);
  EXPECT_EQ(count(written(opencua)).all(), 8'292'166'656);
}

// Odd sizes, three of each family.
TEST(SightedOwnCode, TowersAreTheSumsOfTheirParts) {
  const ParsedJson cases = read_json(test::source_dir() / "data" / "fixtures" / "own_code_towers.json");
  ASSERT_GE(cases.size(), 60U);
  for (const ParsedJson& each : cases) {
    const ModuleTree tree = described(each["config"]);
    EXPECT_EQ(count(tree).towers, each["towers"].get<std::uint64_t>()) << each["config"].dump();
    EXPECT_TRUE(tree.not_counted.empty()) << each["config"].dump();
    const bool embeds = each["config"]["architectures"][0] == "LlamaNemotronVLModel";
    EXPECT_NE(std::holds_alternative<Hyperparameters>(tree.read_hyperparameters), embeds)
        << each["config"].dump();
  }
}

ParsedJson first_of(const std::string& architecture) {
  const ParsedJson cases = read_json(test::source_dir() / "data" / "fixtures" / "own_code_towers.json");
  for (const ParsedJson& each : cases) {
    if (each["config"]["architectures"][0] == architecture) return each["config"];
  }
  ADD_FAILURE() << architecture;
  return {};
}

// vLLM 0.33: kimi_vl.py, minicpmv.py, minicpmo.py, ovis.py, dots_ocr.py, nano_nemotron_vl.py, keye.py, kanana_v.py.
TEST(SightedOwnCode, NamesAreThoseThatEnginesLoad) {
  const auto size = [](const ParsedJson& object, const char* key) {
    return object[key].get<std::uint64_t>();
  };
  const ParsedJson kimi = first_of("KimiVLForConditionalGeneration");
  const std::uint64_t seen = size(kimi["vision_config"], "hidden_size"),
                      text = size(kimi["text_config"], "hidden_size");
  expect_shapes(kimi, {{"vision_tower.encoder.blocks.{layer}.wqkv.weight", {3 * seen, seen}},
                       {"multi_modal_projector.linear_1.weight", {4 * seen, 4 * seen}},
                       {"multi_modal_projector.linear_2.bias", {text}},
                       {"multi_modal_projector.pre_norm.weight", {seen}},
                       {"language_model.model.layers.{layer}.self_attn.kv_b_proj.weight", {3 * (4 + 6), 8}},
                       {"language_model.lm_head.weight", {97, text}}});
  const ParsedJson minicpm = first_of("MiniCPMO");
  const std::uint64_t width = size(minicpm, "hidden_size"), ear = size(minicpm["audio_config"], "d_model");
  expect_shapes(minicpm,
                {{"llm.model.layers.{layer}.self_attn.q_proj.bias", {24}},
                 {"llm.lm_head.weight", {97, width}},
                 {"resampler.attn.in_proj_weight", {3 * width, width}},
                 {"resampler.query", {size(minicpm, "query_num"), width}},
                 {"vpm.embeddings.patch_embedding.bias", {size(minicpm["vision_config"], "hidden_size")}},
                 {"apm.conv2.weight", {ear, ear, 3}},
                 {"audio_projection_layer.linear2.weight", {width, width}}});
  const ParsedJson ovis = first_of("Ovis");
  const std::uint64_t told = size(ovis["visual_tokenizer_config"], "vocab_size");
  expect_shapes(ovis, {{"visual_tokenizer.head.1.bias", {told - 5}},
                       {"visual_tokenizer.backbone.trunk.post_trunk_norm.weight",
                        {size(ovis["visual_tokenizer_config"]["backbone_config"], "hidden_size")}},
                       {"vte.weight", {told, size(ovis, "hidden_size")}}});
  expect_shapes(first_of("NemotronH_Nano_VL_V2"),
                {{"vision_model.radio_model.model.blocks.{layer}.attn.qkv.weight", {3 * 384, 384}},
                 {"vision_model.radio_model.input_conditioner.norm_mean", {3, 1, 1}},
                 {"mlp1.0.weight", {4 * 384}}});
  expect_shapes(first_of("KeyeForConditionalGeneration"),
                {{"mlp_AR.pre_norm.weight",
                  {size(first_of("KeyeForConditionalGeneration")["vision_config"], "hidden_size")}},
                 {"model.norm.weight", {size(first_of("KeyeForConditionalGeneration"), "hidden_size")}}});
}

// DotsVisionConfig's defaults, and what has no class in transformers to be put together of. By hand, of dots_ocr.py,
// llava_onevision2.py and glm4v.py of vLLM 0.33.
TEST(SightedOwnCode, TowersOfTheirOwn) {
  const std::string text =
      R"("hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3,
      "num_key_value_heads": 1, "vocab_size": 97, "tie_word_embeddings": false)";
  const std::uint64_t h = 1536, w = 4224;
  const std::uint64_t block = 2 * h + 4 * h * h + 3 * h * w;
  const std::uint64_t start = h * 3 * 14 * 14 + h + h + h;
  const std::uint64_t merger = 2 * h + 16 * h * h + 4 * h + 4 * h * h + h;
  EXPECT_EQ(count(written(fmt::format(
                      R"({{"architectures": ["DotsOCRForCausalLM"], {}, "vision_config": {{}}}})", text)))
                .towers,
            start + 42 * block + merger);
  const std::uint64_t v = 8, m = 10, patch = 3, t = 24;
  const std::uint64_t layer = 4 * v + (3 * v * v + 3 * v) + (v * v + v) + (m * v + m) + (v * m + v);
  EXPECT_EQ(count(written(fmt::format(R"({{"architectures": ["LlavaOnevision2ForConditionalGeneration"],
      "text_config": {{"model_type": "qwen3", "head_dim": 8, {}}}, "vision_config": {{"hidden_size": 8,
      "intermediate_size": 10, "num_hidden_layers": 3, "patch_size": 3, "spatial_merge_size": 2}}}})",
                                      text)))
                .towers,
            v * 3 * patch * patch + 2 * v + 3 * layer + 2 * v + (16 * v * v + 4 * v) + (4 * v * t + t));
  const ModuleTree glm =
      written(R"({"architectures": ["GLM4VForCausalLM"], "model_type": "chatglm", "hidden_size": 24,
      "ffn_hidden_size": 40, "num_layers": 2, "num_attention_heads": 3, "kv_channels": 8, "padded_vocab_size": 97,
      "vision_config": {"hidden_size": 8, "intermediate_size": 10, "num_hidden_layers": 3, "patch_size": 3,
      "in_channels": 3, "num_positions": 5}})");
  const std::uint64_t glm_projector = (t * v * 4 + t) + t * t + 2 * t + 3 * t * 40 + 2 * t;
  EXPECT_EQ(count(glm).towers, (v * 3 * patch * patch + v) + v + 5 * v + 3 * layer + glm_projector);
}

// Whatever the language model calls its head comes behind the prefix, and what is tied is tied to what is there.
TEST(SightedOwnCode, AllOfTheLanguageModelComesBehindThePrefix) {
  const ModuleTree intern = written(intern_vl(language("internlm2", 32, 48, 2, 4, 2, 97), k300M));
  const Shapes shapes = shapes_of(intern);
  EXPECT_TRUE(shapes.contains("language_model.output.weight"));
  EXPECT_TRUE(shapes.contains("language_model.model.tok_embeddings.weight"));
  ParsedJson ovis = first_of("Ovis2_5");
  ovis["llm_config"]["tie_word_embeddings"] = true;
  std::size_t tied = 0;
  for_each_spec(described(ovis), [&](const TensorSpec& spec, const Occurrence&) {
    if (spec.storage != Storage::tied) return;
    ++tied;
    EXPECT_EQ(spec.name, "llm.lm_head.weight");
    EXPECT_EQ(spec.same_as, "llm.model.embed_tokens.weight");
  });
  EXPECT_EQ(tied, 1U);
}

// Llama 3.2 without its head, named as its base class alone.
TEST(SightedOwnCode, AnEmbedderHasNoHead) {
  ParsedJson document = first_of("LlamaNemotronVLModel");
  for (const bool tied : {false, true}) {
    document["text_config"]["tie_word_embeddings"] = tied;
    const ModuleTree tree = described(document);
    const Shapes shapes = shapes_of(tree);
    EXPECT_TRUE(shapes.contains("language_model.embed_tokens.weight"));
    EXPECT_TRUE(shapes.contains("language_model.layers.{layer}.self_attn.q_proj.weight"));
    EXPECT_TRUE(shapes.contains("vision_model.encoder.layers.{layer}.mlp.fc1.weight"));
    for (const auto& [name, shape] : shapes) EXPECT_EQ(name.find("lm_head"), std::string::npos) << name;
  }
}

TEST(SightedOwnCode, TheVersionOfMiniCpmTellsItsLanguageModel) {
  ParsedJson document = first_of("MiniCPMV");
  document["vision_config"] = first_of("MiniCPMO")["vision_config"];  // of which 2.0 has none
  const auto family = [&](const ParsedJson& version) {
    document["version"] = version;
    return described(document).family;
  };
  EXPECT_EQ(family(2.5), "llama");
  EXPECT_EQ(family("2.6"), "qwen2");
  EXPECT_EQ(family(4), "llama");
  EXPECT_EQ(family(4.5), "qwen3");
  EXPECT_EQ(family(nullptr), "llama");  // the first two releases name none
  for (const ParsedJson& unknown : {ParsedJson(3.0), ParsedJson("x"), ParsedJson(ParsedJson::array())})
    EXPECT_THROW(family(unknown), Error) << unknown.dump();
  document["hidden_size"] = 2304, document["query_num"] = 64;
  EXPECT_EQ(family(nullptr), "minicpm");
  EXPECT_EQ(family(2), "minicpm");
}

TEST(SightedOwnCode, WhatIsNotDescribedIsTold) {
  ParsedJson document = first_of("MiniCPMO");
  document["init_tts"] = true;
  EXPECT_EQ(described(document).not_counted.size(), 1U);
  const ParsedJson text =
      R"({"model_type": "qwen3_moe", "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
      "num_key_value_heads": 1, "head_dim": 8, "vocab_size": 97, "num_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 6})"_json;
  const ParsedJson pro = {{"architectures", {"InternS1ProForConditionalGeneration"}},
                          {"text_config", text},
                          {"vision_config", ParsedJson::object()}};
  EXPECT_EQ(described(pro).not_counted.size(), 1U);
  EXPECT_TRUE(shapes_of(described(pro)).contains("model.visual.patch_embed.proj.weight"));
  // It rotates by sums of frequencies and chooses experts by groups, which Qwen3-MoE does not.
  EXPECT_TRUE(std::holds_alternative<Error>(described(pro).read_hyperparameters));
}

TEST(SightedOwnCode, HostileConfigsAreRefused) {
  const auto refused = [](ParsedJson document, const std::string& path, const ParsedJson& value) {
    document[ParsedJson::json_pointer(path)] = value;
    EXPECT_THROW(described(document), Error) << path << " = " << value.dump();
  };
  const ParsedJson nemotron = first_of("NemotronH_Nano_VL_V2");
  refused(nemotron, "/vision_config/args/model", "vit_of_nobody");
  refused(nemotron, "/vision_config/args/teachers", "clip");
  refused(nemotron, "/vision_config/args/teachers", ParsedJson::array({1}));
  refused(nemotron, "/vision_config/args/cpe_max_size", 1);
  refused(nemotron, "/vision_config/args", nullptr);
  refused(nemotron, "/vision_config", nullptr);
  const ParsedJson kanana = first_of("KananaVForConditionalGeneration");
  refused(kanana, "/projector_config/depth", 1u << 20);
  refused(kanana, "/projector_config/depth", nullptr);
  refused(kanana, "/projector_config/mlp_depth", 0);
  const ParsedJson minicpm = first_of("MiniCPMO");
  refused(minicpm, "/audio_config", 5);
  refused(minicpm, "/audio_config/encoder_layers", 0);
  refused(minicpm, "/vision_config/num_hidden_layers", 0);
  const ParsedJson ovis = first_of("Ovis");
  refused(ovis, "/visual_tokenizer_config/vocab_size", 5);
  refused(ovis, "/visual_tokenizer_config/backbone_config/patch_size", 0);
  refused(first_of("NVLM_D"), "/vision_config/num_attention_heads", 7919);
}

}  // namespace
}  // namespace assay
