// Models that see whose code stands beside their weights, and so under the names it gives them: what each adds to its
// language model. The table of them is sighted_own_code.cpp.
#pragma once

#include "core/model/blocks.h"

namespace assay::families {

// sighted_intern.cpp: InternVL's kin.
void add_nvlm(ConfigReader& document, ModuleTree& tree);
void add_intern_s1(ConfigReader& document, ModuleTree& tree);
void add_intern_s1_pro(ConfigReader& document, ModuleTree& tree);
void add_intern_s2(ConfigReader& document, ModuleTree& tree);
// sighted_patches.cpp: towers over patches that are joined by fours before the projector.
void add_kimi_vl(ConfigReader& document, ModuleTree& tree);
void add_locate_anything(ConfigReader& document, ModuleTree& tree);
void add_opencua(ConfigReader& document, ModuleTree& tree);
void add_sarashina(ConfigReader& document, ModuleTree& tree);
void add_keye(ConfigReader& document, ModuleTree& tree);
void add_keye_1_5(ConfigReader& document, ModuleTree& tree);
void add_dots_ocr(ConfigReader& document, ModuleTree& tree);
void add_onevision2(ConfigReader& document, ModuleTree& tree);
// sighted_own_2026.cpp
void add_step_vl(ConfigReader& document, ModuleTree& tree);
void add_isaac(ConfigReader& document, ModuleTree& tree);
void add_moss_audio(ConfigReader& document, ModuleTree& tree);
void add_pangu_vl(ConfigReader& document, ModuleTree& tree);
// sighted_nvila.cpp
void add_nvila(ConfigReader& document, ModuleTree& tree);
void add_nvila_lite(ConfigReader& document, ModuleTree& tree);
void add_jet_vlm(ConfigReader& document, ModuleTree& tree);
void add_points(ConfigReader& document, ModuleTree& tree);
// sighted_ming.cpp, sighted_xgen.cpp, sighted_convnext.cpp
void add_ming(ConfigReader& document, ModuleTree& tree);
void add_xgen_mm(ConfigReader& document, ModuleTree& tree);
void add_logics(ConfigReader& document, ModuleTree& tree);
// janus_own.cpp, florence2.cpp: as their authors' own code saves them.
void add_janus_own(ConfigReader& document, ModuleTree& tree);
// vq_gan.cpp: FLUX's, that others draw with, too (ae.safetensors).
void add_flux_autoencoder(ModuleTree& tree);
std::string_view florence2_own_text(const ModelConfig& config);
void add_florence2_own(ConfigReader& document, ModuleTree& tree);
// sighted_llava.cpp
std::string_view llava_own_text(const ModelConfig& config);
void add_llava_own(ConfigReader& document, ModuleTree& tree);
// sighted_kanana.cpp
void add_kanana(ConfigReader& document, ModuleTree& tree);
// sighted_pre_normed.cpp: LLaVA-OneVision's towers behind another projector.
void add_r(ConfigReader& document, ModuleTree& tree);
void add_bee(ConfigReader& document, ModuleTree& tree);
// sighted_ovis.cpp
void add_ovis(ConfigReader& document, ModuleTree& tree);
void add_ovis_2_5(ConfigReader& document, ModuleTree& tree);
void add_andes(ConfigReader& document, ModuleTree& tree);
// sighted_minicpm.cpp
std::string_view minicpm_v_text(const ModelConfig& config);
std::string_view minicpm_o_text(const ModelConfig& config);
void add_minicpm_v_own(ConfigReader& document, ModuleTree& tree);
void add_minicpm_o(ConfigReader& document, ModuleTree& tree);
// sighted_radio.cpp: behind NVIDIA's RADIO; Eagle 2.5 behind a SigLIP.
void add_nemotron_vl(ConfigReader& document, ModuleTree& tree);
void add_llama_nemotron_vl(ConfigReader& document, ModuleTree& tree);
void add_llama_nemotron_embed(ConfigReader& document, ModuleTree& tree);
void add_eagle(ConfigReader& document, ModuleTree& tree);
// RADIO as published, "vision_model", with the mean and deviation by which pixels are normed; `args` is what it was trained
// with.
Module own_radio_tower(ConfigReader& vision, ConfigReader& args);

}  // namespace assay::families
