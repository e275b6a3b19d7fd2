// What MiMo-V2.5 and MiMo-V2-Omni see and hear with: a ViT of grouped queries, most of whose blocks have windows and sinks, and a
// small transformer over words of sound, summed over the channels that a tokenizer in a folder of its own makes. Source:
// modeling_mimo_v2.py beside the weights, vLLM 0.33's mimo_v2_omni.py.
#include <algorithm>

#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"
#include "core/system/text.h"

namespace assay::families {
namespace {

using namespace blocks;

Module mimo_blocks(ConfigReader& vision, const Quantity& hidden) {
  const Quantity heads = vision.size("num_heads", 32), keys = vision.size("num_key_value_heads", heads);
  vision.require_divides(keys, heads);
  const Quantity dim = vision.size("qk_channels", 64), values = vision.size("kv_channels", dim);
  const Quantity wide = vision.size("intermediate_size", 4608), depth = read_layers(vision, "depth", 28);
  const bool sinks = vision.flag("use_sink", false);
  const auto listed = vision.numbers("fullatt_block_indexes");
  vision.require(!sinks || listed.has_value(), "fullatt_block_indexes is missing: which blocks have sinks?");
  const auto sees_all = [&](std::uint64_t i) {
    return listed && std::find(listed->begin(), listed->end(), i) != listed->end();
  };
  Module all{"", "blocks", {}, {}, {}};
  const auto groups = group_layers(
      "blocks.{layer}", depth,
      [&](std::uint64_t i) { return sees_all(i) ? "blocks" : "blocks with windows"; },
      [&](Module& layer, std::uint64_t i) {
        Tower block(layer, Part::vision);
        block.norm("norm1", hidden, false)
            .norm("norm2", hidden, false)
            .matrix("attn.qkv", hidden, heads * dim + keys * (dim + values), true)
            .matrix("attn.proj", heads * values, hidden, true)
            .matrix("mlp.gate_proj", hidden, wide, true)
            .matrix("mlp.up_proj", hidden, wide, true)
            .matrix("mlp.down_proj", wide, hidden, true);
        if (sinks && !sees_all(i)) block.tensor("attn.sinks", {heads});
      });
  all.children.assign(groups.begin(), groups.end());
  return all;
}

void add_mimo_eyes(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1280), patch = vision->size("patch_size", 16);
  const Quantity merge = vision->size("spatial_merge_size", 2), joined = merge * merge * hidden;
  Module tower{"visual", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_embed.proj.weight", {hidden, vision->size("in_channels|in_chans", 3),
                                          vision->size("temporal_patch_size", 2), patch, patch});
  Module merger{"merger", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm("ln_q", hidden, false)
      .matrix("mlp.0", joined, joined, false)
      .matrix("mlp.2", joined, vision->size("out_hidden_size", 2048), false);
  tower.children = {mimo_blocks(*vision, hidden), std::move(merger)};
  tree.towers.push_back(std::move(tower));
}

// How many words each channel has: "1025-129-…", or one number for all of them.
std::vector<std::uint64_t> words_of_channels(ConfigReader& audio, std::uint64_t channels) {
  const std::string key = "speech_vocab_size";
  audio.require(channels <= 1000, "audio_channels asks for more than 1000");
  const std::string told = audio.text(key, "");
  std::vector<std::uint64_t> words;
  for (std::size_t at = 0; at <= told.size();) {
    const auto dash = std::min(told.find('-', at), told.size());
    const auto number = parse_u64(std::string_view(told).substr(at, dash - at));
    audio.require(number.has_value() && *number > 0, key + " is neither a number nor a list \"1025-129\"");
    words.push_back(*number);
    at = dash + 1;
  }
  if (words.size() == 1) words.resize(channels, words.front());
  audio.require(words.size() == channels, key + " does not name as many words as there are channels");
  return words;
}

Module mimo_hearing(ConfigReader& audio, const Quantity& width) {
  const Quantity heads = audio.size("input_local_attn_heads"),
                 wide = audio.size("input_local_intermediate_size");
  const Quantity inner =
      heads * audio.size("input_local_head_dim", audio.quotient(width, heads, "input_local_dim / heads"));
  audio.size("input_local_layers");  // required
  Module tower{"audio_encoder.input_local_transformer", "transformer over words of sound", {}, {}, {}};
  if (audio.flag("add_post_norm", true)) Tower(tower, Part::audio).norm("norm", width, false);
  Module layer = layers("layers.{layer}", "layers", all_layers(read_layers(audio, "input_local_layers", 1)));
  Tower(layer, Part::audio)
      .norm("input_layernorm", width, false)
      .norm("post_attention_layernorm", width, false)
      .matrix("self_attn.q_proj", width, inner, true)
      .matrix("self_attn.k_proj", width, inner, true)
      .matrix("self_attn.v_proj", width, inner, true)
      .matrix("self_attn.o_proj", inner, width, false)
      .matrix("mlp.gate_proj", width, wide, false)
      .matrix("mlp.up_proj", width, wide, false)
      .matrix("mlp.down_proj", wide, width, false);
  tower.children = {std::move(layer)};
  return tower;
}

void add_mimo_ears(ConfigReader& config, ModuleTree& tree) {
  TowerConfig audio(config, tree, "audio_config");
  if (!audio) return;
  const Quantity width = audio->size("input_local_dim"), out = audio->size("out_hidden_size");
  Module tables{"speech_embeddings", "words of sound", {}, {}, {}};
  const auto words = words_of_channels(*audio, audio->size("audio_channels").value());
  for (std::size_t i = 0; i < words.size(); ++i)
    Tower(tables, Part::audio).tensor(std::to_string(i) + ".weight", {words[i], width});
  tree.towers.push_back(std::move(tables));
  tree.towers.push_back(mimo_hearing(*audio, width));
  const Quantity joined = audio->size("group_size") * width;
  const std::uint64_t matrices = audio->number("projection_layers", 2);
  audio->require(matrices == 1 || matrices == 2, "projection_layers is neither 1 nor 2");
  Module projector{"audio_encoder", "projector", {}, {}, {}};
  if (matrices == 1)
    Tower(projector, Part::projector).matrix("projection", joined, out, false);
  else
    Tower(projector, Part::projector)
        .matrix("projection.mlp.0", joined, Quantity(4) * joined, false)
        .matrix("projection.mlp.2", Quantity(4) * joined, out, false);
  tree.towers.push_back(std::move(projector));
  tree.not_counted.push_back({"the tokenizer of sound, whose weights lie in audio_tokenizer/", std::nullopt});
}

}  // namespace

void add_mimo_towers(ConfigReader& config, ModuleTree& tree) {
  add_mimo_eyes(config, tree);
  add_mimo_ears(config, tree);
}

}  // namespace assay::families
