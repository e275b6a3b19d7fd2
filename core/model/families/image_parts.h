// What descriptions of encoders of images that are models by themselves (image_encoders.cpp and its kin) share.
#pragma once

#include <string>
#include <vector>

#include "core/model/tower_blocks.h"

namespace assay::families {

// Of height and width, in pixels: one number for both, or two.
struct Sides {
  Quantity height, width;
};
Sides pixel_sides(ConfigReader& config, const std::string& key, std::uint64_t class_default);
// Of image_size in patches of patch_size.
Quantity seen_patches(ConfigReader& config, std::uint64_t patch_default, std::uint64_t image_default = 224);

// What one kind of encoder has.
struct ImageKin {
  std::string prefix;     // within a model with a head
  std::string_view stem;  // of its classes' names
  std::uint64_t patch = 16;
  Part part = Part::vision;
};
bool is_alone(const ConfigReader& config, const ImageKin& kin);
std::string trimmed(const std::string& prefix);  // "vit" of "vit."

// A module of tensors of the encoder itself.
Module& add_image_module(ModuleTree& tree, std::string path, std::string title);
Quantity read_image_width(ConfigReader& config, ModuleTree& tree, std::uint64_t class_default);
// ViT's layers; without qkv_bias only what comes out of attention has one.
Module vit_layers(ConfigReader& config, const std::string& path, const Quantity& depth,
                  blocks::EncoderBlock block, Part part);
void leave_out_qkv_biases(Module& blocks);  // of such layers
// Of the encoder itself: as many as num_hidden_layers says.
Module vit_blocks(ConfigReader& config, ModuleTree& tree, const std::string& path, blocks::EncoderBlock block,
                  Part part);
// ViT's names of norms and of the MLP.
blocks::EncoderBlock vit_block(const Quantity& hidden, const Quantity& wide);
void add_image_classifier(ConfigReader& config, ModuleTree& tree, const std::vector<std::string>& names,
                          const Quantity& width);

// Places and patches of what is seen, behind tokens of these names.
struct Enters {
  Quantity hidden, places, channels;
  Sides patch;
  std::vector<std::string> tokens;
};
void add_seen(ModuleTree& tree, const std::string& prefix, const Enters& of, Part part);
// ViT's layers and its last norm.
void add_vit_layers(ConfigReader& config, ModuleTree& tree, const std::string& prefix, const Quantity& hidden,
                    Part part);
void add_vit_pooler(ConfigReader& config, ModuleTree& tree, const Quantity& hidden);
// What enters, layers and last norm: square patches of one kind behind these tokens; its width.
Quantity add_plain_vit(ConfigReader& config, ModuleTree& tree, const std::string& prefix,
                       std::vector<std::string> tokens, std::uint64_t image_default = 224);
// What the encoder's names begin with; alone they have no prefix, and are known under it.
std::string add_prefix(ConfigReader& config, ModuleTree& tree, const ImageKin& kin);

// A list with a number for each stage of an encoder whose layers have widths of their own.
std::vector<Quantity> stage_sizes(ConfigReader& config, const std::string& key,
                                  const std::vector<std::uint64_t>& class_default);

// Swin, its second version and Donut's (swin.cpp): into the tree's modules, named as within `prefix`. Gives the last width.
enum class SwinKind { first, second, donut };
Quantity add_swin(ConfigReader& config, ModuleTree& tree, const std::string& prefix, SwinKind kind);
// Of those that find and cut out: a norm for each picture that out_features or out_indices take. Gives their widths.
std::vector<Quantity> add_swin_backbone(ConfigReader& config, ModuleTree& tree, const std::string& prefix);
// Its stages alone ("layers.0.blocks.1"), of which each is twice as wide as the one before.
struct SwinStages {
  Quantity width, window;
  std::vector<Quantity> depths, heads;
  SwinKind kind = SwinKind::first;
  Part part = Part::vision;
};
Quantity add_swin_stages(ConfigReader& config, std::vector<Module>& into, const std::string& path,
                         const SwinStages& of);

}  // namespace assay::families
