// Swin, which attends within windows, in stages that halve an image's sides and double its width; its second version, which
// makes scores of distances by an MLP; and Donut's, which has no last norm. Source: transformers 5.24.
#include "core/model/families/all_encoders.h"
#include "core/model/families/detectors.h"
#include "core/model/families/image_parts.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Stage {
  Quantity width, depth, heads;
  bool last = false;
};

// Scores by distance within a window.
void add_window_scores(Module& blocks, const Stage& stage, const SwinStages& of) {
  const std::string path = "attention.self.";
  Tower block(blocks, of.part);
  if (of.kind == SwinKind::second) {
    constexpr std::uint64_t kWide = 512;  // by the class
    block.tensor(path + "logit_scale", {stage.heads, 1, 1})
        .matrix(path + "continuous_position_bias_mlp.0", 2, kWide, true)
        .matrix(path + "continuous_position_bias_mlp.2", kWide, stage.heads, false);
    return;
  }
  const Quantity distances("2 window_size - 1", 2 * of.window.value() - 1);
  block.tensor(path + "relative_position_bias_table", {distances * distances, stage.heads});
  const std::uint64_t seen = (of.window * of.window).value();  // which releases may hold
  add_buffer(blocks, path + "relative_position_index", {seen, seen});
}

Module swin_blocks(ConfigReader& config, const std::string& path, const Stage& stage, const SwinStages& of) {
  const bool bias = config.flag("qkv_bias", true);
  const double ratio = config.real("mlp_ratio", 4, 0.001, 1000);
  const auto wide = static_cast<std::uint64_t>(ratio * static_cast<double>(stage.width.value()));
  config.require(wide > 0, "mlp_ratio leaves the MLP without a width");
  config.require_divides(stage.heads, stage.width);
  Module blocks = layers(path + ".blocks.{layer}", "blocks", all_layers(stage.depth));
  Tower(blocks, of.part)
      .norm("layernorm_before", stage.width, true)
      .norm("layernorm_after", stage.width, true)
      .matrix("attention.self.query", stage.width, stage.width, bias)
      .matrix("attention.self.key", stage.width, stage.width, bias && of.kind != SwinKind::second)
      .matrix("attention.self.value", stage.width, stage.width, bias)
      .matrix("attention.output.dense", stage.width, stage.width, true)
      .matrix("intermediate.dense", stage.width, {"mlp_ratio × width", wide}, true)
      .matrix("output.dense", {"mlp_ratio × width", wide}, stage.width, true);
  add_window_scores(blocks, stage, of);
  return blocks;
}

void add_stage(ConfigReader& config, std::vector<Module>& into, const std::string& path, const Stage& stage,
               const SwinStages& of) {
  into.push_back(swin_blocks(config, path, stage, of));
  if (stage.last) return;
  const Quantity joined = Quantity(4) * stage.width, next = Quantity(2) * stage.width;
  Module joins{path + ".downsample", "joins four patches", {}, {}, {}};
  Tower(joins, of.part)
      .matrix("reduction", joined, next, false)
      .norm("norm", of.kind == SwinKind::second ? next : joined, true);
  into.push_back(std::move(joins));
}

}  // namespace

Quantity add_swin_stages(ConfigReader& config, std::vector<Module>& into, const std::string& path,
                         const SwinStages& of) {
  config.require(of.depths.size() == of.heads.size(), "depths and heads of stages are of different lengths");
  config.require(of.window.value() < 1'000'000, "window_size is no size of a window");
  Quantity width = of.width;
  for (std::size_t i = 0; i < of.depths.size(); ++i) {
    config.require(of.depths[i].value() <= 1000, "depths holds what is no number of layers");
    if (i > 0) width = Quantity(2) * width;
    add_stage(config, into, path + "." + std::to_string(i),
              {width, of.depths[i], of.heads[i], i + 1 == of.depths.size()}, of);
  }
  return width;
}

namespace {

void add_swin_entry(ConfigReader& config, ModuleTree& tree, const std::string& prefix, const Quantity& width,
                    SwinKind kind) {
  const Sides patch = pixel_sides(config, "patch_size", 4);
  Tower enters(add_image_module(tree, prefix + "embeddings", "what enters"), Part::vision);
  enters
      .tensor("patch_embeddings.projection.weight",
              {width, config.size("num_channels", 3), patch.height, patch.width})
      .tensor("patch_embeddings.projection.bias", {width})
      .norm("norm", width, true);
  if (config.config().architecture().ends_with("ForMaskedImageModeling"))
    enters.tensor("mask_token", {1, 1, width});
  if (config.flag("use_absolute_embeddings", false))
    enters.tensor(
        "position_embeddings",
        {1, kind == SwinKind::first ? seen_patches(config, 4) : seen_patches(config, 4) + Quantity(1),
         width});
}

}  // namespace

Quantity add_swin(ConfigReader& config, ModuleTree& tree, const std::string& prefix, SwinKind kind) {
  const SwinStages of{.width = config.size("embed_dim", 96),
                      .window = config.size("window_size", 7),
                      .depths = stage_sizes(config, "depths", {2, 2, 6, 2}),
                      .heads = stage_sizes(config, "num_heads", {3, 6, 12, 24}),
                      .kind = kind};
  add_swin_entry(config, tree, prefix, of.width, kind);
  Quantity width = add_swin_stages(config, tree.modules, prefix + "encoder.layers", of);
  for (const Quantity& depth : of.depths) tree.layers += depth.value();
  tree.hidden_size = width.value();
  return width;
}

std::vector<Quantity> add_swin_backbone(ConfigReader& config, ModuleTree& tree, const std::string& prefix) {
  const Quantity last = add_swin(config, tree, prefix, SwinKind::first);
  std::vector<Quantity> widths{config.size("embed_dim", 96)};  // of the stem, and behind each stage
  const std::size_t stages = stage_sizes(config, "depths", {2, 2, 6, 2}).size();
  for (std::size_t i = 1; i <= stages; ++i)
    widths.emplace_back("embed_dim × 2^n", widths.front().value() << (i - 1));
  std::vector<Quantity> taken;
  Tower norms(add_image_module(tree, trimmed(prefix), "norms"), Part::vision);
  for (const std::size_t index : taken_indices(config, stages)) {
    taken.push_back(widths[index]);
    norms.norm("hidden_states_norms." + (index == 0 ? "stem" : "stage" + std::to_string(index)),
               widths[index], true);
  }
  norms.norm("swin.layernorm", last, true);
  return taken;
}

namespace {

void describe_swin_of(ConfigReader& config, ModuleTree& tree, const ImageKin& kin, SwinKind kind) {
  const std::string& architecture = config.config().architecture();
  const bool alone = is_alone(config, kin);
  const std::string prefix = alone ? "" : kin.prefix;
  const Quantity width = add_swin(config, tree, prefix, kind);
  if (kind != SwinKind::donut)
    Tower(add_image_module(tree, trimmed(prefix), "last norm"), Part::vision).norm("layernorm", width, true);
  if (alone)
    tree.aliases = {{"", kin.prefix}};
  else if (architecture.ends_with("ForImageClassification"))
    add_image_classifier(config, tree, {"classifier"}, width);
  else {
    const Quantity stride = config.size("encoder_stride", 32), pixels = stride * stride;
    Tower(add_image_module(tree, "decoder", "what guesses pixels"), Part::vision)
        .tensor("0.weight", {pixels * config.size("num_channels", 3), width, 1, 1})
        .tensor("0.bias", {pixels * config.size("num_channels", 3)});
  }
}

void describe_swin(ConfigReader& config, ModuleTree& tree) {
  describe_swin_of(config, tree, {"swin.", "Swin", 4}, SwinKind::first);
}
void describe_swin2(ConfigReader& config, ModuleTree& tree) {
  describe_swin_of(config, tree, {"swinv2.", "Swinv2", 4}, SwinKind::second);
}
void describe_donut_swin(ConfigReader& config, ModuleTree& tree) {
  describe_swin_of(config, tree, {"donut.", "DonutSwin", 4}, SwinKind::donut);
}

constexpr std::string_view kSwinArchitectures[] = {"SwinModel", "SwinForImageClassification",
                                                   "SwinForMaskedImageModeling"},
                           kSwinTypes[] = {"swin"},
                           kSwin2Architectures[] = {"Swinv2Model", "Swinv2ForImageClassification",
                                                    "Swinv2ForMaskedImageModeling"},
                           kSwin2Types[] = {"swinv2"},
                           kDonutSwinArchitectures[] = {"DonutSwinModel", "DonutSwinForImageClassification"},
                           kDonutSwinTypes[] = {"donut-swin"};

}  // namespace

const Family kSwin = {"swin", "Swin", kSwinArchitectures, kSwinTypes, {}, describe_swin};
const Family kSwin2 = {"swinv2", "Swin V2", kSwin2Architectures, kSwin2Types, {}, describe_swin2};
const Family kDonutSwin = {"donut_swin", "Donut's Swin",     kDonutSwinArchitectures, kDonutSwinTypes,
                           {},           describe_donut_swin};

}  // namespace assay::families
