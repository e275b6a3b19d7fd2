// Phi-4-multimodal as transformers publishes it: Phi-4-mini behind a SigLIP and a conformer, each with projectors.
#include <bit>

#include "core/model/families/all_2026.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/phi3.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

const std::string kPhiBeside = "model.embed_tokens_extend.";

void add_phi_eyes(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  constexpr SiglipClass kClass = {
      .hidden = 1152, .patch = 14, .image = 448, .intermediate = 4304, .layers = 27};
  Module tower = siglip_tower(*vision, kPhiBeside + "image_embed.img_processor", kClass);
  tower.children.push_back(siglip_head(*vision, kClass));
  add_tower(tree, std::move(tower));
  const Quantity hidden = vision->size("hidden_size", 1152), out = text_width(tree);
  Module projector{kPhiBeside + "image_embed", "projector of images", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("global_img_feature_extensor", {1, 1, hidden})
      .tensor("sub_img_feature_extensor", {1, 1, 1, hidden})
      .matrix("img_projection_up", hidden, out, true)
      .matrix("img_projection_down", out, out, true);
  add_tower(tree, std::move(projector));
}

// MLPs on both sides of attention and of a gated convolution.
Module phi_conformer(ConfigReader& audio, const Quantity& hidden) {
  const Quantity wide = audio.size("intermediate_size", 1536), shown = audio.size("ext_pw_out_channel", 1024);
  const Quantity within = hidden * audio.size("depthwise_multiplier", 1);
  const Quantity across = audio.size("depthwise_separable_out_channel", 1024);
  Module blocks = layers("encoders.{layer}", "blocks", all_layers(read_layers(audio, "num_blocks", 24)));
  Tower block(blocks, Part::audio);
  for (const std::string mlp : {"feed_forward_in", "feed_forward_out"}) {
    block.norm(mlp + ".layer_norm", hidden, true)
        .matrix(mlp + ".gate_up_proj", hidden, Quantity(2) * wide, true)
        .matrix(mlp + ".down_proj", wide, hidden, true);
  }
  for (const char* matrix : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"})
    block.matrix(matrix, hidden, hidden, true);
  for (const char* norm : {"conv.layer_norm", "layer_norm_att", "layer_norm"}) block.norm(norm, hidden, true);
  const auto convolve = [&](const std::string& name, const Quantity& in, const Quantity& out,
                            const Quantity& reach) {
    block.tensor(name + ".weight", {out, in, reach}).tensor(name + ".bias", {out});
  };
  block.tensor("conv.glu.b1", {1, shown, 1}).tensor("conv.glu.b2", {1, shown, 1});
  convolve("conv.glu.ext_pw_conv_1d", hidden, Quantity(2) * shown, 1);
  convolve("conv.dw_sep_conv_1d.dw_conv", 1, within, audio.size("kernel_size", 3));
  convolve("conv.dw_sep_conv_1d.pw_conv", within, across, 1);
  convolve("conv.ext_pw_conv_1d", hidden, shown, 1);
  return blocks;
}

void add_phi_ears(ConfigReader& config, ModuleTree& tree) {
  TowerConfig audio(config, tree, "audio_config");
  if (!audio) return;
  const Quantity hidden = audio->size("hidden_size", 1024), out = text_width(tree);
  const Quantity channels = audio->size("nemo_conv_channels", 1024), bins = audio->size("input_size", 80);
  const auto halvings = std::bit_width(audio->size("time_reduction", 8).value()) - 1;
  const std::uint64_t left = (bins.value() + (std::uint64_t{1} << halvings) - 1) >> halvings;
  const Quantity sides = audio->flag("bias_symmetric", false) ? 1 : 2;
  Module tower{kPhiBeside + "audio_embed.encoder", "audio tower", {}, {}, {}};
  Tower start(tower, Part::audio);
  add_halvings(start, "embed.conv", channels, 3, halvings);
  start.matrix("embed.out", channels * Quantity("bins left", left), hidden, true)
      .tensor("relative_attention_bias_layer.bias_values.weight",
              {sides * audio->size("bias_max_distance", 1000), audio->size("num_attention_heads", 16)});
  for (const char* seen : {"encoder_embedding.global_mean", "encoder_embedding.global_invstd"})
    add_buffer(tower, seen, {bins.value()});
  tower.children.push_back(phi_conformer(*audio, hidden));
  add_tower(tree, std::move(tower));
  Module projector{kPhiBeside + "audio_embed", "projectors of sound", {}, {}, {}};
  for (const std::string kind : {"speech", "vision_speech"})  // alone, and beside images
    Tower(projector, Part::projector)
        .matrix("up_proj_for_" + kind, hidden, out, true)
        .matrix("down_proj_for_" + kind, out, out, true);
  add_tower(tree, std::move(projector));
}

void describe_phi4_multimodal(ConfigReader& config, ModuleTree& tree) {
  describe_phi3_of(
      config, tree,
      {.vocabulary = 200064, .hidden = 3072, .intermediate = 8192, .layers = 32, .heads = 32, .kv_heads = 8});
  add_phi_eyes(config, tree);
  add_phi_ears(config, tree);
}

constexpr std::string_view kPhi4MultimodalArchitectures[] = {"Phi4MultimodalForCausalLM"},
                           kPhi4MultimodalTypes[] = {"phi4_multimodal"};

}  // namespace

const Family kPhi4Multimodal = {"phi4_multimodal",
                                "Phi-4-multimodal",
                                kPhi4MultimodalArchitectures,
                                kPhi4MultimodalTypes,
                                {},
                                describe_phi4_multimodal,
                                nullptr};

}  // namespace assay::families
