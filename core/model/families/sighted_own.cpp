// The table of models that see or hear by code of their own: names are those of their checkpoints, as vLLM 0.33 reads them.
#include "core/model/families/deepseek_ocr.h"
#include "core/model/families/hearing.h"
#include "core/model/families/sighted.h"
#include "core/model/families/sighted_parts.h"
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

using Names = std::string_view;
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
    {"Ultravox", kUltravox, kUltravoxTypes, SightedNames::own, kOwnDocument, add_ultravox, "",
     "language_model."},
};

}  // namespace

std::span<const Sighted> models_of_own_code() {
  return kOwnCodeModels;
}

}  // namespace assay::families
