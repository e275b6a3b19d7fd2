// The table of models that see or hear by code of their own: names are those of their checkpoints, as vLLM 0.33 reads them.
#include "core/model/families/deepseek_ocr.h"
#include "core/model/families/hearing.h"
#include "core/model/families/sighted.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/step3.h"
#include "core/model/families/timm_towers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Whisper's encoder, of whose frames stack_factor are joined. Its language model is published apart, and stands in the
// checkpoint only where it was trained, too.
void add_ultravox(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  document.require(document.number("num_projector_layers", 0) == 0,
                   "num_projector_layers: a projector of Transformer layers is not described");
  // WhisperConfig's own defaults are those of the smallest.
  constexpr WhisperClass kClass = {.bins = 80, .hidden = 384, .layers = 4, .wide = 1536};
  add_tower(tree, whisper_encoder(*audio, "audio_tower", kClass));
  const Quantity joined = whisper_width(*audio, kClass) * document.size("stack_factor", 8);
  const Quantity hidden = document.size("hidden_size", 4096), out = text_width(tree);
  const bool gated = document.text("projector_act", "swiglu") == "swiglu";
  const Quantity middle = gated ? document.quotient(hidden, 2, "hidden_size / 2") : hidden;
  const bool mid = document.flag("projector_ln_mid", false);
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("ln_pre", joined, false)
      .matrix("linear_1", joined, hidden, false)
      .matrix("linear_2", middle, out, false)
      .norm(mid ? "ln_mid" : "ln_post", mid ? middle : out, false);
  add_tower(tree, std::move(projector));
}

// DINOv2 with registers and SigLIP, both of 224 pixels, side by side; other pairs are not published.
void add_openvla(ConfigReader& document, ModuleTree& tree) {
  document.require(document.flag("use_fused_vision_backbone", true),
                   "use_fused_vision_backbone is false: one encoder alone is not described");
  const auto ids = document.texts("timm_model_ids");
  const bool known = !ids || (ids->size() == 2 && (*ids)[0] == "vit_large_patch14_reg4_dinov2.lvd142m" &&
                              (*ids)[1] == "vit_so400m_patch14_siglip_224");
  document.require(known,
                   "timm_model_ids: only DINOv2 L/14 with registers beside SigLIP So400m is described");
  const std::string before = "vision_backbone.";
  add_tower(tree, timm_vit({.width = 1024,
                            .depth = 24,
                            .wide = 4096,
                            .patch = 14,
                            .places = 256,
                            .scaled_blocks = true,
                            .registers = 4,
                            .class_token = true},
                           before + "featurizer"));
  add_tower(tree,
            timm_vit({.width = 1152, .depth = 27, .wide = 4304, .patch = 14, .places = 256, .pooled = true},
                     before + "fused_featurizer"));
  const Quantity seen = 1024 + 1152, wide = Quantity(4) * seen, out = text_width(tree);
  Module projector{"projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("fc1", seen, wide, true)
      .matrix("fc2", wide, out, true)
      .matrix("fc3", out, out, true);
  add_tower(tree, std::move(projector));
}

using Names = std::string_view;
constexpr Names kStep3Vl[] = {"Step3VLForConditionalGeneration"}, kStep3VlTypes[] = {"step3_vl"};
constexpr Names kOpenVla[] = {"OpenVLAForActionPrediction"}, kOpenVlaTypes[] = {"openvla"};
constexpr Names kDeepseekVl2[] = {"DeepseekVLV2ForCausalLM"}, kDeepseekVl2Types[] = {"deepseek_vl_v2"};
constexpr Names kDeepseekOcr[] = {"DeepseekOCRForCausalLM", "UnlimitedOCRForCausalLM"},
                kDeepseekOcrTypes[] = {"deepseek_ocr"};
constexpr Names kUnlimitedOcr[] = {"UnlimitedOcrForConditionalGeneration"},
                kUnlimitedOcrTypes[] = {"unlimited_ocr"};
constexpr Names kDeepseekOcr2[] = {"DeepseekOCR2ForCausalLM", "DeepseekOcr2ForConditionalGeneration"},
                kDeepseekOcr2Types[] = {"deepseek_ocr2"};
constexpr Names kUltravox[] = {"UltravoxModel"}, kUltravoxTypes[] = {"ultravox"};

constexpr auto kOwnDocument = ModelConfig::Tied::document_first;
constexpr Sighted kOwnCodeModels[] = {
    {"DeepSeek-VL2", kDeepseekVl2, kDeepseekVl2Types, SightedNames::own, kOwnDocument, add_deepseek_vl2, "",
     "language."},
    {"DeepSeek-OCR, Unlimited-OCR", kDeepseekOcr, kDeepseekOcrTypes, SightedNames::as_alone, kOwnDocument,
     add_deepseek_ocr},
    {"Unlimited-OCR", kUnlimitedOcr, kUnlimitedOcrTypes, SightedNames::as_alone, kOwnDocument,
     add_unlimited_ocr},
    {"DeepSeek-OCR-2", kDeepseekOcr2, kDeepseekOcr2Types, SightedNames::as_alone, kOwnDocument,
     add_deepseek_ocr2},
    {"Step 3 with vision", kStep3Vl, kStep3VlTypes, SightedNames::as_alone, kOwnDocument, add_step3_eyes},
    {"OpenVLA", kOpenVla, kOpenVlaTypes, SightedNames::own, kOwnDocument, add_openvla, "", "language_model."},
    {"Ultravox", kUltravox, kUltravoxTypes, SightedNames::own, kOwnDocument, add_ultravox, "",
     "language_model."},
};

}  // namespace

std::span<const Sighted> models_of_own_code() {
  return kOwnCodeModels;
}

}  // namespace assay::families
