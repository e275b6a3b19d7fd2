#include "core/model/families/sighted.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/encoder_towers.h"
#include "core/model/families/omni.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
using namespace blocks;

Quantity text_width(const ModuleTree& tree) {
  return {"hidden_size", tree.hidden_size};
}

void add_tower(ModuleTree& tree, Module module) {
  tree.towers.push_back(std::move(module));
}

Module two_matrices(std::string path, const Quantity& in, const Quantity& between, const Quantity& out,
                    bool bias) {
  Module projector{std::move(path), "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("linear_1", in, between, bias)
      .matrix("linear_2", between, out, bias);
  return projector;
}

void add_bare(ModuleTree& tree, const std::string& name, const std::vector<Quantity>& shape) {
  Module rest{"", "", {}, {}, {}};
  Tower(rest, Part::projector).tensor(name, shape);
  add_tower(tree, std::move(rest));
}

bool add_encoder(ConfigReader& vision, ModuleTree& tree, const std::string& path,
                 std::string_view class_default) {
  const std::string type = vision.text("model_type", class_default);
  const bool squares = type == "siglip_vision_model";
  if (type == "clip_vision_model") {
    add_tower(tree, clip_tower(vision, path));
  } else if (squares || type == "siglip2_vision_model") {
    Module tower = siglip_tower(vision, path, squares ? SiglipClass() : kSiglip2);
    if (vision.flag("vision_use_head", true)) tower.children.push_back(siglip_head(vision));
    add_tower(tree, std::move(tower));
  } else if (type == "pixtral") {
    add_tower(tree, pixtral_tower(vision, path));
  } else {
    tree.not_counted.push_back({fmt::format("the vision tower ({}) and its projector", type), std::nullopt});
    return false;
  }
  return true;
}

namespace {

std::uint64_t encoder_width(std::string_view type) {
  return type == "pixtral" ? 1024 : 768;
}

// How many of the encoder's layers are joined before the projector.
Quantity feature_layers(ConfigReader& document, std::uint64_t class_default) {
  const ParsedJson& keys = document.config().document();
  const auto layers = keys.find("vision_feature_layer");
  if (layers == keys.end() || layers->is_null()) return class_default;
  return layers->is_array() ? layers->size() : 1;
}

struct LlavaForm {
  std::string_view encoder = "clip_vision_model";
  bool newline = false;      // a row that ends each row of patches
  bool normed = false;       // the projector's input
  std::uint64_t joined = 1;  // layers of the encoder
};
void add_llava_like(ConfigReader& document, ModuleTree& tree, const LlavaForm& form) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "vision_tower", form.encoder)) return;
  const Quantity hidden =
      vision->size("hidden_size", encoder_width(vision->text("model_type", form.encoder)));
  const Quantity in = feature_layers(document, form.joined) * hidden, out = text_width(tree);
  const bool bias = form.normed || document.flag("multimodal_projector_bias", true);
  Module projector = two_matrices("multi_modal_projector", in, out, out, bias);
  if (form.normed) Tower(projector, Part::projector).norm("projector_layernorm", in, true);
  add_tower(tree, std::move(projector));
  if (form.newline) add_bare(tree, "image_newline", {out});
}
void add_llava(ConfigReader& document, ModuleTree& tree) {
  add_llava_like(document, tree, {});
}
void add_llava_next(ConfigReader& document, ModuleTree& tree) {
  add_llava_like(document, tree, {.newline = true});
}
void add_llava_onevision(ConfigReader& document, ModuleTree& tree) {
  add_llava_like(document, tree, {.encoder = "siglip_vision_model", .newline = true});
}
void add_vip_llava(ConfigReader& document, ModuleTree& tree) {
  add_llava_like(document, tree, {.normed = true, .joined = 5});
}

// A tower for images and one for films, of the same sizes.
void add_video_llava(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "image_tower", "clip_vision_model") ||
      !add_encoder(*vision, tree, "video_tower", "clip_vision_model"))
    return;
  const Quantity out = text_width(tree);
  add_tower(tree, two_matrices("multi_modal_projector", vision->size("hidden_size", 768), out, out,
                               document.flag("multimodal_projector_bias", true)));
}
// No encoder: the pixels of a patch go through a matrix.
void add_fuyu(ConfigReader& document, ModuleTree& tree) {
  const Quantity patch = document.size("patch_size", 30);
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("vision_embed_tokens", patch * patch * document.size("num_channels", 3), text_width(tree),
              true);
  add_tower(tree, std::move(projector));
}

void add_paligemma(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, siglip_tower(*vision, "vision_tower"));
  if (vision->flag("vision_use_head", false)) tree.towers.back().children.push_back(siglip_head(*vision));
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("linear", vision->size("hidden_size", 768), document.size("projection_dim", 2048), true);
  add_tower(tree, std::move(projector));
}

Quantity shuffled(ConfigReader& document, TowerConfig& vision, std::string_view factor, std::uint64_t width) {
  const Quantity side = document.size(factor, 2);
  return side * side * vision->size("hidden_size", width);
}

void add_aya(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "vision_tower", "siglip_vision_model")) return;
  const Quantity in = shuffled(document, vision, "downsample_factor", 768);
  const Quantity between = document.size("alignment_intermediate_size", text_width(tree));
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("layernorm", in, true)
      .matrix("linear_1", in, between, true)
      .matrix("linear_2", Quantity("alignment_intermediate_size / 2", between.value() / 2), text_width(tree),
              true);
  add_tower(tree, std::move(projector));
}

void add_cohere2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "model.vision_tower", "siglip_vision_model")) return;
  const Quantity in = shuffled(document, vision, "downsample_factor", 768);
  const Quantity between = document.size("alignment_intermediate_size", 36864);
  Module projector{"model.multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("linear_1", in, between, true)
      .matrix("linear_2", Quantity("alignment_intermediate_size / 2", between.value() / 2), text_width(tree),
              true);
  add_tower(tree, std::move(projector));
}

void add_idefics3(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, siglip_tower(*vision, "model.vision_model", kSiglipOfIdefics3));
  Module connector{"model.connector.modality_projection", "projector", {}, {}, {}};
  Tower(connector, Part::projector)
      .matrix("proj", shuffled(document, vision, "scale_factor", 1152), text_width(tree), false);
  add_tower(tree, std::move(connector));
}

void add_lfm2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "model.vision_tower", "siglip2_vision_model")) return;
  const Quantity in = shuffled(document, vision, "downsample_factor", 768);
  Module projector =
      two_matrices("model.multi_modal_projector", in, document.size("projector_hidden_size", 2560),
                   text_width(tree), document.flag("projector_bias", true));
  if (document.flag("projector_use_layernorm", true))
    Tower(projector, Part::projector).norm("layer_norm", in, true);
  add_tower(tree, std::move(projector));
}

void add_lighton(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, pixtral_tower(*vision, "model.vision_encoder"));
  const Quantity hidden = vision->size("hidden_size", 1024), out = text_width(tree);
  const Quantity merge = document.size("spatial_merge_size", 2);
  Module projector{"model.vision_projection", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("norm", hidden, false)
      .matrix("patch_merger.merging_layer", merge * merge * hidden, hidden, false)
      .matrix("linear_1", hidden, out, false)
      .matrix("linear_2", out, out, false);
  add_tower(tree, std::move(projector));
}

void add_glm4v(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (vision) add_tower(tree, glm4v_tower(*vision, "model.visual", 4096));
}

void add_mistral3(ConfigReader& document, ModuleTree& tree) {
  add_pixtral_vision(document, tree, text_width(tree));
}

void add_video_llama(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  Module tower = siglip_tower(*vision, "model.vision_model");
  std::erase_if(tower.tensors,
                [](const TensorSpec& t) { return t.name == "embeddings.position_embedding.weight"; });
  add_tower(tree, std::move(tower));
  Module projector{"model.projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("readout.0", vision->size("hidden_size", 768), text_width(tree), true)
      .matrix("readout.2", text_width(tree), text_width(tree), true);
  add_tower(tree, std::move(projector));
}

}  // namespace

void rename(Module& module, std::string_view from, std::string_view to) {
  const auto change = [&](std::string& name) {
    if (name.starts_with(from)) name = std::string(to) + name.substr(from.size());
  };
  if (module.path + "." == from) module.path = to.substr(0, to.size() - 1);
  change(module.path);
  for (TensorSpec& spec : module.tensors) change(spec.name), change(spec.same_as);
  for (Module& child : module.children) rename(child, from, to);
}

void rename(ModuleTree& tree, std::string_view from, std::string_view to) {
  for (auto* part : {&tree.modules, &tree.mtp}) {
    for (Module& module : *part) rename(module, from, to);
  }
}

namespace {

// Whatever the language model calls its parts: InternLM2's head is "output", ChatGLM's "transformer.output_layer".
// Names are complete, paths below `outermost` relative.
void put_behind(Module& module, const std::string& prefix, bool outermost) {
  const bool named = !module.path.empty();
  if (named && outermost) module.path = prefix + module.path;
  for (TensorSpec& spec : module.tensors) {
    spec.name = prefix + spec.name;
    if (!spec.same_as.empty()) spec.same_as = prefix + spec.same_as;
  }
  for (Module& child : module.children) put_behind(child, prefix, outermost && !named);
}

void put_behind(ModuleTree& tree, const std::string& prefix) {
  for (auto* part : {&tree.modules, &tree.mtp}) {
    for (Module& module : *part) put_behind(module, prefix, true);
  }
}

void add_hyperclovax(ConfigReader& document, ModuleTree& tree) {
  add_qwen2_vision(document, tree, "model.vision_model", true);
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  Module projector{"model", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("vision_projector", vision->size("out_hidden_size", 3584), text_width(tree), true);
  add_tower(tree, std::move(projector));
  rename(tree, "lm_head.", "model.language_model.lm_head.");
  tree.aliases.push_back({"model.language_model.lm_head.", "lm_head."});
  // As naver's own code publishes it (HyperCLOVAX-SEED-Think-32B), with a tokenizer of images beside.
  tree.aliases.push_back({"model.vision_projector.", "model.mm_projector."});
  tree.aliases.push_back({"model.language_model.", "model.language_model.model."});
  if (document.config().section("discrete_vision_config"))
    tree.not_counted.push_back({"discrete_vision_model (it makes tokens of images)", std::nullopt});
}

// Qwen3-VL's encoder, with mergers deep in it; Qwen4-Exp's has none.
void add_compass(ConfigReader& document, ModuleTree& tree) {
  add_qwen_vision(document, tree, "model.visual", 3);
}
void add_qwen4(ConfigReader& document, ModuleTree& tree) {
  add_qwen_vision(document, tree, "model.visual", 0);
}

// Qwen2.5-VL's tower, whose heads share keys and values.
void add_exaone(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 3584), width = vision->size("intermediate_size", 3420);
  const Quantity heads = vision->size("num_heads", 28), kv_heads = vision->size("num_key_value_heads", 7);
  const Quantity dim = vision->quotient(hidden, heads, "hidden_size / num_heads");
  const Quantity merge = vision->size("spatial_merge_size", 2), joined = merge * merge * hidden;
  const Quantity patch = vision->size("patch_size", 14);
  Module tower{"model.visual", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_embed.proj.weight", {hidden, vision->size("in_channels|in_chans", 3),
                                          vision->size("temporal_patch_size", 2), patch, patch});
  Module blocks = layers("blocks.{layer}", "blocks", all_layers(read_layers(*vision, "depth", 32)));
  Tower(blocks, Part::vision)
      .norm("norm1", hidden, false)
      .norm("norm2", hidden, false)
      .matrix("attn.qkv", hidden, hidden + Quantity(2) * kv_heads * dim, true)
      .matrix("attn.proj", hidden, hidden, true)
      .matrix("mlp.gate_proj", hidden, width, true)
      .matrix("mlp.up_proj", hidden, width, true)
      .matrix("mlp.down_proj", width, hidden, true);
  Module merger{"merger", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm("ln_q", hidden, false)
      .matrix("mlp.0", joined, joined, true)
      .matrix("mlp.2", joined, vision->size("out_hidden_size", 3584), true);
  tower.children = {std::move(blocks), std::move(merger)};
  add_tower(tree, std::move(tower));
}

using Names = std::string_view;
constexpr Names kLlava[] = {"LlavaForConditionalGeneration"}, kLlavaTypes[] = {"llava"};
constexpr Names kLlavaNext[] = {"LlavaNextForConditionalGeneration",
                                "LlavaNextVideoForConditionalGeneration"},
                kLlavaNextTypes[] = {"llava_next", "llava_next_video"};
constexpr Names kOnevision[] = {"LlavaOnevisionForConditionalGeneration"},
                kOnevisionTypes[] = {"llava_onevision"};
constexpr Names kVip[] = {"VipLlavaForConditionalGeneration"}, kVipTypes[] = {"vipllava"};
constexpr Names kIntern[] = {"InternVLForConditionalGeneration"}, kInternTypes[] = {"internvl"};
constexpr Names kInternChat[] = {"InternVLChatModel"}, kInternChatTypes[] = {"internvl_chat"};
constexpr Names kQianfan[] = {"QianfanOCRForConditionalGeneration"}, kQianfanTypes[] = {"qianfan_ocr"};
constexpr Names kPali[] = {"PaliGemmaForConditionalGeneration"}, kPaliTypes[] = {"paligemma"};
constexpr Names kAya[] = {"AyaVisionForConditionalGeneration"}, kAyaTypes[] = {"aya_vision"};
constexpr Names kCohere2Vision[] = {"Cohere2VisionForConditionalGeneration"},
                kCohere2VisionTypes[] = {"cohere2_vision"};
constexpr Names kIdefics3[] = {"Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration"},
                kIdefics3Types[] = {"idefics3", "smolvlm"};
constexpr Names kLfm2Vl[] = {"Lfm2VlForConditionalGeneration"}, kLfm2VlTypes[] = {"lfm2_vl"};
constexpr Names kPerception[] = {"PerceptionLMForConditionalGeneration"},
                kPerceptionTypes[] = {"perception_lm"};
constexpr Names kLighton[] = {"LightOnOcrForConditionalGeneration", "LightOnOCRForConditionalGeneration"},
                kLightonTypes[] = {"lighton_ocr"};
constexpr Names kGlm4v[] = {"Glm4vForConditionalGeneration", "Glm46VForConditionalGeneration",
                            "Glm4vMoeForConditionalGeneration"},
                kGlm4vTypes[] = {"glm4v", "glm46v", "glm4v_moe"};
constexpr Names kMistral3Whole[] = {"Mistral3ForConditionalGeneration"}, kMistral3WholeTypes[] = {"mistral3"};
constexpr Names kVideoLlama[] = {"VideoLlama3ForConditionalGeneration"},
                kVideoLlamaTypes[] = {"video_llama_3"};
constexpr Names kHyperclovax[] = {"HyperCLOVAXVisionV2ForConditionalGeneration", "HCXVisionV2ForCausalLM"},
                kHyperclovaxTypes[] = {"hyperclovax_vision_v2"};
constexpr Names kOmni[] = {"Qwen2_5OmniModel", "Qwen2_5OmniForConditionalGeneration"},
                kOmniTypes[] = {"qwen2_5_omni"};
constexpr Names kOmniThinker[] = {"Qwen2_5OmniThinkerForConditionalGeneration"},
                kOmniThinkerTypes[] = {"qwen2_5_omni_thinker"};
constexpr Names kOmni3[] = {"Qwen3OmniMoeForConditionalGeneration"}, kOmni3Types[] = {"qwen3_omni_moe"};
constexpr Names kOmni3Thinker[] = {"Qwen3OmniMoeThinkerForConditionalGeneration"},
                kOmni3ThinkerTypes[] = {"qwen3_omni_moe_thinker"};
constexpr Names kExaone[] = {"Exaone4_5_ForConditionalGeneration"}, kExaoneTypes[] = {"exaone4_5"};
constexpr Names kVideoLlava[] = {"VideoLlavaForConditionalGeneration"}, kVideoLlavaTypes[] = {"video_llava"};
constexpr Names kFuyu[] = {"FuyuForCausalLM"}, kFuyuTypes[] = {"fuyu"};
constexpr Names kAriaWhole[] = {"AriaForConditionalGeneration"}, kAriaWholeTypes[] = {"aria"};
constexpr Names kBlip2[] = {"Blip2ForConditionalGeneration"}, kBlip2Types[] = {"blip-2"};
constexpr Names kInstructBlip[] = {"InstructBlipForConditionalGeneration",
                                   "InstructBlipVideoForConditionalGeneration"},
                kInstructBlipTypes[] = {"instructblip", "instructblipvideo"};
constexpr Names kIdefics2[] = {"Idefics2ForConditionalGeneration"}, kIdefics2Types[] = {"idefics2"};
constexpr Names kGotOcr2[] = {"GotOcr2ForConditionalGeneration"},
                kGotOcr2Types[] = {"got_ocr2", "pp_chart2table"};
constexpr Names kDeepseekVl[] = {"DeepseekVLForConditionalGeneration"}, kDeepseekVlTypes[] = {"deepseek_vl"};
constexpr Names kDeepseekHybrid[] = {"DeepseekVLHybridForConditionalGeneration"},
                kDeepseekHybridTypes[] = {"deepseek_vl_hybrid"};
constexpr Names kJanus[] = {"JanusForConditionalGeneration"}, kJanusTypes[] = {"janus"};
constexpr Names kMiniCpmV[] = {"MiniCPMV4_6ForConditionalGeneration", "MiniCPMV4_7ForConditionalGeneration",
                               "MiniCPMOcrForConditionalGeneration"},
                kMiniCpmVTypes[] = {"minicpmv4_6", "minicpmv4_7", "minicpm_ocr"};
constexpr Names kNemotronOmni[] = {"NemotronH_Omni_Reasoning_V3", "NemotronH_Nano_Omni_Reasoning_V3"},
                kNemotronOmniTypes[] = {"nemotron_h_omni", "NemotronH_Nano_Omni_Reasoning_V3"};
constexpr Names kOvis2[] = {"Ovis2ForConditionalGeneration"}, kOvis2Types[] = {"ovis2"};
constexpr Names kLfm3Vl[] = {"Lfm3VlForConditionalGeneration"}, kLfm3VlTypes[] = {"lfm3_vl"};
constexpr Names kInklingWhole[] = {"InklingForConditionalGeneration"},
                kInklingWholeTypes[] = {"inkling_mm_model"};
constexpr Names kInkling2Whole[] = {"Inkling2ForConditionalGeneration",
                                    "Inkling2LoopForConditionalGeneration"},
                kInkling2WholeTypes[] = {"inkling2", "inkling2_loop"};

constexpr Names kFlorence2[] = {"Florence2ForConditionalGeneration"}, kFlorence2Types[] = {"florence2"};
constexpr Names kHyV4Vl[] = {"HYV4VLForConditionalGeneration"}, kHyV4VlTypes[] = {"hy_v4_vl"};

constexpr Names kEmu3Whole[] = {"Emu3ForConditionalGeneration"}, kEmu3WholeTypes[] = {"emu3"};
constexpr Names kFastVlm[] = {"FastVlmForConditionalGeneration"}, kFastVlmTypes[] = {"fast_vlm"};
constexpr Names kDocling[] = {"GraniteDoclingForConditionalGeneration"},
                kDoclingTypes[] = {"granite_docling"};
constexpr Names kCompassWhole[] = {"CohereCompassForConditionalGeneration"},
                kCompassWholeTypes[] = {"cohere_compass"};
constexpr Names kQwen4Whole[] = {"Qwen4ExpForConditionalGeneration"}, kQwen4WholeTypes[] = {"qwen4_exp"};
constexpr Names kGranite4[] = {"Granite4VisionForConditionalGeneration"},
                kGranite4Types[] = {"granite4_vision"};

Names text_is_granite(const ModelConfig&) {
  return "granite";
}
Names text_is_docling(const ModelConfig&) {
  return "granite_docling_text";
}
Names text_is_emu3(const ModelConfig&) {
  return "emu3";
}

constexpr auto kFirst = SightedNames::language_model_first;
constexpr auto kModel = SightedNames::model_first;
constexpr auto kDocument = ModelConfig::Tied::document_first, kEither = ModelConfig::Tied::either;
constexpr Sighted kSighted[] = {
    {"LLaVA", kLlava, kLlavaTypes, kFirst, kDocument, add_llava},
    {"LLaVA-NeXT", kLlavaNext, kLlavaNextTypes, kFirst, kDocument, add_llava_next},
    {"LLaVA-OneVision", kOnevision, kOnevisionTypes, kFirst, kEither, add_llava_onevision},
    {"ViP-LLaVA", kVip, kVipTypes, kFirst, kDocument, add_vip_llava},
    {"InternVL 3", kIntern, kInternTypes, kFirst, kDocument, add_internvl},
    {"InternVL 2 to 3.5, as published", kInternChat, kInternChatTypes, kFirst, kDocument, add_internvl_chat},
    {"Qianfan-OCR", kQianfan, kQianfanTypes, kFirst, kDocument, add_internvl_chat},
    {"PaliGemma", kPali, kPaliTypes, kFirst, kDocument, add_paligemma},
    {"Aya Vision", kAya, kAyaTypes, kFirst, kDocument, add_aya},
    {"Command A Vision", kCohere2Vision, kCohere2VisionTypes, kModel, kDocument, add_cohere2},
    {"Idefics3, SmolVLM", kIdefics3, kIdefics3Types, SightedNames::text_model, kDocument, add_idefics3},
    {"LFM2-VL", kLfm2Vl, kLfm2VlTypes, kModel, kDocument, add_lfm2},
    {"Perception LM", kPerception, kPerceptionTypes, kModel, kDocument, add_perception},
    {"LightOnOCR", kLighton, kLightonTypes, kModel, kDocument, add_lighton},
    {"GLM-4.1V, 4.5V, 4.6V", kGlm4v, kGlm4vTypes, kModel, kEither, add_glm4v},
    {"Mistral 3 with vision", kMistral3Whole, kMistral3WholeTypes, kFirst, kEither, add_mistral3},
    {"VideoLLaMA 3", kVideoLlama, kVideoLlamaTypes, kModel, kEither, add_video_llama},
    {"EXAONE 4.5", kExaone, kExaoneTypes, kModel, kDocument, add_exaone},
    {"Qwen2.5-Omni", kOmni, kOmniTypes, SightedNames::thinker, kDocument, add_omni_whole, "", "", nullptr,
     true, add_omni_talker},
    {"Qwen2.5-Omni's thinker", kOmniThinker, kOmniThinkerTypes, SightedNames::as_alone, kDocument,
     add_omni_thinker},
    {"Qwen3-Omni", kOmni3, kOmni3Types, SightedNames::thinker, kDocument, add_omni3_whole, "", "", nullptr,
     true, add_omni3_talker},
    {"Qwen3-Omni's thinker", kOmni3Thinker, kOmni3ThinkerTypes, SightedNames::as_alone, kDocument,
     add_omni3_thinker},
    {"Video-LLaVA", kVideoLlava, kVideoLlavaTypes, kFirst, kDocument, add_video_llava},
    {"Fuyu", kFuyu, kFuyuTypes, kFirst, kDocument, add_fuyu},
    {"Aria", kAriaWhole, kAriaWholeTypes, kFirst, kDocument, add_aria},
    {"BLIP-2", kBlip2, kBlip2Types, kFirst, kDocument, add_blip2},
    {"InstructBLIP", kInstructBlip, kInstructBlipTypes, kFirst, kDocument, add_instructblip},
    {"Idefics2", kIdefics2, kIdefics2Types, SightedNames::text_model, kDocument, add_idefics2},
    {"GOT-OCR2", kGotOcr2, kGotOcr2Types, kFirst, kDocument, add_got_ocr2},
    {"DeepSeek-VL", kDeepseekVl, kDeepseekVlTypes, kModel, kDocument, add_deepseek_vl},
    {"DeepSeek-VL with SAM", kDeepseekHybrid, kDeepseekHybridTypes, kModel, kDocument,
     add_deepseek_vl_hybrid},
    {"Janus", kJanus, kJanusTypes, kModel, kDocument, add_janus},
    {"MiniCPM-V 4.6, 4.7, MiniCPM-OCR", kMiniCpmV, kMiniCpmVTypes, kModel, kDocument, add_minicpm_v},
    {"Nemotron 3 Omni", kNemotronOmni, kNemotronOmniTypes, kFirst, kDocument, add_nemotron_omni},
    {"Inkling", kInklingWhole, kInklingWholeTypes, SightedNames::as_alone, kDocument, add_inkling_towers},
    {"Inkling 2", kInkling2Whole, kInkling2WholeTypes, SightedNames::as_alone, kDocument,
     add_inkling2_vision},
    {"LFM3-VL", kLfm3Vl, kLfm3VlTypes, kModel, kDocument, add_lfm3_vl},
    {"Florence-2", kFlorence2, kFlorence2Types, kModel, ModelConfig::Tied::document_ties, add_florence2},
    {"HY4 with vision", kHyV4Vl, kHyV4VlTypes, SightedNames::as_alone, kDocument, add_hy_v4_vision},
    {"Ovis2", kOvis2, kOvis2Types, kModel, kDocument, add_ovis2},
    {"Emu3", kEmu3Whole, kEmu3WholeTypes, SightedNames::own, kDocument, add_emu3_vq, "", "text_model.",
     text_is_emu3},
    {"FastVLM", kFastVlm, kFastVlmTypes, kModel, kEither, add_fast_vlm},
    {"Granite Docling", kDocling, kDoclingTypes, SightedNames::text_model, ModelConfig::Tied::document_ties,
     add_granite_docling, "", "", text_is_docling},
    {"Granite 4 Vision", kGranite4, kGranite4Types, kModel, kDocument, add_granite4_vision, "", "",
     text_is_granite},
    {"Cohere Compass with vision", kCompassWhole, kCompassWholeTypes, kModel, kDocument, add_compass},
    {"Qwen4-Exp with vision", kQwen4Whole, kQwen4WholeTypes, kModel, kDocument, add_qwen4},
    {"HyperCLOVA X with vision", kHyperclovax, kHyperclovaxTypes, kModel, kDocument, add_hyperclovax},
};

bool contains(std::span<const std::string_view> list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// "model." of a Llama's "model.layers.{layer}": what the base class's own names have no need of.
std::string base_of(const ModuleTree& tree) {
  for (const Module& module : tree.modules) {
    if (module.path.find("{layer}") != std::string::npos)
      return module.path.substr(0, module.path.find('.') + 1);
  }
  return "model.";
}

bool is_told(const Sighted& sighted, const ModelConfig& config) {
  if (sighted.told_by[0].empty()) return true;
  const auto section = config.document().find(sighted.told_by[0]);
  return section != config.document().end() && section->is_object() && section->contains(sighted.told_by[1]);
}

}  // namespace

const Sighted* find_sighted(const ModelConfig& config) {
  for (const std::span<const Sighted> table :
       {sighted_own_code(), std::span<const Sighted>(kSighted), models_that_hear(), models_of_own_code(),
        models_run_locally()}) {
    for (const Sighted& sighted : table) {
      if (config.nested_in().empty() && sighted.text_family == nullptr) continue;
      if (!sighted.within.empty() && sighted.within != config.nested_in()) continue;
      if (!is_told(sighted, config)) continue;
      if (contains(sighted.architectures, config.architecture())) return &sighted;
      if (config.architecture().empty() && contains(sighted.model_types, config.model_type()))
        return &sighted;
    }
  }
  return nullptr;
}

void add_sight(const Sighted* sighted, const ModelConfig& config, ModuleTree& tree) {
  const auto names = sighted == nullptr ? SightedNames::model_first : sighted->names;
  const std::string base = base_of(tree), first = "language_model." + base, second = "model.language_model.";
  tree.towers.clear();
  tree.aliases.clear();
  if (names == SightedNames::language_model_first) {
    put_behind(tree, "language_model.");
    tree.aliases = {{first, second},
                    {"language_model.lm_head.", "lm_head."},
                    {"vision_tower.", "model.vision_tower."},
                    {"vision_tower.", "vision_tower.vision_model."},
                    {"audio_tower.", "model.audio_tower."},
                    {"multi_modal_projector.", "model.multi_modal_projector."},
                    {"image_newline", "model.image_newline"}};
  } else if (names == SightedNames::text_model) {
    rename(tree, base, "model.text_model.");
  } else if (names == SightedNames::thinker) {
    put_behind(tree, "thinker.");
  } else if (names == SightedNames::own) {
    put_behind(tree, std::string(sighted->before));
  } else if (names == SightedNames::headless) {
    rename(tree, base, "language_model.");
  } else if (names == SightedNames::model_first) {
    rename(tree, base, second);
    tree.aliases = {{second, first}, {"lm_head.", "language_model.lm_head."}};
  }
  const std::string language = tree.title;
  if (sighted == nullptr) {
    tree.title = fmt::format("{} within {}", language, tree.architecture);
    tree.not_counted.push_back(
        {fmt::format("what {} has beside its language model: it is not described here", tree.architecture),
         std::nullopt});
    return;
  }
  tree.title = fmt::format("{} over {}", sighted->title, language);
  // thinker_config.text_config stands beside thinker_config.vision_config.
  const std::size_t inside = config.nested_in().find('.');
  const auto around =
      inside == std::string::npos ? std::nullopt : config.section(config.nested_in().substr(0, inside));
  const ModelConfig outer = around ? *around : config.document_only();
  ConfigReader document(outer, sighted->title);
  sighted->add_towers(document, tree);
  if (sighted->add_beside == nullptr) return;
  const ModelConfig whole = config.document_only();
  ConfigReader reader(whole, sighted->title);
  sighted->add_beside(reader, tree);
}

}  // namespace assay::families
