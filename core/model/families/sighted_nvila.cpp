// Models over a Qwen2 or a Jet-Nemotron as SGLang 0.5.23 loads them: NVILA and NVILA-Lite (nvila.py, nvila_lite.py), Jet-VLM
// (jet_vlm.py), whose SigLIP's patches are joined by fours or nines, and POINTS 1.5 (points_v15_chat.py) behind Qwen2-VL's encoder.
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// Several scales of an image lie side by side: `seen` is as wide as all of them.
void add_joined(ConfigReader& document, ModuleTree& tree, const Quantity& seen) {
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  if (!add_encoder(*vision, tree, "vision_tower.vision_model", "siglip_vision_model")) return;
  tree.aliases.push_back({"vision_tower.vision_model.", "vision_tower."});
  const Quantity joined = Quantity(4) * seen, out = text_width(tree);
  Module projector{"mm_projector.layers", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("1", joined, true)
      .matrix("2", joined, out, true)
      .matrix("4", out, out, true);
  add_tower(tree, std::move(projector));
}

}  // namespace

void add_nvila(ConfigReader& document, ModuleTree& tree) {
  add_joined(document, tree, std::uint64_t{3} * 1152);
}

void add_jet_vlm(ConfigReader& document, ModuleTree& tree) {
  add_joined(document, tree, 1152);
}

void add_nvila_lite(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  if (!add_encoder(*vision, tree, "vision_tower.vision_model", "siglip_vision_model")) return;
  tree.aliases.push_back({"vision_tower.vision_model.", "vision_tower."});
  const Quantity seen = 1152, joined = Quantity(9) * seen, between = Quantity(3) * seen,
                 out = text_width(tree);
  Module projector{"mm_projector.layers", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("1", joined, true)
      .matrix("2", joined, between, true)
      .norm("4", between, true)
      .matrix("5", between, out, true)
      .matrix("7", out, out, true);
  add_tower(tree, std::move(projector));
}

// The encoder's own merger is stored, and not met.
void add_points(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  add_qwen2_vision(document, tree, "vision_encoder", false);
  const Quantity seen = 1280, joined = Quantity(4) * seen;
  Module projector{"vision_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("ln_q", seen, true)
      .matrix("mlp.0", joined, joined, true)
      .matrix("mlp.2", joined, text_width(tree), true);
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
