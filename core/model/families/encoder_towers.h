// Image encoders that stand in front of many language models: the tensors of each below a path of the caller's, with
// the defaults of their configuration classes in transformers.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

// CLIPVisionConfig: a class token, norms before and behind the blocks.
Module clip_tower(ConfigReader& vision, std::string path);
// SiglipVisionConfig; Siglip2's keeps patches flat, as rows of a matrix, and a number of positions of its own.
enum class SiglipPatches { squares, flat };
Module siglip_tower(ConfigReader& vision, std::string path, SiglipPatches patches = SiglipPatches::squares);
// What pools a SigLIP tower's patches where vision_use_head says so: of the models here none runs it.
Module siglip_head(ConfigReader& vision);
// Idefics3VisionConfig: SigLIP's blocks over larger patches.
Module idefics3_tower(ConfigReader& vision, std::string path);
// PixtralVisionConfig: RMSNorms, gated MLPs, no biases.
Module pixtral_tower(ConfigReader& vision, std::string path);
// InternVLVisionConfig, and as OpenGVLab's own code names the same tensors.
Module internvl_tower(ConfigReader& vision, std::string path);
Module intern_vit(ConfigReader& vision, std::string path);
// Glm4vVisionConfig: convolutions before and behind the blocks, and a gated merger into the text's width.
Module glm4v_tower(ConfigReader& vision, std::string path, std::uint64_t out_default);

}  // namespace assay::families
