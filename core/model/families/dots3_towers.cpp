// What dots3-note sees and hears with: a ViT whose last blocks hold ever more experts, and a Whisper with rotations and
// gated MLPs behind convolutions over the spectrum. Names: the release, as transformers 5.23 takes them back
// (conversion_mapping.py, dots3_note_vision_encoder, dots3_note_audio_encoder); sizes: configuration_dots3_note.py.
#include "core/model/families/dots3_towers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/sighted_parts.h"
#include "core/model/families/told_layers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// --- seeing ----------------------------------------------------------------------------------------------------------

// A list that holds -1 where a block has none.
std::optional<std::vector<std::uint64_t>> listed_experts(const ConfigReader& vision, std::size_t blocks) {
  const ParsedJson& text = vision.config().text();
  const auto list = text.find("pyramid_num_routed");
  if (list == text.end() || list->is_null()) return std::nullopt;
  vision.require(list->is_array() && list->size() == blocks, "pyramid_num_routed does not list every block");
  std::vector<std::uint64_t> experts;
  for (const ParsedJson& entry : *list) {
    vision.require(entry.is_number_integer(), "pyramid_num_routed holds what is no number");
    const bool some = entry.is_number_unsigned() || entry.get<std::int64_t>() > 0;
    experts.push_back(some ? entry.get<std::uint64_t>() : 0);
  }
  return experts;
}

// How many experts each block has; 0: an MLP. The release lists them, of a block without any as -1; transformers writes which
// are sparse, and what differs from num_local_experts block by block.
std::vector<std::uint64_t> experts_of_blocks(ConfigReader& vision, const Quantity& depth) {
  const std::uint64_t all = vision.size("num_local_experts", 64).value();
  std::vector<std::uint64_t> experts(depth.value());
  if (auto listed = listed_experts(vision, experts.size())) return std::move(*listed);
  const auto types = layer_texts(vision, "mlp_layer_types", depth);
  for (std::size_t i = 0; i < experts.size(); ++i) {
    if (types)
      experts[i] = (*types)[i] == "sparse" ? all : 0;
    else
      experts[i] = i < 25 ? 0 : std::min<std::uint64_t>(4 * (i - 24), 64);
  }
  visit_told_layers(vision, experts.size(), [&](std::size_t i, const ModelConfig& own) {
    ConfigReader told(own, "per_layer_config");
    if (experts[i] > 0 && told.has("num_local_experts")) experts[i] = told.size("num_local_experts").value();
  });
  return experts;
}

// fc1 is the gate, fc3 goes up and fc2 down.
void add_numbered_mlp(Tower& tower, const std::string& path, const Quantity& hidden, const Quantity& wide,
                      bool bias) {
  tower.matrix(path + ".fc1", hidden, wide, bias)
      .matrix(path + ".fc2", wide, hidden, bias)
      .matrix(path + ".fc3", hidden, wide, bias);
}

void add_seeing_experts(Module& block, const Quantity& hidden, const Quantity& wide, std::uint64_t count,
                        std::uint64_t active) {
  const Quantity experts("num_local_experts", count);
  Tower(block, Part::vision)
      .tensor("mlp.gate_weight", {experts, hidden})
      .tensor("mlp.router_bias", {experts});
  Module routed{"", "experts", {}, {}, {}};
  routed.repeat = {Repeat::Over::experts, all_layers(experts), experts, std::min(active, count)};
  Tower one(routed, Part::vision);
  add_numbered_mlp(one, "mlp.experts.{expert}", hidden, wide, false);
  block.children.push_back(std::move(routed));
}

Module seeing_frame(ConfigReader& vision, const Quantity& hidden) {
  const Quantity patch = vision.size("patch_size", 14), merge = vision.size("spatial_merge_size", 2);
  const Quantity joined = merge * merge * hidden;
  Module tower{"vision_encoder", "vision tower (with experts)", {}, {}, {}};
  Tower own(tower, Part::vision);
  own.tensor("patch_embed.proj.weight", {hidden, vision.size("num_channels", 3), patch, patch})
      .tensor("patch_embed.proj.bias", {hidden})
      .norm("patch_embed.norm", hidden, false);
  if (vision.flag("post_norm", true)) own.norm("post_trunk_norm", hidden, false);
  Module merger{"adapter", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm("ln_q", hidden, true)
      .matrix("mlp.0", joined, joined, true)
      .matrix("mlp.2", joined, vision.size("adapter_out_dim", 5120), true);
  tower.children = {std::move(merger)};
  return tower;
}

Module seeing(ConfigReader& vision) {
  // The release's hidden_size is the width that the adapter leads to.
  const Quantity hidden = vision.size("embed_dim|hidden_size", 1536);
  const Quantity heads = vision.size("num_heads|num_attention_heads", 24);
  const Quantity head_dim = vision.quotient(hidden, heads, "hidden_size / num_attention_heads");
  const Quantity wide = vision.size("intermediate_size", 4224),
                 narrow = vision.size("moe_intermediate_size", 2112);
  const Quantity depth = read_layers(vision, "num_hidden_layers", 42);
  const bool bias = vision.flag("use_bias|attention_bias", false), mlp_bias = vision.flag("mlp_bias", false);
  const bool head_norms = vision.flag("use_qk_norm", true);
  const std::uint64_t active = vision.size("num_experts_per_tok", 2).value();
  const auto experts = experts_of_blocks(vision, depth);
  Module tower = seeing_frame(vision, hidden);
  auto groups = group_layers(
      "blocks.{layer}", depth,
      [&](std::uint64_t i) {
        return experts[i] == 0 ? "blocks" : "blocks of " + std::to_string(experts[i]) + " experts";
      },
      [&](Module& block, std::uint64_t i) {
        Tower own(block, Part::vision);
        own.norm("norm_1", hidden, false)
            .norm("norm_2", hidden, false)
            .matrix("attn.qkv", hidden, Quantity(3) * hidden, bias)
            .matrix("attn.proj", hidden, hidden, bias);
        if (head_norms) own.norm("attn.q_norm", head_dim, false).norm("attn.k_norm", head_dim, false);
        if (experts[i] == 0)
          add_numbered_mlp(own, "mlp", hidden, wide, mlp_bias);
        else
          add_seeing_experts(block, hidden, narrow, experts[i], active);
      });
  for (Module& group : groups) tower.children.push_back(std::move(group));
  return tower;
}

// --- hearing ---------------------------------------------------------------------------------------------------------

struct Ears {
  Quantity hidden, wide, layers, mels;
};

// The release keeps them in an object under Whisper's keys.
Ears read_ears(ConfigReader& audio, ModuleTree& tree) {
  TowerConfig whisper(audio, tree, "whisper_config");
  ConfigReader& told = whisper ? *whisper : audio;
  return {told.size("d_model|hidden_size", 1280), told.size("encoder_ffn_dim|intermediate_size", 5120),
          read_layers(told, "encoder_layers|num_hidden_layers", 32),
          told.size("num_mel_bins|feature_size", 128)};
}

Module hearing_layers(ConfigReader& audio, const Ears& ears) {
  const Quantity& hidden = ears.hidden;
  const bool bias = audio.flag("attention_bias", true);
  Module each = layers("layers.{layer}", "blocks", all_layers(ears.layers));
  Tower(each, Part::audio)
      .norm("self_attn_layer_norm", hidden, false)
      .norm("final_layer_norm", hidden, false)
      .matrix("self_attn.q_proj", hidden, hidden, bias)
      .matrix("self_attn.k_proj", hidden, hidden, false)
      .matrix("self_attn.v_proj", hidden, hidden, bias)
      .matrix("self_attn.out_proj", hidden, hidden, bias)
      .matrix("fc1", hidden, Quantity(2) * ears.wide, true)
      .matrix("fc2", ears.wide, hidden, true);
  return each;
}

Module hearing(ConfigReader& audio, ModuleTree& tree) {
  const Ears ears = read_ears(audio, tree);
  const Quantity channels = audio.size("downsample_hidden_size", 480);
  const Quantity bins("num_mel_bins / 8, rounded up", (ears.mels.value() + 7) / 8);  // halved three times
  Module tower{"audio_encoder.dots_encoder.speech_encoder", "encoder of sound", {}, {}, {}};
  Tower own(tower, Part::audio);
  for (int i = 1; i <= 3; ++i) {
    const std::string name = "conv2d" + std::to_string(i);
    own.tensor(name + ".weight", {channels, i == 1 ? Quantity(1) : channels, 3, 3})
        .tensor(name + ".bias", {channels});
  }
  own.matrix("conv_out", channels * bins, ears.hidden, false).norm("layer_norm", ears.hidden, false);
  tower.children = {hearing_layers(audio, ears)};
  return tower;
}

}  // namespace

void add_dots3_towers(ConfigReader& config, ModuleTree& tree) {
  if (TowerConfig vision(config, tree, "vision_config"); vision) add_tower(tree, seeing(*vision));
  TowerConfig audio(config, tree, "audio_config");
  if (!audio) return;
  add_tower(tree, hearing(*audio, tree));
  const Quantity in = audio->size("whisper_adapter_in_dim|adapter_input_size", 1280);
  const Quantity out = audio->size("whisper_adapter_out_dim|adapter_output_size|adapter_out_dim", 5120);
  Module adapter{"audio_encoder.audio_adapter", "projector of sound", {}, {}, {}};
  Tower(adapter, Part::projector)
      .norm("proj.0", in, true)
      .matrix("proj.1", in, out, true)
      .matrix("proj.3", out, out, true);
  add_tower(tree, std::move(adapter));
}

}  // namespace assay::families
