// The table of models that see whose code stands beside their weights (sighted_own_code.h).
#include "core/model/families/sighted_own_code.h"

#include "core/model/families/sighted.h"
#include "core/model/families/sighted_parts.h"

namespace assay::families {
namespace {

using Names = std::string_view;
constexpr Names kH2o[] = {"H2OVLChatModel"}, kH2oTypes[] = {"h2ovl_chat"};
constexpr Names kSkyworkR1v[] = {"SkyworkR1VChatModel", "SkyworkChatModel"},
                kSkyworkR1vTypes[] = {"skywork_chat"};
constexpr Names kNvlm[] = {"NVLM_D"}, kNvlmTypes[] = {"NVLM_D"};
constexpr Names kInternS1[] = {"InternS1ForConditionalGeneration"}, kInternS1Types[] = {"interns1"};
constexpr Names kInternS1Pro[] = {"InternS1ProForConditionalGeneration"},
                kInternS1ProTypes[] = {"interns1_pro"};
constexpr Names kInternS2[] = {"InternS2PreviewForConditionalGeneration"},
                kInternS2Types[] = {"intern_s2_preview", "interns2_preview"};
constexpr Names kKimiVl[] = {"KimiVLForConditionalGeneration"}, kKimiVlTypes[] = {"kimi_vl"};
constexpr Names kLocate[] = {"LocateAnythingForConditionalGeneration"}, kLocateTypes[] = {"locateanything"};
constexpr Names kLlavaOwn[] = {"LlavaLlamaForCausalLM", "LlavaMistralForCausalLM", "LlavaQwenForCausalLM",
                               "LlavaQwen2ForCausalLM"},
                kLlavaOwnTypes[] = {"llava_llama", "llava_mistral", "llava_qwen", "llava_qwen2"};
constexpr Names kOpencua[] = {"OpenCUAForConditionalGeneration"}, kOpencuaTypes[] = {"opencua"};
constexpr Names kKeye[] = {"KeyeForConditionalGeneration"}, kKeyeTypes[] = {"Keye"};
constexpr Names kKeye15[] = {"KeyeVL1_5ForConditionalGeneration"}, kKeye15Types[] = {"KeyeVL1_5"};
constexpr Names kDotsOcr[] = {"DotsOCRForCausalLM"}, kDotsOcrTypes[] = {"dots_ocr"};
constexpr Names kOnevision2[] = {"LlavaOnevision2ForConditionalGeneration"},
                kOnevision2Types[] = {"llava_onevision2"};
constexpr Names kKanana[] = {"KananaVForConditionalGeneration"}, kKananaTypes[] = {"kanana-1.5-v"};
constexpr Names kR[] = {"RForConditionalGeneration"}, kRTypes[] = {"R"};
constexpr Names kBee[] = {"BeeForConditionalGeneration"}, kBeeTypes[] = {"bee"};
constexpr Names kOvis[] = {"Ovis"}, kOvisTypes[] = {"ovis"};
constexpr Names kOvis25[] = {"Ovis2_5", "Ovis2_6ForCausalLM", "Ovis2_6_MoeForCausalLM"},
                kOvis25Types[] = {"ovis2_5", "ovis2_6", "ovis2_6_moe"};
constexpr Names kMiniCpmVOwn[] = {"MiniCPMV"}, kMiniCpmVOwnTypes[] = {"minicpmv"};
constexpr Names kMiniCpmO[] = {"MiniCPMO"}, kMiniCpmOTypes[] = {"minicpmo"};
constexpr Names kNemotronVl[] = {"NemotronH_Nano_VL_V2"}, kNemotronVlTypes[] = {"NemotronH_Nano_VL_V2"};
constexpr Names kSuperOmni[] = {"NemotronH_Super_Omni_Reasoning_V3"},
                kSuperOmniTypes[] = {"NemotronH_Super_Omni_Reasoning_V3"};
constexpr Names kLlamaNemotron[] = {"Llama_Nemotron_Nano_VL"},
                kLlamaNemotronTypes[] = {"Llama_Nemotron_Nano_VL"};
constexpr Names kNemotronEmbed[] = {"LlamaNemotronVLModel"}, kNemotronEmbedTypes[] = {"llama_nemotron_vl"};
constexpr Names kSarashina[] = {"Sarashina2VisionForCausalLM"}, kSarashinaTypes[] = {"sarashina2_vision"};
constexpr Names kEagle[] = {"Eagle2_5_VLForConditionalGeneration"}, kEagleTypes[] = {"eagle_2_5_vl"};
constexpr Names kJanusOwn[] = {"MultiModalityCausalLM"}, kJanusOwnTypes[] = {"multi_modality"};
constexpr Names kFlorence2Own[] = {"Florence2ForConditionalGeneration"}, kFlorence2OwnTypes[] = {"florence2"};
constexpr Names kAndes[] = {"AndesVLForConditionalGeneration"}, kAndesTypes[] = {"andesvl-aimv2-qwen3"};

constexpr Names kStepVl[] = {"StepVLForConditionalGeneration"};
constexpr Names kMossAudio[] = {"MossAudioModel"}, kMossAudioTypes[] = {"moss_audio"};
constexpr Names kPanguVl[] = {"OpenPanguVLForConditionalGeneration"}, kPanguVlTypes[] = {"openpangu_vl"};
constexpr Names kLogics[] = {"LogicsForConditionalGeneration"}, kLogicsTypes[] = {"logics"};
constexpr Names kNvila[] = {"NVILAForConditionalGeneration"}, kNvilaTypes[] = {"nvila"};
constexpr Names kNvilaLite[] = {"NVILALiteForConditionalGeneration"}, kNvilaLiteTypes[] = {"nvila_lite"};
constexpr Names kJetVlm[] = {"JetVLMForConditionalGeneration"}, kJetVlmTypes[] = {"jet_vlm"};
constexpr Names kPoints[] = {"POINTSV15ChatModel"}, kPointsTypes[] = {"pointsv1.5_chat"};
constexpr Names kDotsVlm[] = {"DotsVLMForCausalLM"}, kDotsVlmTypes[] = {"dots_vlm"};
constexpr Names kMing[] = {"BailingMMNativeForConditionalGeneration"}, kMingTypes[] = {"bailingmm"};
constexpr Names kXgenMm[] = {"XGenMMModelForConditionalGeneration"}, kXgenMmTypes[] = {"xgenmm"};
constexpr Names kIsaac[] = {"IsaacForConditionalGeneration"}, kIsaacTypes[] = {"isaac"};

// The language models of those whose configs are flat, or name a type of their own.
Names text_is_llama(const ModelConfig&) {
  return "llama";
}
Names text_is_pangu(const ModelConfig&) {
  return "pangu_embedded";
}
Names text_is_jet(const ModelConfig&) {
  return "jet_nemotron";
}
Names text_is_deepseek3(const ModelConfig&) {
  return "deepseek_v3";
}
Names text_is_qwen2(const ModelConfig&) {
  return "qwen2";
}
Names text_is_qwen3(const ModelConfig&) {
  return "qwen3";
}
Names text_is_qwen3_moe(const ModelConfig&) {
  return "qwen3_moe";
}
Names text_is_qwen3_5_moe(const ModelConfig&) {
  return "qwen3_5_moe";
}

constexpr auto kBehindLanguage = SightedNames::language_model_first;
constexpr auto kBehindModel = SightedNames::model_first;
constexpr auto kAsAlone = SightedNames::as_alone;
constexpr auto kBehindLlm = SightedNames::own;  // "llm."
constexpr auto kDocumentTies = ModelConfig::Tied::document_first;
constexpr Sighted kOwnCode[] = {
    {"H2OVL", kH2o, kH2oTypes, kBehindLanguage, kDocumentTies, add_internvl_chat},
    {"Skywork-R1V", kSkyworkR1v, kSkyworkR1vTypes, kBehindLanguage, kDocumentTies, add_internvl_chat},
    {"NVLM-D", kNvlm, kNvlmTypes, kBehindLanguage, kDocumentTies, add_nvlm},
    {"Intern-S1", kInternS1, kInternS1Types, kBehindModel, kDocumentTies, add_intern_s1},
    {"Intern-S1-Pro", kInternS1Pro, kInternS1ProTypes, kBehindModel, kDocumentTies, add_intern_s1_pro, "", "",
     text_is_qwen3_moe, false},
    {"Intern-S2", kInternS2, kInternS2Types, kBehindModel, kDocumentTies, add_intern_s2, "", "",
     text_is_qwen3_5_moe},
    {"Kimi-VL", kKimiVl, kKimiVlTypes, kBehindLanguage, kDocumentTies, add_kimi_vl},
    {"LocateAnything", kLocate, kLocateTypes, kBehindLanguage, kDocumentTies, add_locate_anything},
    {"LLaVA, as its own code saves it", kLlavaOwn, kLlavaOwnTypes, kAsAlone, kDocumentTies, add_llava_own, "",
     "", llava_own_text},
    {"OpenCUA", kOpencua, kOpencuaTypes, kBehindLanguage, kDocumentTies, add_opencua, "", "", text_is_qwen2},
    {"Keye-VL", kKeye, kKeyeTypes, kAsAlone, kDocumentTies, add_keye, "", "", text_is_qwen3},
    {"Keye-VL 1.5", kKeye15, kKeye15Types, kAsAlone, kDocumentTies, add_keye_1_5, "", "", text_is_qwen3},
    {"dots.ocr", kDotsOcr, kDotsOcrTypes, kAsAlone, kDocumentTies, add_dots_ocr, "", "", text_is_qwen2},
    {"LLaVA-OneVision 2", kOnevision2, kOnevision2Types, kBehindModel, kDocumentTies, add_onevision2, "", "",
     text_is_qwen3},
    {"Kanana-1.5-V", kKanana, kKananaTypes, kBehindLanguage, kDocumentTies, add_kanana, "", "",
     text_is_llama},
    {"R-4B", kR, kRTypes, kBehindLanguage, kDocumentTies, add_r},
    {"Bee", kBee, kBeeTypes, kBehindLanguage, kDocumentTies, add_bee},
    {"Ovis 1.6, 2, as published", kOvis, kOvisTypes, kBehindLlm, kDocumentTies, add_ovis, "", "llm."},
    {"Ovis 2.5, 2.6", kOvis25, kOvis25Types, kBehindLlm, kDocumentTies, add_ovis_2_5, "", "llm."},
    {"MiniCPM-V", kMiniCpmVOwn, kMiniCpmVOwnTypes, kBehindLlm, kDocumentTies, add_minicpm_v_own, "", "llm.",
     minicpm_v_text},
    {"MiniCPM-o", kMiniCpmO, kMiniCpmOTypes, kBehindLlm, kDocumentTies, add_minicpm_o, "", "llm.",
     minicpm_o_text},
    {"Nemotron Nano VL 2", kNemotronVl, kNemotronVlTypes, kBehindLanguage, kDocumentTies, add_nemotron_vl},
    {"Nemotron 3 Super Omni", kSuperOmni, kSuperOmniTypes, kBehindLanguage, kDocumentTies, add_nemotron_omni},
    {"Llama Nemotron Nano VL", kLlamaNemotron, kLlamaNemotronTypes, kBehindLanguage, kDocumentTies,
     add_llama_nemotron_vl},
    {"Llama Nemotron Embed VL", kNemotronEmbed, kNemotronEmbedTypes, SightedNames::headless, kDocumentTies,
     add_llama_nemotron_embed, "", "", text_is_llama, false},
    {"Sarashina2 Vision", kSarashina, kSarashinaTypes, kBehindLlm, kDocumentTies, add_sarashina, "", "llm.",
     text_is_llama},
    {"Step3-VL", kStepVl, {}, kAsAlone, kDocumentTies, add_step_vl},
    {"MOSS-Audio", kMossAudio, kMossAudioTypes, SightedNames::headless, ModelConfig::Tied::either,
     add_moss_audio, "", "", text_is_qwen3},
    {"openPangu-VL", kPanguVl, kPanguVlTypes, kBehindModel, kDocumentTies, add_pangu_vl, "", "",
     text_is_pangu, false},
    {"Logics-Thinking", kLogics, kLogicsTypes, kAsAlone, kDocumentTies, add_logics, "", "", text_is_qwen3},
    {"NVILA", kNvila, kNvilaTypes, kBehindLlm, kDocumentTies, add_nvila, "", "llm."},
    {"NVILA-Lite", kNvilaLite, kNvilaLiteTypes, kBehindLlm, kDocumentTies, add_nvila_lite, "", "llm."},
    {"Jet-VLM", kJetVlm, kJetVlmTypes, kBehindLlm, kDocumentTies, add_jet_vlm, "", "llm.", text_is_jet},
    {"POINTS 1.5", kPoints, kPointsTypes, kBehindLlm, kDocumentTies, add_points, "", "llm.", text_is_qwen2},
    {"dots.vlm1", kDotsVlm, kDotsVlmTypes, kAsAlone, kDocumentTies, add_dots_ocr, "", "", text_is_deepseek3},
    {"Ming-Lite-Omni", kMing, kMingTypes, kBehindLlm, kDocumentTies, add_ming, "", "model.", nullptr, false},
    {"xGen-MM", kXgenMm, kXgenMmTypes, kBehindLlm, kDocumentTies, add_xgen_mm, "", "vlm.lang_model.", nullptr,
     false},
    {"Isaac", kIsaac, kIsaacTypes, kAsAlone, kDocumentTies, add_isaac, "", "", text_is_qwen3},
    {"Janus, JanusFlow, DeepSeek-VL, as published", kJanusOwn, kJanusOwnTypes, kBehindLanguage, kDocumentTies,
     add_janus_own},
    {.title = "Florence-2, as published",
     .architectures = kFlorence2Own,
     .model_types = kFlorence2OwnTypes,
     .names = kBehindLanguage,
     .tied = ModelConfig::Tied::document_ties,
     .add_towers = add_florence2_own,
     .text_family = florence2_own_text,
     .told_by = {"vision_config", "dim_embed"}},
    {"AndesVL", kAndes, kAndesTypes, kBehindLanguage, kDocumentTies, add_andes},
    {"Eagle 2.5", kEagle, kEagleTypes, kBehindLanguage, kDocumentTies, add_eagle},
};

}  // namespace

std::span<const Sighted> sighted_own_code() {
  return kOwnCode;
}

}  // namespace assay::families
