// Phi-4-multimodal as transformers publishes it: Phi-4-mini behind a SigLIP and a conformer, each with projectors. Microsoft's
// own names are phi_sighted.cpp's.
#include <bit>

#include "core/model/families/all_2026.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/phi3.h"
#include "core/model/families/phi_sighted.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

const std::string kPhiBeside = "model.embed_tokens_extend.";

// MLPs on both sides of attention and of a gated convolution.
Module phi_conformer(ConfigReader& audio, const Quantity& hidden, PhiCode code) {
  const bool own = code == PhiCode::microsoft;
  const Quantity wide = audio.size("intermediate_size|linear_units", 1536),
                 shown = audio.size("ext_pw_out_channel", 1024);
  const Quantity within = hidden * audio.size("depthwise_multiplier", 1);
  const Quantity across = audio.size("depthwise_separable_out_channel|depthwise_seperable_out_channel", 1024);
  Module blocks = layers("encoders.{layer}", "blocks", all_layers(read_layers(audio, "num_blocks", 24)));
  Tower block(blocks, Part::audio);
  for (const std::string mlp : {"feed_forward_in", "feed_forward_out"}) {
    block.norm(mlp + ".layer_norm", hidden, true)
        .matrix(mlp + (own ? ".net.0.linear" : ".gate_up_proj"), hidden, Quantity(2) * wide, true)
        .matrix(mlp + (own ? ".net.2" : ".down_proj"), wide, hidden, true);
  }
  for (const std::string at : {"q", "k", "v"})
    block.matrix("self_attn." + (own ? "linear_" + at : at + "_proj"), hidden, hidden, true);
  block.matrix(own ? "self_attn.linear_out" : "self_attn.o_proj", hidden, hidden, true);
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

}  // namespace

void add_phi_eyes(ConfigReader& vision, ModuleTree& tree, PhiCode code) {
  const bool own = code == PhiCode::microsoft;
  constexpr SiglipClass kClass = {
      .hidden = 1152, .patch = 14, .image = 448, .intermediate = 4304, .layers = 27};
  Module tower = siglip_tower(vision, kPhiBeside + "image_embed.img_processor", kClass);
  tower.children.push_back(siglip_head(vision, kClass));
  add_tower(tree, std::move(tower));
  const Quantity hidden = vision.size("hidden_size", 1152), out = text_width(tree);
  Module projector{kPhiBeside + "image_embed", "projector of images", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor(own ? "glb_GN" : "global_img_feature_extensor", {1, 1, hidden})
      .tensor(own ? "sub_GN" : "sub_img_feature_extensor", {1, 1, 1, hidden})
      .matrix(own ? "img_projection.0" : "img_projection_up", hidden, out, true)
      .matrix(own ? "img_projection.2" : "img_projection_down", out, out, true);
  add_tower(tree, std::move(projector));
}

// So much of a conformer's config is told within others of Microsoft's.
static Quantity within(ConfigReader& audio, std::string_view section, const char* key,
                       std::uint64_t class_default) {
  const auto part = audio.config().section(section);
  if (!part) return audio.size(key, class_default);
  ConfigReader reader(*part, "audio_processor");
  return reader.size(key, class_default);
}

void add_phi_ears(ConfigReader& audio, ModuleTree& tree, PhiCode code) {
  const bool own = code == PhiCode::microsoft;
  const Quantity hidden = audio.size("hidden_size|attention_dim", 1024), out = text_width(tree);
  const Quantity channels = own ? within(audio, "nemo_conv_settings", "conv_channels", 1024)
                                : audio.size("nemo_conv_channels", 1024);
  const Quantity reach = own ? within(audio, "relative_attention_bias_args", "t5_bias_max_distance", 1000)
                             : audio.size("bias_max_distance", 1000);
  const Quantity bins = audio.size("input_size", 80);
  const auto halvings = std::bit_width(audio.size("time_reduction", 8).value()) - 1;
  const std::uint64_t left = (bins.value() + (std::uint64_t{1} << halvings) - 1) >> halvings;
  const Quantity sides = audio.flag("bias_symmetric", false) ? 1 : 2;
  Module tower{kPhiBeside + "audio_embed.encoder", "audio tower", {}, {}, {}};
  Tower start(tower, Part::audio);
  add_halvings(start, "embed.conv", channels, 3, halvings);
  start.matrix("embed.out", channels * Quantity("bins left", left), hidden, true)
      .tensor("relative_attention_bias_layer.bias_values.weight",
              {sides * reach, audio.size("num_attention_heads|attention_heads", 16)});
  for (const char* seen : {"encoder_embedding.global_mean", "encoder_embedding.global_invstd"}) {
    if (own)  // parameters in that code, buffers in the other
      start.tensor(seen, {bins});
    else
      add_buffer(tower, seen, {bins.value()});
  }
  tower.children.push_back(phi_conformer(audio, hidden, code));
  add_tower(tree, std::move(tower));
  Module projector{kPhiBeside + "audio_embed", "projectors of sound", {}, {}, {}};
  Tower into(projector, Part::projector);
  for (const std::string kind : {"speech", "vision"}) {  // alone, and beside images
    const std::string other = kind == "speech" ? "speech" : "vision_speech";
    into.matrix(own ? "audio_projection." + kind + ".0" : "up_proj_for_" + other, hidden, out, true)
        .matrix(own ? "audio_projection." + kind + ".2" : "down_proj_for_" + other, out, out, true);
  }
  add_tower(tree, std::move(projector));
}

namespace {

void describe_phi4_multimodal(ConfigReader& config, ModuleTree& tree) {
  describe_phi3_of(
      config, tree,
      {.vocabulary = 200064, .hidden = 3072, .intermediate = 8192, .layers = 32, .heads = 32, .kv_heads = 8});
  TowerConfig vision(config, tree, "vision_config"), audio(config, tree, "audio_config");
  if (vision) add_phi_eyes(*vision, tree, PhiCode::transformers);
  if (audio) add_phi_ears(*audio, tree, PhiCode::transformers);
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
