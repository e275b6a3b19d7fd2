#include "core/model/families/detectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/model/families/convolutions.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/resnet.h"
#include "core/model/families/towers.h"

namespace assay::families {

using namespace blocks;

std::vector<std::size_t> taken_indices(ConfigReader& backbone, std::size_t stages) {
  std::vector<std::size_t> taken;
  const auto names = backbone.texts("out_features");
  const auto indices = names ? std::nullopt : backbone.numbers("out_indices");
  for (std::size_t i = 0; i <= stages; ++i) {
    const std::string name = i == 0 ? "stem" : "stage" + std::to_string(i);
    const bool is_taken = names     ? std::find(names->begin(), names->end(), name) != names->end()
                          : indices ? std::find(indices->begin(), indices->end(), i) != indices->end()
                                    : i == stages;
    if (is_taken) taken.push_back(i);
  }
  backbone.require(!taken.empty(), "out_features or out_indices name no stage of the backbone");
  return taken;
}

std::vector<Quantity> taken_stages(ConfigReader& backbone, const Quantity& stem,
                                   const std::vector<Quantity>& widths) {
  std::vector<Quantity> taken;
  for (const std::size_t index : taken_indices(backbone, widths.size()))
    taken.push_back(index == 0 ? stem : widths[index - 1]);
  return taken;
}

namespace {

// timm's ResNets of these names (timm/models/resnet.py): torchvision's tensors, without what tells classes.
struct TimmResnet {
  std::string_view name;
  std::array<std::uint64_t, 4> depths;
  bool narrows;  // a layer's middle convolution has a quarter of its channels
};
constexpr TimmResnet kTimmResnets[] = {{"resnet18", {2, 2, 2, 2}, false},
                                       {"resnet34", {3, 4, 6, 3}, false},
                                       {"resnet50", {3, 4, 6, 3}, true},
                                       {"resnet101", {3, 4, 23, 3}, true},
                                       {"resnet152", {3, 8, 36, 3}, true}};

void add_timm_layer(Module& into, const std::string& path, bool narrows, std::uint64_t in,
                    std::uint64_t out) {
  const std::uint64_t inside = narrows ? out / 4 : out;
  const auto convolve = [&](const char* number, std::uint64_t from, std::uint64_t to, std::uint64_t reach) {
    add_normed(into, path + "conv" + number, path + "bn" + number, {from, to, reach});
  };
  convolve("1", in, inside, narrows ? 1 : 3);
  convolve("2", inside, inside, 3);
  if (narrows) convolve("3", inside, out, 1);
  if (in != out) add_normed(into, path + "downsample.0", path + "downsample.1", {in, out});
}

std::vector<Quantity> add_timm_resnet(ConfigReader& config, ModuleTree& tree, const std::string& path,
                                      const TimmTaken& timm, const std::string& name) {
  std::vector<std::uint64_t> takes = timm.stages;
  const auto* const net = std::find_if(std::begin(kTimmResnets), std::end(kTimmResnets),
                                       [&](const TimmResnet& known) { return known.name == name; });
  config.require(net != std::end(kTimmResnets),
                 fmt::format("the backbone is timm's {}: only its plain ResNets are described", name));
  std::sort(takes.begin(), takes.end());
  config.require(!takes.empty() && takes.front() >= 1 && takes.back() <= 4,
                 "out_indices name no stages of the backbone, or what is in front of them");
  const std::uint64_t stem = 64;
  Module& module = add_image_module(tree, path + timm.inside, "ResNet (timm)");
  const Quantity seen = timm.tells_channels ? config.size("num_channels", 3) : Quantity(3);
  add_normed(module, "conv1", "bn1", {seen, stem, 7});
  std::vector<Quantity> taken;
  std::uint64_t in = stem;
  for (std::size_t stage = 0; stage < takes.back(); ++stage) {  // timm drops what stands behind
    const std::uint64_t out = (stem << stage) * (net->narrows ? 4 : 1);
    for (std::uint64_t i = 0; i < net->depths[stage]; ++i) {
      add_timm_layer(module, fmt::format("layer{}.{}.", stage + 1, i), net->narrows, in, out);
      in = out;
      ++tree.layers;
    }
    if (std::find(takes.begin(), takes.end(), stage + 1) != takes.end()) taken.emplace_back("channels", out);
  }
  return taken;
}

std::vector<Quantity> add_own_resnet(ConfigReader& backbone, ModuleTree& tree, const std::string& path) {
  constexpr std::uint64_t kFirstReach = 7;  // by the class
  const Quantity in = backbone.size("embedding_size", 64);
  add_resnet_convolution(add_image_module(tree, path + ".embedder.embedder", "what enters"), "",
                         backbone.size("num_channels", 3), in, kFirstReach);
  return taken_stages(backbone, in, add_resnet_stages(backbone, tree, {path + ".encoder.stages", in}));
}

}  // namespace

std::vector<Quantity> add_detector_backbone(ConfigReader& config, ModuleTree& tree, const std::string& path,
                                            const TimmTaken& timm) {
  TowerConfig backbone(config, tree, "backbone_config");
  if (!backbone) {
    config.require(config.flag("use_timm_backbone", true) && !config.config().section("backbone_kwargs"),
                   "there is no backbone_config, and the backbone is not timm's as the class has it");
    return add_timm_resnet(config, tree, path, timm, config.text("backbone", "resnet50"));
  }
  const std::string kind = backbone->text("model_type", "");
  if (kind == "timm_backbone") {
    const auto stages = backbone->numbers("out_indices").value_or(std::vector<std::uint64_t>{4});
    return add_timm_resnet(*backbone, tree, path, {stages, timm.inside}, backbone->text("backbone", ""));
  }
  config.require(
      kind == "resnet",
      fmt::format("backbone_config.model_type is \"{}\": over such a backbone it is not described", kind));
  return add_own_resnet(*backbone, tree, path);
}

Module detector_layers(std::string path, const char* title, const Quantity& depth, const Quantity& hidden,
                       const Quantity& wide) {
  EncoderBlock block{hidden, wide};
  block.norm1 = "self_attn_layer_norm", block.norm2 = "final_layer_norm";
  block.up = "fc1", block.down = "fc2";
  Module module = encoder_blocks(std::move(path), depth, block, Part::vision);
  module.title = title;
  return module;
}

void add_few_places(Module& layer, const std::string& path, const Quantity& hidden, const Quantity& places) {
  Tower(layer, Part::vision)
      .matrix(path + ".sampling_offsets", hidden, Quantity(2) * places, true)
      .matrix(path + ".attention_weights", hidden, places, true)
      .matrix(path + ".value_proj", hidden, hidden, true)
      .matrix(path + ".output_proj", hidden, hidden, true);
}

void add_deformable_layer(Module& layer, const std::string& path, const DeformableLayer& of) {
  add_few_places(layer, path + "self_attn", of.hidden, of.places);
  Tower(layer, Part::vision)
      .norm(path + "self_attn_layer_norm", of.hidden, true)
      .matrix(path + "fc1", of.hidden, of.wide, true)
      .matrix(path + "fc2", of.wide, of.hidden, true)
      .norm(path + "final_layer_norm", of.hidden, true);
}

void add_pictures(ConfigReader& config, Module& into, const std::string& name,
                  const std::vector<Quantity>& taken, const Quantity& hidden) {
  const std::uint64_t levels = config.size("num_feature_levels", 4).value();
  const std::size_t given = levels == 1 ? 1 : taken.size();
  config.require(levels <= 32 && levels >= given,
                 "num_feature_levels are fewer than the backbone's pictures, or absurdly many");
  for (std::uint64_t i = 0; i < levels; ++i) {
    const std::string path = name + "." + std::to_string(i);
    const bool made = i >= given;
    const Quantity& in = !made ? (levels == 1 ? taken.back() : taken[i]) : i == given ? taken.back() : hidden;
    add_convolution(into, path + ".0", {in, hidden, made ? 3 : 1, true});
    Tower(into, Part::vision).norm(path + ".1", hidden, true);
  }
}

void add_perceptron(Module& into, const std::string& path, const std::vector<Quantity>& widths) {
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    Tower(into, Part::vision).matrix(path + "." + std::to_string(i), widths[i], widths[i + 1], true);
}

void add_box(Module& into, const std::string& path, const Quantity& hidden) {
  add_perceptron(into, path, {hidden, hidden, hidden, 4});
}

}  // namespace assay::families
