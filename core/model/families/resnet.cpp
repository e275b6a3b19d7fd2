// ResNet: convolutions with batch norms in stages, whose layers add to what went in; where channels or sides change, a
// convolution carries that over. Source: transformers 5.23.
#include "core/model/families/resnet.h"

#include "core/model/families/all_watchers.h"
#include "core/model/families/convolutions.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"

namespace assay::families {

using namespace blocks;

void add_resnet_convolution(Module& module, const std::string& path, const Quantity& in, const Quantity& out,
                            std::uint64_t reach) {
  add_normed(module, path + "convolution", path + "normalization", {in, out, reach});
}

namespace {

struct ConvolvedStage {
  Quantity in, out, depth;
  bool narrows = true;  // the layer's middle convolution has a quarter of the channels
  bool shrinks = true;  // the stage halves the sides
  bool averages = false;
};

// The name of what carries over; "": channels and sides stay what they are.
std::string shortcut_of(const ConvolvedStage& of) {
  const bool widens = of.in.value() != of.out.value();
  if (!of.averages) return widens || of.shrinks ? "shortcut." : "";
  if (!of.narrows) return widens ? "shortcut.1." : "shortcut.";
  return of.shrinks ? "shortcut.1." : widens ? "shortcut." : "";
}

// Layers behind the first are alike; the first has what carries over.
void add_stage(ConfigReader& config, ModuleTree& tree, const std::string& path, const ConvolvedStage& of) {
  constexpr std::uint64_t kNarrower = 4;  // by the class
  const Quantity inside("hidden_sizes / 4", of.out.value() / kNarrower);
  config.require(!of.narrows || inside.value() > 0, "hidden_sizes holds what has no quarter");
  for (const bool first : {true, false}) {
    if (!first && of.depth.value() == 1) return;
    Module layer = layers(path + ".layers.{layer}", "convolutions",
                          layers_where(of.depth, [&](std::uint64_t i) { return (i == 0) == first; }));
    const Quantity& in = first ? of.in : of.out;
    if (const std::string shortcut = shortcut_of(of); first && !shortcut.empty())
      add_resnet_convolution(layer, shortcut, of.in, of.out, 1);
    if (of.narrows) {
      add_resnet_convolution(layer, "layer.0.", in, inside, 1);
      add_resnet_convolution(layer, "layer.1.", inside, inside, 3);
      add_resnet_convolution(layer, "layer.2.", inside, of.out, 1);
    } else {
      add_resnet_convolution(layer, "layer.0.", in, of.out, 3);
      add_resnet_convolution(layer, "layer.1.", of.out, of.out, 3);
    }
    tree.modules.push_back(std::move(layer));
  }
}

}  // namespace

std::vector<Quantity> add_resnet_stages(ConfigReader& config, ModuleTree& tree, const ResnetStages& of) {
  const std::string kind = config.text("layer_type", "bottleneck");
  config.require(kind == "bottleneck" || kind == "basic",
                 "layer_type is " + kind + ": no such layer is known");
  auto widths = stage_sizes(config, "hidden_sizes", {256, 512, 1024, 2048});
  const auto depths = stage_sizes(config, "depths", {3, 4, 6, 3});
  config.require(widths.size() == depths.size(), "hidden_sizes and depths are of different lengths");
  Quantity in = of.in;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    config.require(depths[i].value() <= 1000, "depths holds what is no number of layers");
    add_stage(config, tree, of.path + "." + std::to_string(i),
              {in, widths[i], depths[i], kind == "bottleneck",
               i > 0 || config.flag("downsample_in_first_stage", false), of.averages});
    in = widths[i];
    tree.layers += depths[i].value();
  }
  tree.hidden_size = in.value();
  return widths;
}

namespace {

void describe_resnet(ConfigReader& config, ModuleTree& tree) {
  const std::string& architecture = config.config().architecture();
  const bool alone = architecture.ends_with("Model"), backbone = architecture.ends_with("Backbone");
  const std::string prefix = alone || backbone ? "" : "resnet.";
  const Quantity in = config.size("embedding_size", 64);
  constexpr std::uint64_t kFirstReach = 7;  // by the class
  add_resnet_convolution(add_image_module(tree, prefix + "embedder.embedder", "what enters"), "",
                         config.size("num_channels", 3), in, kFirstReach);
  const auto widths = add_resnet_stages(config, tree, {prefix + "encoder.stages", in});
  if (alone)
    tree.aliases = {{"", "resnet."}};
  else if (!backbone)
    add_image_classifier(config, tree, {"classifier.1"}, widths.back());
}

constexpr std::string_view kResnetArchitectures[] = {"ResNetModel", "ResNetBackbone",
                                                     "ResNetForImageClassification"},
                           kResnetTypes[] = {"resnet"};

}  // namespace

const Family kResnet = {"resnet", "ResNet", kResnetArchitectures, kResnetTypes, {}, describe_resnet};

}  // namespace assay::families
