// Depth Anything and DPT: how far away each place of an image is, told by convolutions over several layers of a DINOv2 or a ViT.
// Source: transformers 5.24 (DPT: 5.23).
#include <nlohmann/json.hpp>

#include "core/model/families/all_encoders.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_encoders.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/norm_statistics.h"
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

// Below "backbone.".
void add_backbone(TowerConfig& backbone, ModuleTree& tree) {
  ModuleTree alone;
  describe_dino2(*backbone, alone);
  for (Module& module : alone.modules) {
    module.path = module.path.empty() ? "backbone" : "backbone." + module.path;
    tree.modules.push_back(std::move(module));
  }
  tree.hidden_size = alone.hidden_size, tree.layers = alone.layers;
}

struct Fusion {
  Quantity width;
  bool bias = true, normed = false;  // of the convolutions within
};
void add_fusion(Module& neck, const std::vector<Quantity>& widths, const Fusion& of) {
  Tower into(neck, Part::vision);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string number = std::to_string(i), path = "fusion_stage.layers." + number;
    convolve(into, "convs." + number, widths[i], of.width, 3, false);
    convolve(into, path + ".projection", of.width, of.width, 1);
    for (const char* layer : {".residual_layer1", ".residual_layer2"})
      for (const char* half : {"1", "2"}) {
        convolve(into, path + layer + ".convolution" + half, of.width, of.width, 3, of.bias);
        if (!of.normed) continue;
        const std::string norm = path + layer + ".batch_norm" + half;
        into.norm(norm, of.width, true);
        add_norm_statistics(neck, norm, of.width.value());
      }
  }
}

Quantity half_of(ConfigReader& config, const Quantity& fused) {
  config.require(fused.value() > 1, "fusion_hidden_size has no half");
  return {"fusion_hidden_size / 2", fused.value() / 2};
}

void describe_depth_anything(ConfigReader& config, ModuleTree& tree) {
  TowerConfig backbone(config, tree, "backbone_config");
  config.require(backbone && backbone->text("model_type", "dinov2") == "dinov2",
                 "backbone_config is not that of a DINOv2");
  add_backbone(backbone, tree);
  const auto widths = stage_sizes(config, "neck_hidden_sizes", {48, 96, 192, 384});
  const Quantity hidden = config.size("reassemble_hidden_size", 384),
                 fused = config.size("fusion_hidden_size", 64), last = config.size("head_hidden_size", 32);
  const Quantity half = half_of(config, fused);
  Module& neck = add_image_module(tree, "neck", "joins layers");
  Tower into(neck, Part::vision);
  add_reassembly(config, into, hidden, widths);
  add_fusion(neck, widths, {fused});
  Tower head(add_image_module(tree, "head", "tells depths"), Part::vision);
  convolve(head, "conv1", fused, half, 3);
  convolve(head, "conv2", half, last, 3);
  convolve(head, "conv3", last, 1, 1);
}

void add_dpt_neck(ConfigReader& config, ModuleTree& tree, const Fusion& of) {
  const auto widths = stage_sizes(config, "neck_hidden_sizes", {96, 192, 384, 768});
  const Quantity hidden("hidden_size", tree.hidden_size);
  Module& neck = add_image_module(tree, "neck", "joins layers");
  Tower into(neck, Part::vision);
  add_reassembly(config, into, hidden, widths);
  const std::string readout = config.text("readout_type", "project");
  config.require(readout == "project" || readout == "ignore" || readout == "add",
                 "readout_type is " + readout + ": no such way is known");
  for (std::size_t i = 0; i < widths.size() && readout == "project"; ++i)
    into.matrix("reassemble_stage.readout_projects." + std::to_string(i) + ".0", Quantity(2) * hidden, hidden,
                true);
  add_fusion(neck, widths, of);
}

// Two convolutions with a norm between: what an image's places are.
void add_segments(ConfigReader& config, ModuleTree& tree, const char* path, const Quantity& fused) {
  Module& head = add_image_module(tree, path, "tells what places are");
  Tower into(head, Part::vision);
  convolve(into, "head.0", fused, fused, 3, false);
  into.norm("head.1", fused, true);
  add_norm_statistics(head, "head.1", fused.value());
  convolve(into, "head.4", fused, label_count(config), 1);
}

void describe_dpt(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("is_hybrid", false), "is_hybrid is true: a DPT over a BiT is not described");
  const std::string& architecture = config.config().architecture();
  const bool segments = architecture.ends_with("ForSemanticSegmentation");
  TowerConfig backbone(config, tree, "backbone_config");
  if (backbone && !segments) {
    config.require(backbone->text("model_type", "") == "dinov2", "backbone_config is not that of a DINOv2");
    add_backbone(backbone, tree);
  } else {
    add_plain_vit(config, tree, "dpt.", {"cls_token"}, 384);
  }
  const Quantity fused = config.size("fusion_hidden_size", 256), half = half_of(config, fused);
  const bool normed = config.flag("use_batch_norm_in_fusion_residual", false);
  add_dpt_neck(config, tree, {fused, config.flag("use_bias_in_fusion_residual", !normed), normed});
  if (segments) {
    add_segments(config, tree, "head", fused);
    if (config.flag("use_auxiliary_head", true)) add_segments(config, tree, "auxiliary_head", fused);
    return;
  }
  Tower head(add_image_module(tree, "head", "tells depths"), Part::vision);
  constexpr std::uint64_t kBefore = 256, kLast = 32;  // by the class
  if (config.flag("add_projection", false)) convolve(head, "projection", kBefore, kBefore, 3);
  convolve(head, "head.0", fused, half, 3);
  convolve(head, "head.2", half, kLast, 3);
  convolve(head, "head.4", kLast, 1, 1);
}

constexpr std::string_view kDepthArchitectures[] = {"DepthAnythingForDepthEstimation"},
                           kDepthTypes[] = {"depth_anything"},
                           kDptArchitectures[] = {"DPTForDepthEstimation", "DPTForSemanticSegmentation"},
                           kDptTypes[] = {"dpt"};

}  // namespace

const Family kDepthAnything = {"depth_anything",       "Depth Anything", kDepthArchitectures, kDepthTypes, {},
                               describe_depth_anything};
const Family kDpt = {"dpt", "DPT", kDptArchitectures, kDptTypes, {}, describe_dpt};

}  // namespace assay::families
