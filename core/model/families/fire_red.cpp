// FireRedASR-LLM and FireRedASR2 (github.com/FireRedTeam/FireRedASR): a conformer with places relative to each other, whose
// frames are joined, in front of a Qwen2. Under the names of its own code, which vLLM 0.33 (fireredasr2.py) takes.
#include "core/model/families/sighted_parts.h"
#include "core/model/families/sound_towers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

Module fire_red_blocks(ConfigReader& audio, const Quantity& width) {
  const Quantity heads = audio.size("n_head"), kernel = audio.size("kernel_size", 33);
  const Quantity each = audio.quotient(width, heads, "d_model / n_head");
  const Quantity twice = Quantity(2) * width, four = Quantity(4) * width;
  audio.size("n_layers_enc");  // required: read_layers would take a default
  Module blocks = layers("layer_stack.{layer}", "blocks", all_layers(read_layers(audio, "n_layers_enc", 1)));
  Tower block(blocks, Part::audio);
  for (const std::string mlp : {"ffn1", "ffn2"}) {
    block.norm(mlp + ".net.0", width, true)
        .matrix(mlp + ".net.1", width, four, true)
        .matrix(mlp + ".net.4", four, width, true);
  }
  for (const std::string one : {"q", "k", "v"}) {
    block.matrix("mhsa.w_" + one + "s", width, width, false).norm("mhsa.layer_norm_" + one, width, true);
  }
  block.matrix("mhsa.fc", width, width, false)
      .matrix("mhsa.linear_pos", width, width, false)
      .tensor("mhsa.pos_bias_u", {heads, each})
      .tensor("mhsa.pos_bias_v", {heads, each})
      .norm("conv.pre_layer_norm", width, true)
      .tensor("conv.pointwise_conv1.weight", {four, width, 1})
      .tensor("conv.depthwise_conv.weight", {twice, 1, kernel})
      .norm("conv.batch_norm", twice, true)
      .tensor("conv.pointwise_conv2.weight", {width, twice, 1})
      .norm("layer_norm", width, true);
  return blocks;
}

}  // namespace

std::string_view fire_red_text(const ModelConfig&) {
  return "qwen2";
}

void add_fire_red(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_encoder_conf");
  document.require(static_cast<bool>(audio), "audio_encoder_conf is missing");
  const Quantity width = audio->size("d_model"), bins = audio->size("idim"), channels = 32;
  audio->require(bins.value() >= 7, "idim is less than the convolutions need");
  const Quantity left("bins that are left", ((bins.value() - 1) / 2 - 1) / 2);
  Module tower{"encoder", "encoder of sound (conformer)", {}, {}, {}};
  Tower(tower, Part::audio)
      .tensor("input_preprocessor.conv.0.weight", {channels, 1, 3, 3})
      .tensor("input_preprocessor.conv.0.bias", {channels})
      .tensor("input_preprocessor.conv.2.weight", {channels, channels, 3, 3})
      .tensor("input_preprocessor.conv.2.bias", {channels})
      .matrix("input_preprocessor.out", channels * left, width, true);
  constexpr std::uint64_t kPlaces = 5000;  // on each side
  add_buffer(tower, "positional_encoding.pe", {1, 2 * kPlaces - 1, width.value()});
  tower.children = {fire_red_blocks(*audio, width)};
  add_tower(tree, std::move(tower));
  const Quantity out = text_width(tree);
  Module projector{"encoder_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("linear1", width * document.size("encoder_downsample_rate", 2), out, true)
      .matrix("linear2", out, out, true);
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
