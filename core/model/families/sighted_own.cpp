// The table of models that see or hear by code of their own: names are those of their checkpoints, as vLLM 0.33 reads them.
#include "core/model/families/deepseek_ocr.h"
#include "core/model/families/hearing.h"
#include "core/model/families/norm_statistics.h"
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

// A side, or two of them.
std::pair<Quantity, Quantity> sides_of(ConfigReader& audio, const std::string& key, std::uint64_t published) {
  if (!audio.is_list(key)) {
    const Quantity side = audio.size(key, published);
    return {side, side};
  }
  const auto sides = audio.numbers(key);
  audio.require(sides && sides->size() == 2 && (*sides)[0] > 0 && (*sides)[1] > 0, key + " is not two sides");
  return {Quantity((*sides)[0]), Quantity((*sides)[1])};
}

// Dasheng: a ViT over patches of the spectrum, with a table of places along time and one along frequency.
Module dasheng_tower(ConfigReader& audio, const Quantity& width) {
  const auto [high, long_side] = sides_of(audio, "patch_size", 16);
  const auto [step_up, step_on] = sides_of(audio, "patch_stride", 16);
  const Quantity bins = audio.size("n_mels", 64), length = audio.size("target_length", 1012);
  audio.require(bins.value() >= step_up.value() && length.value() >= step_on.value(),
                "patch_stride is larger than the spectrum");
  const Quantity wide("embed_dim × mlp_ratio",
                      static_cast<std::uint64_t>(static_cast<double>(width.value()) *
                                                 audio.real("mlp_ratio", 4, 1e-3, 1024)));
  const bool scaled = audio.optional_real("init_values").has_value(), bias = audio.flag("qkv_bias", true);
  Module tower{"audio_encoder", "encoder of sound (Dasheng)", {}, {}, {}};
  Tower(tower, Part::audio)
      .norm("init_bn", bins, true)
      .tensor("patch_embed.proj.weight", {width, audio.size("input_channels", 1), high, long_side})
      .tensor("patch_embed.proj.bias", {width})
      .tensor("time_pos_embed", {1, width, 1, {"target_length / stride", length.value() / step_on.value()}})
      .tensor("freq_pos_embed", {1, width, {"n_mels / stride", bins.value() / step_up.value()}, 1})
      .norm("norm", width, true);
  add_norm_statistics(tower, "init_bn", bins.value());
  Module blocks = layers("blocks.{layer}", "blocks", all_layers(read_layers(audio, "depth", 12)));
  Tower block(blocks, Part::audio);
  block.norm("norm1", width, true)
      .matrix("attn.qkv", width, Quantity(3) * width, bias)
      .matrix("attn.proj", width, width, true)
      .norm("norm2", width, true)
      .matrix("mlp.fc1", width, wide, true)
      .matrix("mlp.fc2", wide, width, true);
  if (scaled) block.tensor("ls1.gamma", {width}).tensor("ls2.gamma", {width});
  tower.children = {std::move(blocks)};
  return tower;
}

void add_midasheng(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_encoder_config");
  if (!audio) return;
  const Quantity width = audio->size("embed_dim", 768), out = text_width(tree);
  add_tower(tree, dasheng_tower(*audio, width));
  Module projector{"audio_projector.net", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("0", width * document.size("subsample_factor", 5), out, true)
      .matrix("2", out, out, true);
  add_tower(tree, std::move(projector));
}

using Names = std::string_view;
constexpr Names kMidasheng[] = {"MiDashengLMModel"}, kMidashengTypes[] = {"midashenglm"};
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
    {"MiDashengLM", kMidasheng, kMidashengTypes, SightedNames::own, kOwnDocument, add_midasheng, "",
     "decoder."},
    {"OpenVLA", kOpenVla, kOpenVlaTypes, SightedNames::own, kOwnDocument, add_openvla, "", "language_model."},
    {"Ultravox", kUltravox, kUltravoxTypes, SightedNames::own, kOwnDocument, add_ultravox, "",
     "language_model."},
};

}  // namespace

std::span<const Sighted> models_of_own_code() {
  return kOwnCodeModels;
}

}  // namespace assay::families
