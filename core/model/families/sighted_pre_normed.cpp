// R-4B and Bee: LLaVA-OneVision with a projector that norms each patch first. Names as vLLM 0.33 loads them (rvl.py,
// bee.py).
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// `times` the language model's width between its two matrices.
void add_pre_normed(ConfigReader& document, ModuleTree& tree, std::uint64_t times) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "vision_tower", "siglip_vision_model")) return;
  const Quantity in = vision->size("hidden_size", 768), out = text_width(tree);
  Module projector = two_matrices("multi_modal_projector", in, Quantity(times) * out, out, true);
  Tower(projector, Part::projector).norm("pre_norm", in, true);
  add_tower(tree, std::move(projector));
  add_bare(tree, "image_newline", {out});
}

}  // namespace

void add_r(ConfigReader& document, ModuleTree& tree) {
  add_pre_normed(document, tree, 1);
}

void add_bee(ConfigReader& document, ModuleTree& tree) {
  add_pre_normed(document, tree, 4);
}

}  // namespace assay::families
