// DiffusionGemma (google/diffusiongemma-26B-A4B-it): Gemma 4's layers, every one with experts, that read a text with one pass and
// refine a canvas of further tokens with another, of the same matrices; of each layer both passes have a factor of their own, and
// the second a gated MLP for what it guessed before. Source: transformers 5.24, modeling_diffusion_gemma.py; vLLM 0.33 reads a
// checkpoint of either pass's names.
#include "core/model/families/all_kin.h"
#include "core/model/families/gemma4.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::string_view kUsualPass = "model.", kReadingPass = "model.encoder.",
                           kWritingPass = "model.decoder.";

// What sees belongs to the pass that reads.
void add_reading_towers(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  const std::size_t before = tree.towers.size();
  add_gemma4_towers(config, tree, text_hidden);
  for (std::size_t i = before; i < tree.towers.size(); ++i)
    tree.towers[i].path.replace(0, kUsualPass.size(), kReadingPass);
}

Module self_conditioning(const Quantity& hidden, const Quantity& width) {
  Module module = gated_mlp({.hidden = hidden, .intermediate = width});
  module.path = std::string(kWritingPass) + "self_conditioning";
  module.title = "what was guessed before";
  add_norm(module, "pre_norm", hidden, Role::pre_feedforward_norm);
  return module;
}

void describe_diffusion_gemma(ConfigReader& config, ModuleTree& tree) {
  describe_gemma4_kin(config, tree,
                      {.per_layer = 0,
                       .window = 512,
                       .add_towers = add_reading_towers,
                       .prefix = kWritingPass,
                       .diffuses = true});
  const Quantity hidden = config.size("hidden_size", 2304);
  Module reads = layers(std::string(kReadingPass) + "language_model.layers.{layer}",
                        "factors of the pass that reads", all_layers(tree.layers));
  reads.tensors.push_back(parameter("layer_scalar", {1}, Role::layer_scale, Part::norm));
  tree.modules.push_back(std::move(reads));
  tree.modules.push_back(self_conditioning(hidden, config.size("intermediate_size", 9216)));
}

constexpr std::string_view kDiffusionGemmaNames[] = {"DiffusionGemmaForBlockDiffusion"},
                           kDiffusionGemmaTypes[] = {"diffusion_gemma"};

}  // namespace

const Family kDiffusionGemma = {
    "diffusion_gemma",       "DiffusionGemma", kDiffusionGemmaNames, kDiffusionGemmaTypes, {},
    describe_diffusion_gemma};

}  // namespace assay::families
