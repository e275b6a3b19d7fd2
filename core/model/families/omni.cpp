// Qwen2.5-Omni and Qwen3-Omni: the thinker's language model, a Qwen2 and a Qwen3-MoE, and its towers.
#include "core/model/families/omni.h"

#include "core/model/families/all.h"
#include "core/model/families/hearing.h"
#include "core/model/families/seeing_forward.h"
#include "core/model/families/sparse_layers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_omni_text(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 152064,
                                  .hidden = 3584,
                                  .intermediate = 18944,
                                  .layers = 28,
                                  .heads = 28,
                                  .kv_heads = 4});
  HeadAttention a = d.attention();
  a.qkv_bias = true;
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

void describe_omni3_text(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 3584, .hidden = 2048, .intermediate = 18944, .layers = 28, .heads = 28, .kv_heads = 4});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  const Mixture m{d.hidden,
                  read_experts(config, tree, "num_experts|num_local_experts", 128, "num_experts_per_tok", 8),
                  config.size("moe_intermediate_size", 768)};
  const auto is_sparse = qwen_sparse_layers(config);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_sparse(i) ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(a), is_sparse(i) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// Whisper's encoder without a table of places.
void add_hearing(ConfigReader& document, ModuleTree& tree, const std::string& before) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  Module tower = whisper_encoder(*audio, before + "audio_tower", {.places = false, .last_norm = "ln_post"});
  const Quantity out = audio->size("output_dim", 3584);
  Module into{"", "projector", {}, {}, {}};
  Tower(into, Part::projector)
      .tensor("audio_bos_eos_token.weight", {2, out})
      .matrix("proj", whisper_width(*audio), out, true);
  tower.children.push_back(std::move(into));
  tree.towers.push_back(std::move(tower));
}

// Qwen2.5-VL's tower with q, k and v apart.
void add_seeing(ConfigReader& document, ModuleTree& tree, const std::string& before) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 3584), patch = vision->size("patch_size", 14);
  const Quantity merge = vision->size("spatial_merge_size", 2), joined = merge * merge * hidden;
  Module tower{before + "visual", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_embed.proj.weight", {hidden, vision->size("in_channels|in_chans", 3),
                                          vision->size("temporal_patch_size", 2), patch, patch});
  EncoderBlock block{hidden, vision->size("intermediate_size", 3420)};
  block.norm_bias = false;
  block.q = "attn.q", block.k = "attn.k", block.v = "attn.v", block.o = "attn.proj";
  block.gate = "mlp.gate_proj", block.up = "mlp.up_proj", block.down = "mlp.down_proj";
  Module merger{"merger", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .norm("ln_q", hidden, false)
      .matrix("mlp.0", joined, joined, true)
      .matrix("mlp.2", joined, vision->size("out_hidden_size", 3584), true);
  tower.children = {encoder_blocks("blocks.{layer}", read_layers(*vision, "depth", 32), block, Part::vision),
                    std::move(merger)};
  tree.towers.push_back(std::move(tower));
}

constexpr std::string_view kOmniText[] = {"qwen2_5_omni_text"}, kOmni3Text[] = {"qwen3_omni_moe_text"};

}  // namespace

void add_omni_thinker(ConfigReader& document, ModuleTree& tree) {
  add_hearing(document, tree, "");
  add_seeing(document, tree, "");
}
void add_omni_whole(ConfigReader& document, ModuleTree& tree) {
  add_hearing(document, tree, "thinker.");
  add_seeing(document, tree, "thinker.");
}

void add_omni3_hearing(ConfigReader& document, ModuleTree& tree, const std::string& before) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  Module tower = spectrum_encoder(*audio, before + "audio_tower");
  const Quantity width = audio->size("d_model", 1280);
  Module into{"", "projector", {}, {}, {}};
  Tower(into, Part::projector)
      .matrix("proj1", width, width, true)
      .matrix("proj2", width, audio->size("output_dim", 3584), true);
  tower.children.push_back(std::move(into));
  tree.towers.push_back(std::move(tower));
}

void add_omni3_thinker(ConfigReader& document, ModuleTree& tree) {
  add_omni3_hearing(document, tree, "");
  add_qwen_vision(document, tree, "visual", 3, QwenMergers::lists);
}
void add_omni3_whole(ConfigReader& document, ModuleTree& tree) {
  add_omni3_hearing(document, tree, "thinker.");
  add_qwen_vision(document, tree, "thinker.visual", 3, QwenMergers::lists);
}

const Family kQwen25OmniText = {"qwen2_5_omni_text", "Qwen2.5-Omni's language model", {}, kOmniText, {},
                                describe_omni_text,  forward_qwen2_5_omni_text};
const Family kQwen3OmniText = {"qwen3_omni_moe_text", "Qwen3-Omni's language model", {}, kOmni3Text, {},
                               describe_omni3_text,   forward_qwen3_omni_moe_text};

}  // namespace assay::families
