// SAM, which cuts out of an image what points, boxes and masks hint at: its encoder of images (sighted_sam.cpp), what takes hints,
// and a small decoder of masks. Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/sam_parts.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

Quantity part_of(ConfigReader& config, const Quantity& whole, std::uint64_t divisor) {
  return config.quotient(whole, divisor, whole.name() + " / " + std::to_string(divisor));
}

}  // namespace

Module hint_taker(ConfigReader& config, SamVersion version) {
  const Quantity hidden = config.size("hidden_size", 256), masks = config.size("mask_input_channels", 16);
  const Quantity narrow = part_of(config, masks, 4);
  Module module{"prompt_encoder", "what takes hints", {}, {}, {}};
  Tower into(module, Part::vision);
  into.tensor("no_mask_embed.weight", {1, hidden}).tensor("not_a_point_embed.weight", {1, hidden});
  const std::uint64_t kinds = config.size("num_point_embeddings", 4).value();
  config.require(kinds <= 1000, "num_point_embeddings is no number of kinds of points");
  if (version == SamVersion::second)
    into.tensor("point_embed.weight", {{"num_point_embeddings", kinds}, hidden})
        .tensor("shared_embedding.positional_embedding", {2, part_of(config, hidden, 2)});
  for (std::uint64_t i = 0; version == SamVersion::first && i < kinds; ++i)
    into.tensor("point_embed." + std::to_string(i) + ".weight", {1, hidden});
  into.tensor("mask_embed.conv1.weight", {narrow, 1, 2, 2})
      .tensor("mask_embed.conv1.bias", {narrow})
      .norm("mask_embed.layer_norm1", narrow, true)
      .tensor("mask_embed.conv2.weight", {masks, narrow, 2, 2})
      .tensor("mask_embed.conv2.bias", {masks})
      .norm("mask_embed.layer_norm2", masks, true)
      .tensor("mask_embed.conv3.weight", {hidden, masks, 1, 1})
      .tensor("mask_embed.conv3.bias", {hidden});
  return module;
}

void add_deep(Tower& into, const std::string& path, const DeepWidths& of, std::uint64_t depth) {
  into.matrix(path + ".proj_in", of.in, of.between, true)
      .matrix(path + ".proj_out", of.between, of.out, true);
  for (std::uint64_t i = 0; i + 2 < depth; ++i)
    into.matrix(path + ".layers." + std::to_string(i), of.between, of.between, true);
}

namespace {

// How each version names what comes out of attention.
struct SideNames {
  std::string out;
  SamVersion version;
};
SideNames names_of(SamVersion version) {
  return {version == SamVersion::first ? ".out_proj" : ".o_proj", version};
}

struct Looks {
  Quantity hidden, inner;
  std::string out;
};
void add_looks(Tower& into, const std::string& path, const Looks& of) {
  for (const char* name : {".q_proj", ".k_proj", ".v_proj"})
    into.matrix(path + name, of.hidden, of.inner, true);
  into.matrix(path + of.out, of.inner, of.hidden, true);
}

Module two_way_layers(ConfigReader& config, const Quantity& hidden, const Quantity& inner,
                      const SideNames& names) {
  const Quantity wide = config.size("mlp_dim", 2048);
  const Quantity depth = read_layers(config, "num_hidden_layers", 2);
  config.require(depth.value() <= 1000, "num_hidden_layers is no number of layers");
  Module layer = layers("transformer.layers.{layer}", "layers that look both ways", all_layers(depth));
  Tower block(layer, Part::vision);
  add_looks(block, "self_attn", {hidden, hidden, names.out});
  add_looks(block, "cross_attn_token_to_image", {hidden, inner, names.out});
  add_looks(block, "cross_attn_image_to_token", {hidden, inner, names.out});
  for (const char* name : {"layer_norm1", "layer_norm2", "layer_norm3", "layer_norm4"})
    block.norm(name, hidden, true);
  if (names.version == SamVersion::first)
    block.matrix("mlp.lin1", hidden, wide, true).matrix("mlp.lin2", wide, hidden, true);
  else  // whose depth is the number of layers, too
    add_deep(block, "mlp", {hidden, wide, hidden}, depth.value());
  return layer;
}

constexpr std::uint64_t kDeep = 3;  // by the classes

// A token and a head that tell whether a thing is seen at all, and what leads from finer pictures.
void add_second_parts(ConfigReader& config, Tower& into, const Quantity& hidden) {
  const Quantity quarter = part_of(config, hidden, 4), eighth = part_of(config, hidden, 8);
  into.tensor("conv_s0.weight", {eighth, hidden, 1, 1})
      .tensor("conv_s0.bias", {eighth})
      .tensor("conv_s1.weight", {quarter, hidden, 1, 1})
      .tensor("conv_s1.bias", {quarter})
      .tensor("obj_score_token.weight", {1, hidden});
  add_deep(into, "pred_obj_score_head", {hidden, hidden, 1}, kDeep);
}

}  // namespace

Module mask_maker(ConfigReader& config, SamVersion version) {
  const SideNames names = names_of(version);
  const Quantity hidden = config.size("hidden_size", 256);
  const Quantity inner = config.quotient(hidden, config.size("attention_downsample_rate", 2),
                                         "hidden_size / attention_downsample_rate");
  const Quantity count = config.size("num_multimask_outputs", 3) + Quantity(1);
  config.require(count.value() <= 1000, "num_multimask_outputs is no number of masks");
  const Quantity quarter = part_of(config, hidden, 4), eighth = part_of(config, hidden, 8);
  Module module{"mask_decoder", "what makes masks", {}, {}, {}};
  Tower into(module, Part::vision);
  into.tensor("iou_token.weight", {1, hidden}).tensor("mask_tokens.weight", {count, hidden});
  add_looks(into, "transformer.final_attn_token_to_image", {hidden, inner, names.out});
  into.norm("transformer.layer_norm_final_attn", hidden, true)
      .tensor("upscale_conv1.weight", {hidden, quarter, 2, 2})
      .tensor("upscale_conv1.bias", {quarter})
      .norm("upscale_layer_norm", quarter, true)
      .tensor("upscale_conv2.weight", {quarter, eighth, 2, 2})
      .tensor("upscale_conv2.bias", {eighth});
  for (std::uint64_t i = 0; i < count.value(); ++i)
    add_deep(into, "output_hypernetworks_mlps." + std::to_string(i), {hidden, hidden, eighth}, kDeep);
  const std::uint64_t depth = config.size("iou_head_depth", 3).value();
  config.require(depth >= 2 && depth <= 100, "iou_head_depth is no number of layers");
  add_deep(into, "iou_prediction_head", {hidden, config.size("iou_head_hidden_dim", 256), count}, depth);
  if (version == SamVersion::second) add_second_parts(config, into, hidden);
  module.children = {two_way_layers(config, hidden, inner, names)};
  return module;
}

namespace {

void describe_sam(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config"), points(config, tree, "prompt_encoder_config"),
      decoder(config, tree, "mask_decoder_config");
  config.require(vision && points && decoder,
                 "vision_config, prompt_encoder_config or mask_decoder_config is missing");
  tree.hidden_size = vision->size("hidden_size", 768).value();
  tree.layers = read_layers(*vision, "num_hidden_layers", 12).value();
  Module places{"", "where things are", {}, {}, {}};
  Tower(places, Part::vision)
      .tensor("shared_image_embedding.positional_embedding", {2, vision->size("num_pos_feats", 128)});
  TensorSpec again = places.tensors.front();  // which checkpoints may hold twice
  again.name = "prompt_encoder.shared_embedding.positional_embedding";
  again.storage = Storage::tied, again.same_as = places.tensors.front().name;
  places.tensors.push_back(std::move(again));
  tree.modules = {std::move(places), sam_encoder(*vision, "vision_encoder"),
                  hint_taker(*points, SamVersion::first), mask_maker(*decoder, SamVersion::first)};
}

constexpr std::string_view kSamArchitectures[] = {"SamModel"}, kSamTypes[] = {"sam"};

}  // namespace

const Family kSam = {"sam", "SAM", kSamArchitectures, kSamTypes, {}, describe_sam};

}  // namespace assay::families
