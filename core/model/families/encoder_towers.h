// Image encoders that stand in front of many language models: the tensors of each below a path of the caller's, with
// the defaults of their configuration classes in transformers.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

// CLIPVisionConfig: a class token, norms before and behind the blocks. Some models name a CLIP and tell none of its sizes.
struct ClipClass {
  std::uint64_t hidden = 768, patch = 32, image = 224, intermediate = 3072, layers = 12;
};
inline constexpr ClipClass kClipLarge336 = {
    .hidden = 1024, .patch = 14, .image = 336, .intermediate = 4096, .layers = 24};
Module clip_tower(ConfigReader& vision, std::string path, const ClipClass& defaults = {});
// SiglipVisionConfig; Siglip2's keeps patches flat, as rows of a matrix, and a number of positions of its own; Idefics3's
// has larger ones.
enum class SiglipPatches { squares, flat };
struct SiglipClass {
  SiglipPatches patches = SiglipPatches::squares;
  std::uint64_t hidden = 768, patch = 16, image = 224, intermediate = 3072, layers = 12;
};
// Keye-VL's, and PaddleOCR-VL's after it.
inline constexpr SiglipClass kSiglipOfKeye = {
    .hidden = 1152, .patch = 14, .image = 384, .intermediate = 4304, .layers = 27};
inline constexpr SiglipClass kSiglip2 = {.patches = SiglipPatches::flat},
                             kSiglipOfIdefics3 = {.hidden = 1152, .patch = 32};
Module siglip_tower(ConfigReader& vision, std::string path, const SiglipClass& defaults = {});
// What pools a SigLIP tower's patches where vision_use_head says so: of the models here none runs it.
Module siglip_head(ConfigReader& vision, const SiglipClass& defaults = {});
// PixtralVisionConfig: RMSNorms, gated MLPs, no biases.
enum class PixtralNames {
  transformers,
  mistrals
};  // attention.q_proj, feed_forward.gate_proj; attention.wq, feed_forward.w1
Module pixtral_tower(ConfigReader& vision, std::string path, PixtralNames names = PixtralNames::transformers);
// InternVLVisionConfig, and as OpenGVLab's own code names the same tensors.
Module internvl_tower(ConfigReader& vision, std::string path);
// NVLM-D's attention has heads that were added so that their number divides, and are stored.
Module intern_vit(ConfigReader& vision, std::string path, std::uint64_t added_heads = 0);
// Glm4vVisionConfig: convolutions before and behind the blocks, and a gated merger into the text's width.
Module glm4v_tower(ConfigReader& vision, std::string path, std::uint64_t out_default);
// GlmOcrVisionConfig: no table of positions, norms of queries and keys; the merger is `context` wide.
Module glm_ocr_tower(ConfigReader& vision, std::string path, const Quantity& context);

}  // namespace assay::families
