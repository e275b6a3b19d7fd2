// Ming-Lite-Omni: a Ling 1 behind Qwen2.5-VL's encoder and FunASR's SAN-M. Source: modeling_bailingmm.py beside the weights
// (github.com/inclusionAI/Ming), SANMEncoder of the library funasr. What speaks lies in a folder of its own; the ears of 1.5, a
// Whisper, and Ming-flash-omni are not described.
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// Attention with a filter over time beside it; the first block widens what comes in.
void fill_own_sanm(Module& layer, const Quantity& in, const Quantity& width, const Quantity& wide,
                   const Quantity& kernel) {
  Tower(layer, Part::audio)
      .norm("norm1", in, true)
      .matrix("self_attn.linear_q_k_v", in, Quantity(3) * width, true)
      .tensor("self_attn.fsmn_block.weight", {width, 1, kernel})
      .matrix("self_attn.linear_out", width, width, true)
      .norm("norm2", width, true)
      .matrix("feed_forward.w_1", width, wide, true)
      .matrix("feed_forward.w_2", wide, width, true);
}

Module own_sanm(ConfigReader& sanm) {
  const Quantity in = sanm.size("input_size"), width = sanm.size("output_size"),
                 wide = sanm.size("linear_units");
  const Quantity kernel = sanm.size("kernel_size");
  sanm.require(
      sanm.text("input_layer", "") == "pe" && sanm.text("selfattention_layer_type", "") == "sanm" &&
          sanm.flag("normalize_before", true),
      "input_layer, selfattention_layer_type or normalize_before: SAN-M is described with pe, sanm, true");
  sanm.size("num_blocks");  // required
  const std::uint64_t depth = read_layers(sanm, "num_blocks", 1).value();
  Module tower{"audio", "encoder of sound (SAN-M)", {}, {}, {}};
  Tower(tower, Part::audio).norm("after_norm", width, true);
  Module first = layers("encoders0.{layer}", "first block", {0});
  fill_own_sanm(first, in, width, wide, kernel);
  tower.children = {std::move(first)};
  if (depth == 1) return tower;
  Module rest = layers("encoders.{layer}", "blocks", all_layers(Quantity(depth - 1)));
  fill_own_sanm(rest, width, width, wide, kernel);
  tower.children.push_back(std::move(rest));
  return tower;
}

// mlp_depth matrices with an activation between each two.
void add_ming_matrices(Tower& into, std::uint64_t depth, std::uint64_t first, const Quantity& width) {
  for (std::uint64_t i = 0; i + 1 < depth; ++i)
    into.matrix(std::to_string(first + 2 * i), width, width, true);
}

void add_ming_ears(ConfigReader& document, ModuleTree& tree, std::uint64_t depth) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  TowerConfig sanm(*audio, tree, "audio_encoder_config_sanm");
  if (!sanm)
    return tree.not_counted.push_back(
        {"the encoder of sound and its projector, which are no SAN-M", std::nullopt});
  add_tower(tree, own_sanm(*sanm));
  const Quantity out = text_width(tree);
  Module projector{"linear_proj_audio", "projector", {}, {}, {}};
  Tower tower(projector, Part::projector);
  tower.tensor("0.weight", {out, audio->size("audio_encoder_output_size"), audio->size("ds_kernel_size")})
      .tensor("0.bias", {out});
  add_ming_matrices(tower, depth, 3, out);
  add_tower(tree, std::move(projector));
}

}  // namespace

void add_ming(ConfigReader& document, ModuleTree& tree) {
  const std::uint64_t depth = document.size("mlp_depth", 2).value();
  document.require(depth <= 100, "mlp_depth asks for more than 100 matrices");
  TowerConfig vision(document, tree, "vision_config");
  if (vision) {
    vision->require(vision->text("model_type", "") == "qwen2_5_vit",
                    "model_type: a vision tower that is not qwen2_5_vit is not described");
    add_qwen2_vision(document, tree, "vision", true);
    const Quantity out = text_width(tree);
    Module projector{"linear_proj", "projector", {}, {}, {}};
    Tower tower(projector, Part::projector);
    tower.matrix("0", vision->size("out_hidden_size", 3584), out, true);
    add_ming_matrices(tower, depth, 2, out);
    add_tower(tree, std::move(projector));
  }
  add_ming_ears(document, tree, depth);
  if (document.has("talker_config"))
    tree.not_counted.push_back({"what speaks, whose weights lie in talker/", std::nullopt});
}

}  // namespace assay::families
