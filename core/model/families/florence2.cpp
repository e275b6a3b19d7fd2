// Florence-2 as transformers saves it: a DaViT, whose blocks attend within windows and then across channels, in front of a
// BART. Microsoft's own code names its parts otherwise, and says so by other keys.
#include <nlohmann/json.hpp>

#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// A convolution of each channel before attention, and one before the MLP.
void add_davit_block(Tower& tower, const std::string& path, const std::string& attention,
                     const Quantity& width, const Quantity& wide, bool qkv_bias) {
  for (const std::string at : {"1", "2"}) {
    tower.tensor(path + ".conv" + at + ".weight", {width, 1, 3, 3})
        .tensor(path + ".conv" + at + ".bias", {width})
        .norm(path + ".norm" + at, width, true);
  }
  tower.matrix(path + "." + attention + ".qkv", width, Quantity(3) * width, qkv_bias)
      .matrix(path + "." + attention + ".proj", width, width, true)
      .matrix(path + ".ffn.fc1", width, wide, true)
      .matrix(path + ".ffn.fc2", wide, width, true);
}

struct DavitStages {
  std::vector<std::uint64_t> depths, widths, patches;
};

DavitStages read_stages(ConfigReader& vision) {
  using Numbers = std::vector<std::uint64_t>;
  DavitStages stages{vision.numbers("depths").value_or(Numbers{1, 1, 9, 1}),
                     vision.numbers("embed_dim").value_or(Numbers{128, 256, 512, 1024}),
                     vision.numbers("patch_size").value_or(Numbers{7, 3, 3, 3})};
  const std::size_t count = stages.widths.size();
  vision.require(count > 0 && count < 30 && stages.depths.size() == count && stages.patches.size() == count,
                 "depths, embed_dim and patch_size are not of one length");
  for (std::size_t i = 0; i < count; ++i) {
    vision.require(stages.depths[i] <= 1000, "depths asks for more than 1000 blocks");
    vision.require(stages.widths[i] > 0 && stages.patches[i] > 0, "embed_dim or patch_size is 0");
  }
  return stages;
}

// Whether a stage norms what enters its convolution, or what leaves it: in the first one it leaves.
bool norms_before(const ConfigReader& vision, std::size_t stage) {
  const ParsedJson& keys = vision.config().text();
  const auto told = keys.find("patch_prenorm");
  if (told == keys.end() || !told->is_array() || stage >= told->size() || !(*told)[stage].is_boolean())
    return stage > 0;
  return (*told)[stage].get<bool>();
}

}  // namespace

void add_florence2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  vision->require(!vision->has("dim_embed"),
                  "dim_embed: Florence-2 as Microsoft's own code names it is not described, convert it with "
                  "transformers");
  const DavitStages stages = read_stages(*vision);
  const double ratio = vision->real("mlp_ratio", 4, 1e-3, 1024);
  const bool qkv_bias = vision->flag("qkv_bias", true);
  Module tower{"model.vision_tower", "vision tower (DaViT)", {}, {}, {}};
  Tower start(tower, Part::vision);
  Quantity before = vision->size("in_channels", 3);
  for (std::size_t i = 0; i < stages.widths.size(); ++i) {
    const Quantity width = stages.widths[i], patch = stages.patches[i];
    const std::string convolution = "convs." + std::to_string(i);
    start.tensor(convolution + ".conv.weight", {width, before, patch, patch})
        .tensor(convolution + ".conv.bias", {width})
        .norm(convolution + ".norm", norms_before(*vision, i) ? before : width, true);
    const Quantity wide("embed_dim × mlp_ratio",
                        static_cast<std::uint64_t>(static_cast<double>(width.value()) * ratio));
    for (std::uint64_t block = 0; block < stages.depths[i]; ++block) {
      const std::string path = "blocks." + std::to_string(i) + "." + std::to_string(block);
      add_davit_block(start, path + ".spatial_block", "window_attn", width, wide, qkv_bias);
      add_davit_block(start, path + ".channel_block", "channel_attn", width, wide, qkv_bias);
    }
    before = width;
  }
  add_tower(tree, std::move(tower));
  const Quantity out = vision->size("projection_dim", 1024);
  const Quantity places = vision->size("max_position_embeddings", 50);
  const Quantity rows("embed_dim / 2", before.value() / 2), columns = before.value() - before.value() / 2;
  Module projector{"model.multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("image_position_embed.row_embeddings.weight", {places, rows})
      .tensor("image_position_embed.column_embeddings.weight", {places, columns})
      .matrix("image_projection", before, out, false)
      .norm("image_proj_norm", out, true);
  add_buffer(projector, "visual_temporal_embed.pos_idx_to_embed",
             {vision->size("max_temporal_embeddings", 100).value(), before.value()});
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
