// Encoders of images that are models by themselves, and stand in front of writers, too.
#pragma once

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

// ViT, DeiT and DINOv2: into the tree's modules, named as alone.
void describe_vit(ConfigReader& config, ModuleTree& tree);
void describe_deit(ConfigReader& config, ModuleTree& tree);
void describe_dino2(ConfigReader& config, ModuleTree& tree);

}  // namespace assay::families
