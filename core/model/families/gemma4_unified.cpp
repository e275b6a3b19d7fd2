// Gemma 4 12B: Gemma 4's language model without encoders. Patches of raw pixels go through norms and one matrix, frames of
// raw samples through one matrix alone. Source: transformers 5.23 (gemma4_unified), with the names of the checkpoints.
#include "core/model/families/all_2026.h"
#include "core/model/families/gemma4.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_pixels(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity side = vision->size("patch_size", 16) * vision->size("pooling_kernel_size", 3);
  const Quantity pixels = Quantity(3) * side * side, width = vision->size("mm_embed_dim", 3840);
  Module embedder{"model.vision_embedder", "embedder of patches", {}, {}, {}};
  Tower(embedder, Part::vision)
      .norm("patch_ln1", pixels, true)
      .matrix("patch_dense", pixels, width, true)
      .norm("patch_ln2", width, true)
      .tensor("pos_embedding", {vision->size("mm_posemb_size", 1120), 2, width})
      .norm("pos_norm", width, true);
  Module projector{"model.embed_vision", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("embedding_projection", vision->size("output_proj_dims", 3840), text_hidden, false);
  tree.towers.push_back(std::move(embedder));
  tree.towers.push_back(std::move(projector));
}

void add_inputs(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  add_pixels(config, tree, text_hidden);
  TowerConfig audio(config, tree, "audio_config");
  if (!audio) return;
  Module projector{"model.embed_audio", "projector of audio", {}, {}, {}};
  const Quantity samples =
      audio->size("audio_embed_dim|hidden_size|output_proj_dims|audio_samples_per_token", 640);
  Tower(projector, Part::projector).matrix("embedding_projection", samples, text_hidden, false);
  tree.towers.push_back(std::move(projector));
}

void describe_gemma4_unified(ConfigReader& config, ModuleTree& tree) {
  describe_gemma4_kin(config, tree, {.per_layer = 0, .window = 1024, .add_towers = add_inputs});
}

constexpr std::string_view kGemma4UnifiedArchitectures[] = {"Gemma4UnifiedForConditionalGeneration",
                                                            "Gemma4UnifiedForCausalLM"};
constexpr std::string_view kGemma4UnifiedTypes[] = {"gemma4_unified", "gemma4_unified_text"};

}  // namespace

const Family kGemma4Unified = {
    "gemma4_unified",        "Gemma 4 12B", kGemma4UnifiedArchitectures, kGemma4UnifiedTypes, {},
    describe_gemma4_unified, forward_gemma4};

}  // namespace assay::families
