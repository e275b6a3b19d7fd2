// What detectors share: an encoder of images of which some pictures are taken, layers of attention and an MLP, and small
// perceptrons that tell boxes.
#pragma once

#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

// Those that out_features or out_indices name: 0 the stem, others the stages behind it; the last where both are silent.
std::vector<std::size_t> taken_indices(ConfigReader& backbone, std::size_t stages);
// Their channels.
std::vector<Quantity> taken_stages(ConfigReader& backbone, const Quantity& stem,
                                   const std::vector<Quantity>& widths);
// What a class takes of timm's ResNets where its config has no backbone_config.
struct TimmTaken {
  std::vector<std::uint64_t> stages;
  std::string inside = {};     // of `path`
  bool tells_channels = true;  // num_channels
};
// A ResNet, transformers' own or timm's, as DETR and its kin name them: into the tree's modules, below `path`. Gives the
// channels of what is taken.
std::vector<Quantity> add_detector_backbone(ConfigReader& config, ModuleTree& tree, const std::string& path,
                                            const TimmTaken& timm);

// Attention of queries to themselves, and an MLP.
Module detector_layers(std::string path, const char* title, const Quantity& depth, const Quantity& hidden,
                       const Quantity& wide);
// Attention to a few places of each picture (Deformable DETR); `places` are those of all heads.
void add_few_places(Module& layer, const std::string& path, const Quantity& hidden, const Quantity& places);
// An encoder's layer that looks so.
struct DeformableLayer {
  Quantity hidden, wide, places;
};
void add_deformable_layer(Module& layer, const std::string& path, const DeformableLayer& of);
// A picture for each of the backbone's, and further ones made of the last at half its sides, as many as num_feature_levels
// says: convolutions with group norms.
void add_pictures(ConfigReader& config, Module& into, const std::string& name,
                  const std::vector<Quantity>& taken, const Quantity& hidden);
// Matrices with biases, numbered: each from one width to the next.
void add_perceptron(Module& into, const std::string& path, const std::vector<Quantity>& widths);
// Of one width, the last into the four sides of a box.
void add_box(Module& into, const std::string& path, const Quantity& hidden);

}  // namespace assay::families
