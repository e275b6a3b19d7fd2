// InternVL and its kin: an InternViT, patches that a shuffle joins, and two matrices. As transformers has it, as OpenGVLab
// publishes it (modeling_internvl_chat.py), NVLM-D, Intern-S1; Intern-S1-Pro and S2 see through Qwen's towers.
#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// InternVL joins patches before the projector: 1 / downsample_ratio on each side.
Quantity joined_patches(ConfigReader& document, TowerConfig& vision) {
  const auto side = static_cast<std::uint64_t>(1 / document.real("downsample_ratio", 0.5, 1e-3, 1));
  return Quantity(side * side) * vision->size("hidden_size", 1024);
}

// Under `before` as transformers' class names them.
void add_internvl_under(ConfigReader& document, ModuleTree& tree, const std::string& before) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, internvl_tower(*vision, before + "vision_tower"));
  const Quantity in = joined_patches(document, vision), out = text_width(tree);
  Module projector = two_matrices(before + "multi_modal_projector", in, out, out, true);
  Tower(projector, Part::projector).norm("layer_norm", in, true);
  add_tower(tree, std::move(projector));
}

// A norm and two matrices in a list.
Module mlp1(const Quantity& in, const Quantity& between, const Quantity& out, bool bias) {
  Module projector{"mlp1", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("0", in, true)
      .matrix("1", in, between, bias)
      .matrix("3", between, out, bias);
  return projector;
}

}  // namespace

void add_internvl(ConfigReader& document, ModuleTree& tree) {
  add_internvl_under(document, tree, "");
}

void add_internvl_chat(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, intern_vit(*vision, "vision_model"));
  add_tower(tree, mlp1(joined_patches(document, vision), text_width(tree), text_width(tree), true));
}

// Seven heads were added to the tower's 25, and the projector is as wide as the language model's MLPs.
void add_nvlm(ConfigReader& document, ModuleTree& tree) {
  constexpr std::uint64_t kAddedHeads = 7;  // vLLM 0.33, nvlm_d.py
  TowerConfig vision(document, tree, "vision_config"), text(document, tree, "llm_config");
  if (!vision || !text) return;
  add_tower(tree, intern_vit(*vision, "vision_model", vision->number("num_dummy_heads", kAddedHeads)));
  const Quantity between = text->size("intermediate_size");
  add_tower(tree, mlp1(joined_patches(document, vision), between, text_width(tree), false));
}

void add_intern_s1(ConfigReader& document, ModuleTree& tree) {
  add_internvl_under(document, tree, "model.");
}

// Qwen3-VL's tower; what engines pass by is told, and not counted.
void add_intern_s1_pro(ConfigReader& document, ModuleTree& tree) {
  add_qwen_vision(document, tree, "model.visual", 0);
  tree.not_counted.push_back(
      {"coefficients of its rotation (model.language_model.rotary_emb), and the encoder of time series",
       std::nullopt});
}

void add_intern_s2(ConfigReader& document, ModuleTree& tree) {
  add_qwen_vision(document, tree, "model.visual", 0);
  tree.not_counted.push_back(
      {"what it does with time series (model.time_series, time_series_forecaster)", std::nullopt});
}

}  // namespace assay::families
