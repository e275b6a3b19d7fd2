// ERNIE 4.5 VL: every layer with experts has two sets of them, one for tokens of text and one for those of images, with
// routers of their own and shared experts for both. Source: transformers 5.23 (ernie4_5_vl_moe), with the names and the
// config of the checkpoints: experts of images are numbered on behind those of text, and sizes come in lists of two.
#include "core/model/families/all_2026.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/families/towers.h"
#include "core/model/limits.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct ErnieExperts {
  Experts text;
  Quantity width, image_width;
  std::uint64_t shared = 0;
};

ErnieExperts read_ernie_experts(ConfigReader& config, ModuleTree& tree) {
  ErnieExperts e;
  if (config.is_list("moe_num_experts")) {  // as many of each
    const auto counts = config.numbers("moe_num_experts").value_or(std::vector<std::uint64_t>{});
    config.require(counts.size() == 2 && counts[0] == counts[1],
                   "moe_num_experts is no list of two equal numbers");
    config.require(counts[0] > 0 && counts[0] <= kMostExperts,
                   "moe_num_experts: no model has so many experts");
    e.text = {Quantity("moe_num_experts", counts[0]), config.size("moe_k", 6).value()};
    config.require(e.text.active <= counts[0], "moe_k exceeds moe_num_experts");
    tree.experts = counts[0], tree.experts_per_token = e.text.active;
  } else {
    e.text = read_experts(config, tree, "moe_num_experts|num_experts", 64, "moe_k|num_experts_per_tok", 6);
  }
  const auto widths = config.numbers("moe_intermediate_size").value_or(std::vector<std::uint64_t>{1536, 512});
  config.require(widths.size() >= 2 && widths[0] > 0 && widths[1] > 0,
                 "moe_intermediate_size is no list of two sizes");
  e.width = {"moe_intermediate_size[0]", widths[0]}, e.image_width = {"moe_intermediate_size[1]", widths[1]};
  e.shared = config.number("moe_num_shared_experts", 2);
  return e;
}

Module ernie_mixture(const ErnieExperts& e, const Decoder& d, bool bias) {
  Module module{"mlp", "experts", {}, {}, {}};
  Module router{"", std::string(title(Part::router)), {}, {}, {}};
  for (const char* name : {"gate.weight", "gate.weight_1"}) {  // of text, of images
    router.tensors.push_back(parameter(name, {d.hidden, e.text.count}, Role::router, Part::router));
    router.tensors.back().input_major = true;
  }
  router.tensors.push_back(parameter("moe_statics.e_score_correction_bias", {2, e.text.count},
                                     Role::router_correction, Part::router));
  router.tensors.back().bias = true;
  module.children.push_back(std::move(router));
  const GatedMlp one{d.hidden, e.width};
  module.children.push_back(routed_experts(one, e.text.count, e.text.active));
  GatedMlp of_images{d.hidden, e.image_width};
  Module images = routed_experts(of_images, e.text.count, 0);  // a token of text visits none of them
  images.title = "experts of images";
  for (std::uint64_t& index : images.repeat.indices) index += e.text.count.value();
  module.children.push_back(std::move(images));
  if (e.shared > 0) {
    GatedMlp shared{d.hidden, Quantity("moe_num_shared_experts", e.shared) * e.width};
    shared.path = "shared_experts", shared.part = Part::shared_expert, shared.bias = bias;
    module.children.push_back(gated_mlp(shared));
  }
  return module;
}

void add_ernie_tower(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1280), patch = vision->size("patch_size", 14);
  const Quantity merge = vision->size("spatial_merge_size", 2), joined = merge * merge * hidden;
  EncoderBlock block{hidden, vision->has("mlp_ratio") ? vision->size("mlp_ratio") * hidden
                                                      : vision->size("intermediate_size", 5120)};
  block.qkv = "attn.qkv", block.o = "attn.proj";
  Module tower{"model.vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("patch_embed.proj", vision->size("in_channels|in_chans", 3) * patch * patch, hidden, false)
      .norm("ln", hidden, true);
  tower.children = {encoder_blocks("blocks.{layer}", read_layers(*vision, "depth|num_hidden_layers", 32),
                                   block, Part::vision)};
  Module resampler{"model.resampler_model", "projector", {}, {}, {}};
  Tower(resampler, Part::projector)
      .matrix("spatial_linear.0", joined, joined, true)
      .matrix("spatial_linear.2", joined, joined, true)
      .norm("spatial_linear.3", joined, true)
      .matrix("temporal_linear.0", vision->size("temporal_merge_size", 2) * joined, joined, true)
      .matrix("temporal_linear.2", joined, joined, true)
      .norm("temporal_linear.3", joined, true)
      .matrix("mlp", joined, text_hidden, true)
      .norm("after_norm", text_hidden, false);
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(resampler));
}

void describe_ernie_vl(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 103424,
                                  .hidden = 2560,
                                  .intermediate = 12288,
                                  .layers = 28,
                                  .heads = 20,
                                  .kv_heads = 4,
                                  .tied = true});
  const ErnieExperts experts = read_ernie_experts(config, tree);
  const bool bias = config.flag("use_bias", false);
  HeadAttention a = d.attention();
  GatedMlp mlp = d.mlp();
  a.qkv_bias = a.output_bias = mlp.bias = bias;
  const auto kinds = layer_texts(config, "mlp_layer_types", d.layers);
  const auto is_dense = [&](std::uint64_t i) { return kinds ? (*kinds)[i] == "dense" : i == 0; };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_dense(i) ? "dense layers" : "MoE layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(a), is_dense(i) ? gated_mlp(mlp) : ernie_mixture(experts, d, bias)};
      });
  add_frame(tree, d, groups);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_ernie_tower(config, tree, d.hidden);
  tree.aliases = {{"model.vision_model.", "vision_model."}};
}

constexpr std::string_view kErnieVlArchitectures[] = {"Ernie4_5_VLMoeForConditionalGeneration",
                                                      "Ernie4_5_VL_MoeForConditionalGeneration"};
constexpr std::string_view kErnieVlTypes[] = {"ernie4_5_vl_moe", "ernie4_5_moe_vl", "ernie4_5_vl_moe_text"};

}  // namespace

const Family kErnie45Vl = {"ernie4_5_vl_moe", "ERNIE 4.5 VL",      kErnieVlArchitectures, kErnieVlTypes, {},
                           describe_ernie_vl, forward_ernie4_5_moe};

}  // namespace assay::families
