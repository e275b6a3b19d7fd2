// Kanana-1.5-V: Qwen2-VL's tower without its merger, and in its place a C-abstractor (Honeybee): stages of RegNet's
// blocks before and behind the joining of patches. Names as vLLM 0.33 (kanana_v.py) and timm's RegStage have them.
#include <cmath>

#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

void convolve_normed(Tower& tower, const std::string& name, const Quantity& in, const Quantity& out,
                     std::uint64_t side) {
  tower.tensor(name + ".conv.weight", {out, in, side, side}).norm(name + ".bn", out, true);
}

// A bottleneck as wide as what it gives, each channel convolved alone, under a gate by squeeze and excitation that is a
// quarter of its input's width (to the nearest even number, as Python rounds halves).
void add_regnet_block(Tower& tower, const std::string& path, const Quantity& in, const Quantity& out) {
  const auto quarter = static_cast<std::uint64_t>(std::nearbyint(static_cast<double>(in.value()) / 4));
  const Quantity squeezed(in.symbols() + " / 4", quarter);
  convolve_normed(tower, path + ".conv1", in, out, 1);
  convolve_normed(tower, path + ".conv2", 1, out, 3);
  tower.tensor(path + ".se.fc1.weight", {squeezed, out, 1, 1})
      .tensor(path + ".se.fc1.bias", {squeezed})
      .tensor(path + ".se.fc2.weight", {out, squeezed, 1, 1})
      .tensor(path + ".se.fc2.bias", {out});
  convolve_normed(tower, path + ".conv3", out, out, 1);
  if (in.value() != out.value()) convolve_normed(tower, path + ".downsample", in, out, 1);
}

void add_regnet_stage(Tower& tower, const std::string& path, const Quantity& in, const Quantity& out,
                      std::uint64_t depth) {
  for (std::uint64_t i = 0; i < depth; ++i)
    add_regnet_block(tower, path + ".b" + std::to_string(i + 1), i == 0 ? in : out, out);
}

Module abstractor(ConfigReader& config) {
  constexpr std::uint64_t kDeepest = 256;
  const Quantity in = config.size("encoder_hidden_size"), between = config.size("hidden_size");
  const Quantity out = config.size("output_hidden_size"), merge = config.size("merge_size");
  const auto stage = config.optional_number("depth"), matrices = config.optional_number("mlp_depth");
  config.require(stage && matrices && config.has("pos_emb"), "depth, mlp_depth or pos_emb is missing");
  const std::uint64_t depth = *stage, mlp_depth = *matrices;
  config.require(depth <= kDeepest && mlp_depth >= 1 && mlp_depth <= kDeepest,
                 "depth or mlp_depth is no count of layers");
  Module module{"abstractor", "projector (C-abstractor)", {}, {}, {}};
  Tower tower(module, Part::projector);
  if (config.flag("pos_emb", false)) tower.tensor("pos_emb", {1, config.size("pos_emb_size"), in});
  if (depth > 0) {
    add_regnet_stage(tower, "net.0", in, between, depth);
    add_regnet_stage(tower, "net.2", merge * merge * between, between, depth);
  }
  for (std::uint64_t i = 0; i < mlp_depth; ++i)  // every second place is an activation's
    tower.matrix("readout." + std::to_string(2 * i), i > 0 ? out : depth > 0 ? between : in, out, true);
  return module;
}

}  // namespace

void add_kanana(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config"), projector(document, tree, "projector_config");
  if (!vision || !projector) return;
  add_tower(tree, qwen2_encoder(*vision, "vision_model", false));
  add_tower(tree, abstractor(*projector));
}

}  // namespace assay::families
