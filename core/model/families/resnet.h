// ResNet's convolutions, which detectors stand on, too.
#pragma once

#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

// Stages of a ResNet, below `path` ("encoder.stages"); gives the channels of each.
struct ResnetStages {
  std::string path;
  Quantity in;
  // What carries over stands behind a mean of neighbours where sides are halved (RT-DETR's "ResNet-D").
  bool averages = false;
};
std::vector<Quantity> add_resnet_stages(ConfigReader& config, ModuleTree& tree, const ResnetStages& of);
// A convolution without a bias, and its norm, "convolution" and "normalization" below `path`.
void add_resnet_convolution(Module& module, const std::string& path, const Quantity& in, const Quantity& out,
                            std::uint64_t reach);
// MobileNet's layer of its second version: wider, neighbours of each channel by itself, narrower (mobile_nets.cpp).
void add_inverted_residual(Module& module, const std::string& path, const Quantity& in, const Quantity& wide,
                           const Quantity& out);

}  // namespace assay::families
