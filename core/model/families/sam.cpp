// SAM, which cuts out of an image what points, boxes and masks hint at: its encoder of images (sighted_sam.cpp), what takes hints,
// and a small decoder of masks. Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

Quantity part_of(ConfigReader& config, const Quantity& whole, std::uint64_t divisor) {
  return config.quotient(whole, divisor, whole.name() + " / " + std::to_string(divisor));
}

Module hint_taker(ConfigReader& config) {
  const Quantity hidden = config.size("hidden_size", 256), masks = config.size("mask_input_channels", 16);
  const Quantity narrow = part_of(config, masks, 4);
  Module module{"prompt_encoder", "what takes hints", {}, {}, {}};
  Tower into(module, Part::vision);
  into.tensor("no_mask_embed.weight", {1, hidden}).tensor("not_a_point_embed.weight", {1, hidden});
  const std::uint64_t kinds = config.size("num_point_embeddings", 4).value();
  config.require(kinds <= 1000, "num_point_embeddings is no number of kinds of points");
  for (std::uint64_t i = 0; i < kinds; ++i)
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

void add_looks(Tower& into, const std::string& path, const Quantity& hidden, const Quantity& inner) {
  for (const char* name : {".q_proj", ".k_proj", ".v_proj"}) into.matrix(path + name, hidden, inner, true);
  into.matrix(path + ".out_proj", inner, hidden, true);
}

// Two matrices, and as many between as `depth` leaves.
void add_deep(ConfigReader& config, Tower& into, const std::string& path, const Quantity& in,
              const Quantity& between, const Quantity& out, std::uint64_t depth) {
  config.require(depth >= 2 && depth <= 100, "iou_head_depth is no number of layers");
  into.matrix(path + ".proj_in", in, between, true).matrix(path + ".proj_out", between, out, true);
  for (std::uint64_t i = 0; i + 2 < depth; ++i)
    into.matrix(path + ".layers." + std::to_string(i), between, between, true);
}

Module two_way_layers(ConfigReader& config, const Quantity& hidden, const Quantity& inner) {
  const Quantity wide = config.size("mlp_dim", 2048);
  Module layer = layers("transformer.layers.{layer}", "layers that look both ways",
                        all_layers(read_layers(config, "num_hidden_layers", 2)));
  Tower block(layer, Part::vision);
  add_looks(block, "self_attn", hidden, hidden);
  add_looks(block, "cross_attn_token_to_image", hidden, inner);
  add_looks(block, "cross_attn_image_to_token", hidden, inner);
  for (const char* name : {"layer_norm1", "layer_norm2", "layer_norm3", "layer_norm4"})
    block.norm(name, hidden, true);
  block.matrix("mlp.lin1", hidden, wide, true).matrix("mlp.lin2", wide, hidden, true);
  return layer;
}

Module mask_maker(ConfigReader& config) {
  const Quantity hidden = config.size("hidden_size", 256);
  const Quantity inner = config.quotient(hidden, config.size("attention_downsample_rate", 2),
                                         "hidden_size / attention_downsample_rate");
  const Quantity count = config.size("num_multimask_outputs", 3) + Quantity(1);
  config.require(count.value() <= 1000, "num_multimask_outputs is no number of masks");
  const Quantity quarter = part_of(config, hidden, 4), eighth = part_of(config, hidden, 8);
  Module module{"mask_decoder", "what makes masks", {}, {}, {}};
  Tower into(module, Part::vision);
  into.tensor("iou_token.weight", {1, hidden}).tensor("mask_tokens.weight", {count, hidden});
  add_looks(into, "transformer.final_attn_token_to_image", hidden, inner);
  into.norm("transformer.layer_norm_final_attn", hidden, true)
      .tensor("upscale_conv1.weight", {hidden, quarter, 2, 2})
      .tensor("upscale_conv1.bias", {quarter})
      .norm("upscale_layer_norm", quarter, true)
      .tensor("upscale_conv2.weight", {quarter, eighth, 2, 2})
      .tensor("upscale_conv2.bias", {eighth});
  constexpr std::uint64_t kDepth = 3;  // by the class
  for (std::uint64_t i = 0; i < count.value(); ++i)
    add_deep(config, into, "output_hypernetworks_mlps." + std::to_string(i), hidden, hidden, eighth, kDepth);
  add_deep(config, into, "iou_prediction_head", hidden, config.size("iou_head_hidden_dim", 256), count,
           config.size("iou_head_depth", 3).value());
  module.children = {two_way_layers(config, hidden, inner)};
  return module;
}

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
  tree.modules = {std::move(places), sam_encoder(*vision, "vision_encoder"), hint_taker(*points),
                  mask_maker(*decoder)};
}

constexpr std::string_view kSamArchitectures[] = {"SamModel"}, kSamTypes[] = {"sam"};

}  // namespace

const Family kSam = {"sam", "SAM", kSamArchitectures, kSamTypes, {}, describe_sam};

}  // namespace assay::families
