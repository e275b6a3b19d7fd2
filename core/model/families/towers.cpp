// Towers that several families share, or that take a few lines: Qwen's, SigLIP, Pixtral.
#include "core/model/families/towers.h"

#include <nlohmann/json.hpp>

#include "core/model/families/encoder_towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

TowerConfig::TowerConfig(ConfigReader& config, ModuleTree& tree, std::string key)
    : tree_(tree), key_(std::move(key)), section_(config.config().section(key_)) {
  if (section_) reader_.emplace(*section_, key_);
}

bool tied_in_either(const ConfigReader& config, bool class_default) {
  const auto says = [&](const ParsedJson& object) {
    const auto found = object.find("tie_word_embeddings");
    return found == object.end() || !found->is_boolean() ? class_default : found->get<bool>();
  };
  return says(config.config().document()) || (is_nested(config) && says(config.config().text()));
}

TowerConfig::~TowerConfig() {
  if (!reader_) return;
  for (const DefaultTaken& taken : reader_->defaults_taken())
    tree_.defaults.push_back({key_ + "." + taken.key, taken.value, taken.number});
}

namespace {

// Patches, learnt positions and the blocks.
Module qwen_encoder(ConfigReader& vision, const std::string& path, const Quantity& hidden) {
  const Quantity patch = vision.size("patch_size", 16);
  Module tower{path, "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_embed.proj.weight",
              {hidden, vision.size("in_channels", 3), vision.size("temporal_patch_size", 2), patch, patch})
      .tensor("patch_embed.proj.bias", {hidden})
      .tensor("pos_embed.weight", {vision.size("num_position_embeddings", 2304), hidden});
  EncoderBlock block{hidden, vision.size("intermediate_size", 4304)};
  block.qkv = "attn.qkv", block.o = "attn.proj";
  block.up = "mlp.linear_fc1", block.down = "mlp.linear_fc2";
  tower.children = {encoder_blocks("blocks.{layer}", read_layers(vision, "depth", 27), block, Part::vision)};
  return tower;
}

// norm and two matrices over m × m patches joined.
Module qwen_merger(std::string path, const Quantity& hidden, const Quantity& joined, const Quantity& normed,
                   const Quantity& out, QwenMergers names) {
  const bool lists = names == QwenMergers::lists;
  Module merger{std::move(path), "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm(lists ? "ln_q" : "norm", normed, true)
      .matrix(lists ? "mlp.0" : "linear_fc1", joined * hidden, joined * hidden, true)
      .matrix(lists ? "mlp.2" : "linear_fc2", joined * hidden, out, true);
  return merger;
}

}  // namespace

void add_qwen_vision(ConfigReader& config, ModuleTree& tree, const std::string& path,
                     std::uint64_t deep_default, QwenMergers mergers) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1152);
  const Quantity merge = vision->size("spatial_merge_size", 2), joined = merge * merge;
  const Quantity out = vision->size("out_hidden_size", 3584);
  Module tower = qwen_encoder(*vision, path, hidden);
  tower.children.push_back(qwen_merger("merger", hidden, joined, hidden, out, mergers));
  const auto deep = vision->numbers("deepstack_visual_indexes");
  const std::uint64_t deep_mergers = deep ? deep->size() : deep_default;
  if (deep_mergers > 0) {
    const std::string list = mergers == QwenMergers::lists ? "merger_list" : "deepstack_merger_list";
    Module merger = qwen_merger(list + ".{layer}", hidden, joined, joined * hidden, out, mergers);
    Module all = layers(merger.path, "deep patch mergers", all_layers(Quantity(deep_mergers)));
    all.tensors = std::move(merger.tensors);
    tower.children.push_back(std::move(all));
  }
  tree.towers.push_back(std::move(tower));
}

void add_moss_vision(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  for (const char* key : {"hidden_size", "patch_size", "temporal_patch_size", "in_channels", "depth",
                          "num_position_embeddings", "intermediate_size", "spatial_merge_size"})
    vision->size(key);  // required: its class is not at hand
  const Quantity hidden = vision->size("hidden_size"), merge = vision->size("spatial_merge_size");
  const auto deep = vision->numbers("deepstack_visual_indexes");
  vision->require(deep.has_value(), "deepstack_visual_indexes is missing");
  const Quantity features("deep layers + 1", deep->size() + 1), out = vision->size("out_hidden_size");
  const Quantity joined = features * merge * merge * hidden;
  Module merger{"merger", "patch merger", {}, {}, {}};
  Tower tower(merger, Part::projector);
  for (std::uint64_t i = 0; i < features.value(); ++i) tower.norm("norms." + std::to_string(i), hidden, true);
  tower.matrix("linear_fc1", joined, joined, true).matrix("linear_fc2", joined, out, true);
  Module encoder = qwen_encoder(*vision, "model.visual", hidden);
  encoder.children.push_back(std::move(merger));
  tree.towers.push_back(std::move(encoder));
  Module separator{"model", "what stands between images", {}, {}, {}};
  Tower(separator, Part::projector).tensor("separator_token", {out});
  tree.towers.push_back(std::move(separator));
}

void add_ling_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  vision->require(vision->flag("disable_merger_proj", true),
                  "disable_merger_proj is false: a merger with matrices is not described");
  const Quantity hidden = vision->size("hidden_size", 1152), merge = vision->size("spatial_merge_size", 2);
  Module tower = qwen_encoder(*vision, "model.visual", hidden);
  Module merger{"merger", "norm before patches are joined", {}, {}, {}};
  Tower(merger, Part::projector).norm("norm", hidden, true);
  tower.children.push_back(std::move(merger));
  Module projector{"linear_proj", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("0", merge * merge * hidden, text_hidden, true)
      .matrix("2", text_hidden, text_hidden, true);
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(projector));
  tree.aliases.push_back({"model.visual.", "visual."});
  tree.aliases.push_back({"linear_proj.", "model.linear_proj."});
}

namespace {

// Qwen2-VL: embed_dim is the tower's width, hidden_size the language model's.
Quantity qwen2_width(ConfigReader& vision, bool windowed) {
  return windowed ? vision.size("hidden_size", 3584) : vision.size("embed_dim", 1280);
}

}  // namespace

Module qwen2_encoder(ConfigReader& vision, const std::string& path, bool windowed) {
  const Quantity hidden = qwen2_width(vision, windowed);
  const Quantity width =
      windowed ? vision.size("intermediate_size", 3420) : Quantity(vision.number("mlp_ratio", 4)) * hidden;
  const Quantity patch = vision.size("patch_size", 14);
  Module tower{path, "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_embed.proj.weight", {hidden, vision.size("in_channels|in_chans", 3),
                                          vision.size("temporal_patch_size", 2), patch, patch});
  EncoderBlock block{hidden, width};
  block.norm_bias = !windowed;
  block.qkv = "attn.qkv", block.o = "attn.proj";
  if (windowed) block.gate = "mlp.gate_proj", block.up = "mlp.up_proj", block.down = "mlp.down_proj";
  tower.children = {encoder_blocks("blocks.{layer}", read_layers(vision, "depth", 32), block, Part::vision)};
  return tower;
}

void add_qwen2_vision(ConfigReader& config, ModuleTree& tree, const std::string& path, bool windowed) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = qwen2_width(*vision, windowed);
  const Quantity out = windowed ? vision->size("out_hidden_size", 3584) : vision->size("hidden_size", 3584);
  const Quantity merge = vision->size("spatial_merge_size", 2), joined = merge * merge * hidden;
  Module tower = qwen2_encoder(*vision, path, windowed);
  Module merger{"merger", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm("ln_q", hidden, !windowed)
      .matrix("mlp.0", joined, joined, true)
      .matrix("mlp.2", joined, out, true);
  tower.children.push_back(std::move(merger));
  tree.towers.push_back(std::move(tower));
}

// Releases of its fourth version name the tower vision_tower.vision_model.
void add_siglip_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  Module tower = siglip_tower(*vision, "vision_tower");
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  const Quantity hidden = vision->size("hidden_size", 768);
  Tower(projector, Part::projector)
      .tensor("mm_input_projection_weight", {hidden, text_hidden})
      .norm("mm_soft_emb_norm", hidden, false);
  if (vision->flag("vision_use_head", true)) tower.children.push_back(siglip_head(*vision));
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(projector));
  tree.aliases.push_back({"vision_tower.", "vision_tower.vision_model."});
  tree.aliases.push_back({"vision_tower.", "model.vision_tower."});
  tree.aliases.push_back({"vision_tower.", "model.vision_tower.vision_model."});
  tree.aliases.push_back({"multi_modal_projector.", "model.multi_modal_projector."});
}

void add_pixtral_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1024);
  Module tower = pixtral_tower(*vision, "vision_tower");
  // The document's own keys, beside text_config and vision_config.
  const ModelConfig outer = config.config().document_only();
  ConfigReader document(outer, "mistral3");
  const Quantity merge = document.size("spatial_merge_size", 2);
  const bool bias = document.flag("multimodal_projector_bias", false);
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .norm("norm", hidden, false)
      .matrix("patch_merger.merging_layer", merge * merge * hidden, hidden, false)
      .matrix("linear_1", hidden, text_hidden, bias)
      .matrix("linear_2", text_hidden, text_hidden, bias);
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(projector));
}

}  // namespace assay::families
