// Florence-2: a DaViT, whose blocks attend within windows and then across channels, in front of a BART. As transformers saves
// it, and as Microsoft's own code does, which names the parts otherwise and tells their sizes by other keys (dim_embed).
#include <nlohmann/json.hpp>

#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

enum class DavitNames { transformers, own };

// A convolution of each channel before attention, and one before the MLP.
void add_davit_block(Tower& tower, const std::string& path, const std::string& attention,
                     const Quantity& width, const Quantity& wide, bool qkv_bias, DavitNames names) {
  const bool own = names == DavitNames::own;
  const std::string attend = path + "." + attention, within = own ? ".fn" : "";
  const std::string mlp = path + (own ? ".ffn.fn.net" : ".ffn"), convolution = own ? ".fn.dw" : "";
  for (const std::string at : {".conv1", ".conv2"}) {
    tower.tensor(path + at + convolution + ".weight", {width, 1, 3, 3})
        .tensor(path + at + convolution + ".bias", {width});
  }
  tower.norm(own ? attend + ".norm" : path + ".norm1", width, true)
      .norm(path + (own ? ".ffn.norm" : ".norm2"), width, true)
      .matrix(attend + within + ".qkv", width, Quantity(3) * width, qkv_bias)
      .matrix(attend + within + ".proj", width, width, true)
      .matrix(mlp + ".fc1", width, wide, true)
      .matrix(mlp + ".fc2", wide, width, true);
}

struct DavitStages {
  std::vector<std::uint64_t> depths, widths, patches;
};

DavitStages read_stages(ConfigReader& vision, const std::string& widths,
                        std::vector<std::uint64_t> widths_default) {
  using Numbers = std::vector<std::uint64_t>;
  DavitStages stages{vision.numbers("depths").value_or(Numbers{1, 1, 9, 1}),
                     vision.numbers(widths).value_or(std::move(widths_default)),
                     vision.numbers("patch_size").value_or(Numbers{7, 3, 3, 3})};
  const std::size_t count = stages.widths.size();
  vision.require(count > 0 && count < 30 && stages.depths.size() == count && stages.patches.size() == count,
                 "depths, " + widths + " and patch_size are not of one length");
  for (std::size_t i = 0; i < count; ++i) {
    vision.require(stages.depths[i] <= 1000, "depths asks for more than 1000 blocks");
    vision.require(stages.widths[i] > 0 && stages.patches[i] > 0, widths + " or patch_size is 0");
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

struct Davit {
  DavitStages stages;
  DavitNames names;
  std::string path;
  Quantity channels = 3;
  double ratio = 4;
  bool qkv_bias = true;
};

Module davit_tower(const ConfigReader& vision, const Davit& davit) {
  const DavitStages& stages = davit.stages;
  const std::string taken = davit.names == DavitNames::own ? ".proj" : ".conv";
  Module tower{davit.path, "vision tower (DaViT)", {}, {}, {}};
  Tower start(tower, Part::vision);
  Quantity before = davit.channels;
  for (std::size_t i = 0; i < stages.widths.size(); ++i) {
    const Quantity width = stages.widths[i], patch = stages.patches[i];
    const std::string convolution = "convs." + std::to_string(i);
    start.tensor(convolution + taken + ".weight", {width, before, patch, patch})
        .tensor(convolution + taken + ".bias", {width})
        .norm(convolution + ".norm", norms_before(vision, i) ? before : width, true);
    const Quantity wide("embed_dim × mlp_ratio",
                        static_cast<std::uint64_t>(static_cast<double>(width.value()) * davit.ratio));
    for (std::uint64_t block = 0; block < stages.depths[i]; ++block) {
      const std::string path = "blocks." + std::to_string(i) + "." + std::to_string(block);
      add_davit_block(start, path + ".spatial_block", "window_attn", width, wide, davit.qkv_bias,
                      davit.names);
      add_davit_block(start, path + ".channel_block", "channel_attn", width, wide, davit.qkv_bias,
                      davit.names);
    }
    before = width;
  }
  return tower;
}

// Half of a place's vector tells its row, half its column.
struct Places {
  std::string path;
  Quantity count, width;
};
void add_places(Tower& tower, const Places& places) {
  const Quantity rows("embed_dim / 2", places.width.value() / 2),
      columns = places.width.value() - rows.value();
  tower.tensor(places.path + ".row_embeddings.weight", {places.count, rows})
      .tensor(places.path + ".column_embeddings.weight", {places.count, columns});
}

}  // namespace

void add_florence2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  Davit davit{read_stages(*vision, "embed_dim", {128, 256, 512, 1024}), DavitNames::transformers,
              "model.vision_tower"};
  davit.channels = vision->size("in_channels", 3);
  davit.ratio = vision->real("mlp_ratio", 4, 1e-3, 1024);
  davit.qkv_bias = vision->flag("qkv_bias", true);
  const Quantity last = davit.stages.widths.back();
  add_tower(tree, davit_tower(*vision, davit));
  const Quantity out = vision->size("projection_dim", 1024);
  Module projector{"model.multi_modal_projector", "projector", {}, {}, {}};
  Tower tower(projector, Part::projector);
  add_places(tower, {"image_position_embed", vision->size("max_position_embeddings", 50), last});
  tower.matrix("image_projection", last, out, false).norm("image_proj_norm", out, true);
  add_buffer(projector, "visual_temporal_embed.pos_idx_to_embed",
             {vision->size("max_temporal_embeddings", 100).value(), last.value()});
  add_tower(tree, std::move(projector));
}

std::string_view florence2_own_text(const ModelConfig& config) {
  return config.nested_in().empty() ? "" : "bart";
}

// Its projection is a bare [in, out].
void add_florence2_own(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Davit davit{read_stages(*vision, "dim_embed", {256, 512, 1024, 2048}), DavitNames::own,
                    "vision_tower"};
  const Quantity last = davit.stages.widths.back(), out = vision->size("projection_dim", 1024);
  add_tower(tree, davit_tower(*vision, davit));
  TowerConfig places(*vision, tree, "image_pos_embed"), times(*vision, tree, "visual_temporal_embedding");
  vision->require(places && times, "image_pos_embed or visual_temporal_embedding is missing");
  Module projector{"", "projector", {}, {}, {}};
  Tower tower(projector, Part::projector);
  add_places(tower, {"image_pos_embed", places->size("max_pos_embeddings"), last});
  tower.tensor("image_projection", {last, out}).norm("image_proj_norm", out, true);
  add_buffer(projector, "visual_temporal_embed.pos_idx_to_embed",
             {times->size("max_temporal_embeddings").value(), last.value()});
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
