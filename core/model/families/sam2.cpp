// SAM 2: SAM's hints and masks behind a Hiera, whose stages halve sides and widen, and, for films, a memory of what was cut out
// of the frames before. Source: transformers 5.23.
#include <array>
#include <bit>

#include "core/model/families/all_watchers.h"
#include "core/model/families/convolutions.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/sam_parts.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

// Sides of a window or patch: two numbers.
std::array<Quantity, 2> two_sides(ConfigReader& config, const std::string& key, std::uint64_t class_default) {
  const auto sides = config.numbers(key).value_or(std::vector<std::uint64_t>{class_default, class_default});
  config.require(sides.size() == 2 && sides[0] > 0 && sides[1] > 0, key + " holds no two sides");
  return {Quantity(key, sides[0]), Quantity(key, sides[1])};
}

// A block of a Hiera: where a stage begins it is wider than what comes in.
void add_hiera_block(Module& into, const std::string& path, const Quantity& in, const Quantity& out,
                     double widens) {
  const auto wide = static_cast<std::uint64_t>(static_cast<double>(out.value()) * widens);
  Tower block(into, Part::vision);
  block.norm(path + "layer_norm1", in, true)
      .matrix(path + "attn.qkv", in, Quantity(3) * out, true)
      .matrix(path + "attn.proj", out, out, true)
      .norm(path + "layer_norm2", out, true)
      .matrix(path + "mlp.proj_in", out, {"mlp_ratio × width", wide}, true)
      .matrix(path + "mlp.proj_out", {"mlp_ratio × width", wide}, out, true);
  if (in.value() != out.value()) block.matrix(path + "proj", in, out, true);
}

Module hiera(ConfigReader& config, ModuleTree& tree) {
  const Quantity hidden = config.size("hidden_size", 96);
  const auto depths = stage_sizes(config, "blocks_per_stage", {1, 2, 7, 2}),
             widths = stage_sizes(config, "embed_dim_per_stage", {96, 192, 384, 768}),
             windows = stage_sizes(config, "window_size_per_stage", {8, 4, 14, 7});
  config.require(depths.size() == widths.size(),
                 "blocks_per_stage and embed_dim_per_stage are of different lengths");
  config.require(!windows.empty(), "window_size_per_stage is empty");
  const auto patch = two_sides(config, "patch_kernel_size", 7),
             behind = two_sides(config, "window_positional_embedding_background_size", 7);
  const double widens = config.real("mlp_ratio", 4, 1e-3, 1000);
  Module module{"vision_encoder.backbone", "encoder of images (Hiera)", {}, {}, {}};
  Tower(module, Part::vision)
      .tensor("pos_embed", {1, hidden, behind[0], behind[1]})
      .tensor("pos_embed_window", {1, hidden, windows[0], windows[0]})
      .tensor("patch_embed.projection.weight", {hidden, config.size("num_channels", 3), patch[0], patch[1]})
      .tensor("patch_embed.projection.bias", {hidden});
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    config.require(depths[stage].value() <= 1000, "blocks_per_stage holds what is no number of blocks");
    for (std::uint64_t i = 0; i < depths[stage].value(); ++i) {
      const bool first = stage > 0 && i == 0;
      add_hiera_block(module, "blocks." + std::to_string(tree.layers++) + ".",
                      widths[first ? stage - 1 : stage], widths[stage], widens);
    }
  }
  tree.hidden_size = widths.back().value();
  return module;
}

// The encoder and what brings its pictures to one width; gives that.
Quantity add_sam2_eyes(ConfigReader& vision, ModuleTree& tree) {
  TowerConfig backbone(vision, tree, "backbone_config");
  vision.require(static_cast<bool>(backbone), "backbone_config is missing");
  const std::string kind = backbone->text("model_type", "sam2_hiera_det_model");
  vision.require(kind == "sam2_hiera_det_model",
                 "backbone_config.model_type is " + kind + ": only SAM 2's own Hiera is described");
  tree.modules.push_back(hiera(*backbone, tree));
  const Quantity out = vision.size("fpn_hidden_size", 256), reach = vision.size("fpn_kernel_size", 1);
  const auto channels = stage_sizes(vision, "backbone_channel_list", {768, 384, 192, 96});
  Module& neck = add_image_module(tree, "vision_encoder.neck", "neck");
  for (std::size_t i = 0; i < channels.size(); ++i)
    add_convolution(neck, "convs." + std::to_string(i), {channels[i], out, reach, true});
  return out;
}

Quantity add_sam2(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config"), points(config, tree, "prompt_encoder_config"),
      decoder(config, tree, "mask_decoder_config");
  config.require(vision && points && decoder,
                 "vision_config, prompt_encoder_config or mask_decoder_config is missing");
  Quantity hidden = add_sam2_eyes(*vision, tree);
  const Quantity hints = points->size("hidden_size", 256);
  Tower(add_image_module(tree, "", "where things are"), Part::vision)
      .tensor("no_memory_embedding", {1, 1, hidden})
      .tensor("shared_image_embedding.positional_embedding",
              {2, points->quotient(hints, 2, "hidden_size / 2")});
  tree.modules.push_back(hint_taker(*points, SamVersion::second));
  tree.modules.push_back(mask_maker(*decoder, SamVersion::second));
  return hidden;
}

void describe_sam2(ConfigReader& config, ModuleTree& tree) {
  add_sam2(config, tree);
}

// Layers in which a frame looks at what is remembered of others.
void add_memory_attention(ConfigReader& config, ModuleTree& tree) {
  const Quantity hidden = config.size("memory_attention_hidden_size", 256),
                 wide = config.size("memory_attention_feed_forward_hidden_size", 2048);
  const Quantity inner = config.quotient(hidden, config.size("memory_attention_downsample_rate", 1),
                                         "memory_attention_hidden_size / memory_attention_downsample_rate");
  constexpr std::uint64_t kRemembered = 64;  // channels, by the class
  Module layer = layers("memory_attention.layers.{layer}", "layers that look at what is remembered",
                        all_layers(read_layers(config, "memory_attention_num_layers", 4)));
  Tower block(layer, Part::vision);
  for (const std::string side : {"self_attn", "cross_attn_image"}) {
    const Quantity in = side == "self_attn" ? hidden : Quantity(kRemembered);
    block.matrix(side + ".q_proj", hidden, inner, true)
        .matrix(side + ".k_proj", in, inner, true)
        .matrix(side + ".v_proj", in, inner, true)
        .matrix(side + ".o_proj", inner, hidden, true);
  }
  for (const char* norm : {"layer_norm1", "layer_norm2", "layer_norm3"}) block.norm(norm, hidden, true);
  block.matrix("linear1", hidden, wide, true).matrix("linear2", wide, hidden, true);
  tree.modules.push_back(std::move(layer));
  Tower(add_image_module(tree, "memory_attention", "last norm"), Part::vision)
      .norm("layer_norm", hidden, true);
}

// A mask, made smaller by convolutions, each of which makes stride² channels of one.
void add_mask_shrinking(ConfigReader& config, Module& into) {
  const std::uint64_t total = config.size("mask_downsampler_total_stride", 16).value(),
                      stride = config.size("mask_downsampler_stride", 2).value();
  config.require(stride >= 2 && stride <= 1024 && total <= 65536 && std::has_single_bit(stride) &&
                     std::has_single_bit(total),
                 "mask_downsampler_stride or mask_downsampler_total_stride are no powers of two");
  const Quantity reach = config.size("mask_downsampler_kernel_size", 3);
  const int steps = (std::bit_width(total) - 1) / (std::bit_width(stride) - 1);
  Quantity channels = 1;
  for (int i = 0; i < steps; ++i) {
    const std::string path = "mask_downsampler.layers." + std::to_string(i);
    const Quantity out(channels.value() * stride * stride);
    add_convolution(into, path + ".conv", {channels, out, reach, true});
    Tower(into, Part::vision).norm(path + ".layer_norm", out, true);
    channels = out;
  }
  add_convolution(into, "mask_downsampler.final_conv",
                  {channels, config.size("mask_downsampler_embed_dim", 256), 1, true});
}

// ConvNeXt's blocks, which join a picture and its mask.
void add_fusing(ConfigReader& config, Module& into) {
  const Quantity hidden = config.size("memory_fuser_embed_dim", 256),
                 wide = config.size("memory_fuser_intermediate_dim", 1024),
                 reach = config.size("memory_fuser_kernel_size", 7);
  const std::uint64_t count = read_layers(config, "memory_fuser_num_layers", 2).value();
  config.require(count <= 1000, "memory_fuser_num_layers is no number of layers");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string path = "memory_fuser.layers." + std::to_string(i) + ".";
    add_convolution(into, path + "depthwise_conv", {1, hidden, reach, true});
    Tower(into, Part::vision)
        .tensor(path + "scale", {hidden})
        .norm(path + "layer_norm", hidden, true)
        .matrix(path + "pointwise_conv1", hidden, wide, true)
        .matrix(path + "pointwise_conv2", wide, hidden, true);
  }
}

void describe_sam2_video(ConfigReader& config, ModuleTree& tree) {
  const Quantity hidden = add_sam2(config, tree),
                 remembered = config.size("memory_encoder_output_channels", 64),
                 inside = config.size("memory_encoder_hidden_size", 256);
  add_memory_attention(config, tree);
  Module& memory = add_image_module(tree, "memory_encoder", "what is remembered");
  add_mask_shrinking(config, memory);
  add_fusing(config, memory);
  add_convolution(memory, "feature_projection", {inside, inside, 1, true});
  add_convolution(memory, "projection", {inside, remembered, 1, true});
  constexpr std::uint64_t kMaskReach = 4, kDeep = 3;  // by the class
  Module& beside = add_image_module(tree, "", "what stands beside memory");
  add_convolution(beside, "mask_downsample", {1, 1, kMaskReach, true});
  Tower tower(beside, Part::vision);
  tower.tensor("no_memory_positional_encoding", {1, 1, hidden})
      .tensor("memory_temporal_positional_encoding", {config.size("num_maskmem", 7), 1, 1, remembered})
      .tensor("no_object_pointer", {1, hidden});
  add_deep(tower, "object_pointer_proj", {hidden, hidden, hidden}, kDeep);
  if (config.flag("enable_temporal_pos_encoding_for_object_pointers", true))
    tower.matrix("temporal_positional_encoding_projection_layer", hidden, remembered, true);
  if (config.flag("enable_occlusion_spatial_embedding", true))
    tower.tensor("occlusion_spatial_embedding_parameter", {1, remembered});
}

constexpr std::string_view kSam2Architectures[] = {"Sam2Model"}, kSam2Types[] = {"sam2"},
                           kSam2VideoArchitectures[] = {"Sam2VideoModel"}, kSam2VideoTypes[] = {"sam2_video"};

}  // namespace

const Family kSam2 = {"sam2", "SAM 2", kSam2Architectures, kSam2Types, {}, describe_sam2};
const Family kSam2Video = {"sam2_video", "SAM 2, of films",  kSam2VideoArchitectures, kSam2VideoTypes,
                           {},           describe_sam2_video};

}  // namespace assay::families
