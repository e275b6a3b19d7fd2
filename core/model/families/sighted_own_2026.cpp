// Models over a Qwen3 whose code of 2026 stands beside their weights: Step3-VL behind Meta's Perception Encoder as Step 3.7 has
// it, Isaac behind a SigLIP 2, MOSS-Audio behind a Whisper over a spectrum that convolutions shorten. Names as vLLM 0.33 loads
// them (step_vl.py, isaac.py, moss_audio.py); Isaac's first code calls the language model's parts model.layers, its later one
// model.text_model.layers.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

void add_step_vl(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  vision->require(!vision->flag("use_cls_token", false) && !vision->flag("use_ln_post", false) &&
                      vision->flag("use_ln_pre", true) && vision->flag("use_abs_posemb", true),
                  "use_cls_token or use_ln_post is true, or use_ln_pre or use_abs_posemb false: Step3-VL has "
                  "been described otherwise");
  document.require(!document.flag("projector_bias", false),
                   "projector_bias is true: Step3-VL has been described without");
  add_step_vision(document, tree, text_width(tree));
}

void add_isaac(ConfigReader& document, ModuleTree& tree) {
  tree.aliases.push_back({"model.", "model.text_model."});
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  add_tower(tree, siglip_tower(*vision, "model.vision_embedding.0", kSiglip2));
  const Quantity side = vision->size("pixel_shuffle_scale_factor", 1);
  const Quantity in = side * side * vision->size("hidden_size", 768), between = Quantity(4) * in;
  Module projector{"model.vision_embedding", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("1", in, between, false)
      .matrix("3", between, text_width(tree), false);
  add_tower(tree, std::move(projector));
}

namespace {

// Whisper's blocks, whose keys have no bias.
Module moss_blocks(ConfigReader& audio, const Quantity& width) {
  const Quantity wide = audio.size("encoder_ffn_dim", 5120);
  Module blocks = layers("layers.{layer}", "blocks", all_layers(read_layers(audio, "encoder_layers", 32)));
  Tower(blocks, Part::audio)
      .matrix("self_attn.q_proj", width, width, true)
      .matrix("self_attn.k_proj", width, width, false)
      .matrix("self_attn.v_proj", width, width, true)
      .matrix("self_attn.out_proj", width, width, true)
      .norm("self_attn_layer_norm", width, true)
      .matrix("fc1", width, wide, true)
      .matrix("fc2", wide, width, true)
      .norm("final_layer_norm", width, true);
  return blocks;
}

void add_gated(Module& module, const Quantity& in, const Quantity& between, const Quantity& out) {
  Tower(module, Part::projector)
      .matrix("gate_proj", in, between, false)
      .matrix("up_proj", in, between, false)
      .matrix("down_proj", between, out, false);
}

// How many of the encoder's layers reach layers of the language model by themselves.
std::uint64_t moss_deep_layers(ConfigReader& document, ConfigReader& audio) {
  const auto listed = audio.numbers("deepstack_encoder_layer_indexes");
  const std::uint64_t deep = listed ? listed->size() : 3;
  return std::min(deep, document.optional_number("deepstack_num_inject_layers").value_or(deep));
}

}  // namespace

void add_moss_audio(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  const Quantity width = audio->size("d_model", 1280), made = audio->size("output_dim", 1280);
  const Quantity channels = audio->size("downsample_hidden_size", 480), one = 1;
  const Quantity left("num_mel_bins / 8", (audio->size("num_mel_bins", 128).value() + 7) / 8);
  Module tower{"audio_encoder", "encoder of sound", {}, {}, {}};
  Tower whole(tower, Part::audio);
  for (const std::string name : {"conv1", "conv2", "conv3"})
    whole.tensor(name + ".weight", {channels, name == "conv1" ? one : channels, 3, 3})
        .tensor(name + ".bias", {channels});
  whole.matrix("stem_proj", channels * left, width, true).norm("layer_norm", width, true);
  if (made.value() != width.value()) whole.matrix("out_proj", width, made, false);
  tower.children = {moss_blocks(*audio, width)};
  add_tower(tree, std::move(tower));

  const Quantity between = document.size("adapter_hidden_size", 8192), out = text_width(tree);
  Module adapter{"audio_adapter", "projector", {}, {}, {}};
  add_gated(adapter, made, between, out);
  add_tower(tree, std::move(adapter));
  const std::uint64_t deep = moss_deep_layers(document, *audio);
  if (deep == 0) return;
  Module mergers =
      layers("deepstack_audio_merger_list.{layer}", "projectors of early layers", all_layers(Quantity(deep)));
  add_gated(mergers, made, between, out);
  add_tower(tree, std::move(mergers));
}

// openPangu-VL: several layers of the tower leave through a merger each. Its configuration class is not at hand: the config says
// all. Names as vLLM 0.33's openpangu_vl.py loads them, which takes those of releases before transformers 4.52, too.
void add_pangu_vl(ConfigReader& document, ModuleTree& tree) {
  tree.aliases.push_back({"model.visual.", "visual."});
  tree.aliases.push_back({"model.language_model.", "model."});
  TowerConfig vision(document, tree, "vision_config");
  document.require(static_cast<bool>(vision), "vision_config is missing");
  const Quantity hidden = vision->size("hidden_size"), patch = vision->size("patch_size"),
                 wide = vision->size("intermediate_size"), out = vision->size("out_hidden_size");
  const Quantity merge = vision->size("spatial_merge_size"), joined = merge * merge * hidden;
  const bool gated = vision->text("hidden_act", "") == "silu";
  vision->require(vision->has("hidden_act"), "hidden_act is missing: are its MLPs gated?");
  Module tower{"model.visual", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_embed.proj.weight",
              {hidden, vision->size("in_channels"), vision->size("temporal_patch_size"), patch, patch})
      .norm("final_layernorm", hidden, false);
  EncoderBlock block{hidden, wide};
  block.norm_bias = false;
  block.qkv = "attn.qkv", block.o = "attn.proj";
  if (gated) block.gate = "mlp.gate_proj";
  block.up = "mlp.up_proj", block.down = "mlp.down_proj";
  vision->size("depth");  // required: read_layers would take a default
  tower.children = {encoder_blocks("blocks.{layer}", read_layers(*vision, "depth", 1), block, Part::vision)};
  const auto* selected = "mm_unit_vision_select_layer";
  const auto& keys = vision->config().document();
  const auto chosen = keys.find(selected);
  vision->require(chosen == keys.end() || chosen->is_array(), std::string(selected) + " is not a list");
  const std::size_t count = chosen == keys.end() ? 2 : chosen->size();
  vision->require(count > 0 && count <= 1000, std::string(selected) + " is empty, or too long");
  Module mergers = layers("merger.{layer}", "patch mergers", all_layers(Quantity(count)));
  Tower(mergers, Part::projector)
      .norm("ln_q", hidden, false)
      .matrix("mlp.0", joined, joined, true)
      .matrix("mlp.2", joined, out, true);
  tower.children.push_back(std::move(mergers));
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector).matrix("vision_projection.fc1", out, text_width(tree), true);
  tower.children.push_back(std::move(projector));
  add_tower(tree, std::move(tower));
}

}  // namespace assay::families
