// Depth Anything: how far away each place of an image is, told by convolutions over several layers of a DINOv2.
// Source: transformers 5.24.
#include <nlohmann/json.hpp>

#include "core/model/families/all_encoders.h"
#include "core/model/families/image_encoders.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

// How much larger, or smaller, a layer's picture becomes.
std::vector<double> scale_factors(ConfigReader& config) {
  const ParsedJson& text = config.config().text();
  const auto said = text.find("reassemble_factors");
  if (said == text.end() || said->is_null()) return {4, 2, 1, 0.5};
  config.require(said->is_array(), "reassemble_factors is no list");
  std::vector<double> factors;
  for (const ParsedJson& factor : *said)
    factors.push_back(config.to_real(factor, "reassemble_factors", 0.001, 1000));
  return factors;
}

void convolve(Tower& into, const std::string& name, const Quantity& in, const Quantity& out,
              const Quantity& reach, bool bias = true) {
  into.tensor(name + ".weight", {out, in, reach, reach});
  if (bias) into.tensor(name + ".bias", {out});
}

// Each layer's states as a picture of its own width.
void add_reassembly(ConfigReader& config, Tower& neck, const Quantity& hidden,
                    const std::vector<Quantity>& widths) {
  const std::vector<double> factors = scale_factors(config);
  config.require(factors.size() == widths.size(),
                 "reassemble_factors and neck_hidden_sizes are of different lengths");
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string path = "reassemble_stage.layers." + std::to_string(i);
    convolve(neck, path + ".projection", hidden, widths[i], 1);
    if (factors[i] == 1) continue;
    const auto reach = factors[i] > 1 ? static_cast<std::uint64_t>(factors[i]) : 3;
    convolve(neck, path + ".resize", widths[i], widths[i], {"reassemble_factors", reach});
  }
}

void describe_depth_anything(ConfigReader& config, ModuleTree& tree) {
  TowerConfig backbone(config, tree, "backbone_config");
  config.require(backbone && backbone->text("model_type", "dinov2") == "dinov2",
                 "backbone_config is not that of a DINOv2");
  ModuleTree alone;
  describe_dino2(*backbone, alone);
  for (Module& module : alone.modules) {
    module.path = module.path.empty() ? "backbone" : "backbone." + module.path;
    tree.modules.push_back(std::move(module));
  }
  tree.hidden_size = alone.hidden_size, tree.layers = alone.layers;
  const auto widths = stage_sizes(config, "neck_hidden_sizes", {48, 96, 192, 384});
  const Quantity hidden = config.size("reassemble_hidden_size", 384),
                 fused = config.size("fusion_hidden_size", 64), last = config.size("head_hidden_size", 32);
  config.require(fused.value() > 1, "fusion_hidden_size has no half");
  Tower neck(add_image_module(tree, "neck", "joins layers"), Part::vision);
  add_reassembly(config, neck, hidden, widths);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string number = std::to_string(i), path = "fusion_stage.layers." + number;
    convolve(neck, "convs." + number, widths[i], fused, 3, false);
    convolve(neck, path + ".projection", fused, fused, 1);
    for (const char* layer : {".residual_layer1", ".residual_layer2"})
      for (const char* half : {".convolution1", ".convolution2"})
        convolve(neck, path + layer + half, fused, fused, 3);
  }
  const Quantity half("fusion_hidden_size / 2", fused.value() / 2);
  Tower head(add_image_module(tree, "head", "tells depths"), Part::vision);
  convolve(head, "conv1", fused, half, 3);
  convolve(head, "conv2", half, last, 3);
  convolve(head, "conv3", last, 1, 1);
}

constexpr std::string_view kDepthArchitectures[] = {"DepthAnythingForDepthEstimation"},
                           kDepthTypes[] = {"depth_anything"};

}  // namespace

const Family kDepthAnything = {"depth_anything",       "Depth Anything", kDepthArchitectures, kDepthTypes, {},
                               describe_depth_anything};

}  // namespace assay::families
