#include "core/model/families/sound_towers.h"
#include "core/model/families/norm_statistics.h"

#include <algorithm>

#include "core/model/families/hearing.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// A conformer's block as Granite Speech has it: MLPs on both sides of attention within windows, whose scores get a
// vector for each distance, and of a gated convolution.
Module granite_conformer(ConfigReader& audio, const Quantity& hidden) {
  const Quantity wide = hidden * audio.size("feedforward_mult", 4);
  const Quantity heads = audio.size("num_heads|num_attention_heads", 8);
  const auto told = audio.optional_size("dim_head");
  const Quantity dim = told ? *told : audio.quotient(hidden, heads, "hidden_dim / num_heads");
  const Quantity width = heads * dim, within = hidden * audio.size("conv_expansion_factor", 2);
  const Quantity distances = Quantity(2) * audio.size("max_pos_emb", 512) + Quantity(1);
  Module blocks =
      layers("layers.{layer}", "blocks", all_layers(read_layers(audio, "num_layers|num_hidden_layers", 10)));
  Tower block(blocks, Part::audio);
  for (const std::string mlp : {"ff1", "ff2"}) {
    block.norm(mlp + ".pre_norm", hidden, true)
        .matrix(mlp + ".up_proj", hidden, wide, true)
        .matrix(mlp + ".down_proj", wide, hidden, true);
  }
  block.norm("attn.pre_norm", hidden, true)
      .matrix("attn.to_q", hidden, width, false)
      .matrix("attn.to_kv", hidden, Quantity(2) * width, false)
      .matrix("attn.to_out", width, hidden, true)
      .tensor("attn.rel_pos_emb.weight", {distances, dim})
      .norm("conv.norm", hidden, true)
      .tensor("conv.up_conv.weight", {Quantity(2) * within, hidden, 1})
      .tensor("conv.up_conv.bias", {Quantity(2) * within})
      .tensor("conv.depth_conv.conv.weight", {within, 1, audio.size("conv_kernel_size", 15)})
      .norm("conv.batch_norm", within, true)
      .tensor("conv.down_conv.weight", {hidden, within, 1})
      .tensor("conv.down_conv.bias", {hidden})
      .norm("post_norm", hidden, true);
  add_norm_statistics(blocks, "conv.batch_norm", within.value());
  return blocks;
}

}  // namespace

// Half way through, the encoder tells characters and goes on from what it told (out, out_mid). Then queries look at
// windows of it. The adapters of low rank that 3.x brings are a file of their own, and not of this.
void add_granite_speech(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "encoder_config"), former(document, tree, "projector_config");
  if (!audio || !former) return;
  const Quantity hidden = audio->size("hidden_dim|hidden_size", 1024);
  const Quantity told = audio->size("output_dim", 42);
  Module tower{"encoder", "encoder of sound (conformer)", {}, {}, {}};
  Tower(tower, Part::audio)
      .matrix("input_linear", audio->size("input_dim|num_mel_bins", 160), hidden, true)
      .matrix("out", hidden, told, true)
      .matrix("out_mid", told, hidden, true);
  tower.children = {granite_conformer(*audio, hidden)};
  add_tower(tree, std::move(tower));
  const Quantity seen = former->size("hidden_size", 768);
  const Quantity window = document.size("window_size", 15), rate = document.size("downsample_rate", 5);
  document.require(window.value() >= rate.value(), "window_size is less than downsample_rate");
  Module projector{"projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .tensor("query", {1, {"window_size / downsample_rate", window.value() / rate.value()}, seen})
      .matrix("linear", seen, text_width(tree), true);
  projector.children = {q_former(*former, former->flag("use_qformer_text_input", false))};
  add_tower(tree, std::move(projector));
  tree.aliases.push_back({"encoder.", "model.encoder."});
  tree.aliases.push_back({"projector.", "model.projector."});
}

namespace {

// SenseVoice's block: beside attention a convolution over values (FSMN), each channel for itself.
void fill_sanm(Module& layer, Part part, const Quantity& in, const Quantity& hidden, const Quantity& wide) {
  Tower block(layer, part);
  block.norm("input_layernorm", in, true).norm("post_attention_layernorm", hidden, true);
  for (const char* matrix : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"})
    block.matrix(matrix, in, hidden, true);
  block.matrix("self_attn.o_proj", hidden, hidden, true)
      .matrix("mlp.fc1", hidden, wide, true)
      .matrix("mlp.fc2", wide, hidden, true);
}

}  // namespace

void add_fun_asr_nano(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config"), adaptor(document, tree, "adaptor_config");
  if (!audio || !adaptor) return;
  const Quantity hidden = audio->size("hidden_size", 512), wide = audio->size("intermediate_size", 2048);
  const Quantity stacked = audio->size("num_mel_bins", 80) * audio->size("num_stacked_frames", 7);
  const Quantity kernel = audio->size("fsmn_kernel_size", 11);
  const Quantity depth = read_layers(*audio, "num_hidden_layers", 70);
  const std::uint64_t times = audio->number("num_timestamp_prediction_layers", 20);
  audio->require(times < depth.value(), "num_timestamp_prediction_layers leaves no layer before them");
  const std::uint64_t last = depth.value() - 1, before_times = last - times;
  const auto title = [&](std::uint64_t i) {
    const bool ends = i == last || i == before_times;
    return std::string(i == 0 ? "first block" : "blocks") + (ends ? " that end with a norm" : "");
  };
  Module tower{"model.audio_tower", "encoder of sound (SAN-M)", {}, {}, {}};
  const auto groups = group_layers("layers.{layer}", depth, title, [&](Module& layer, std::uint64_t i) {
    fill_sanm(layer, Part::audio, i == 0 ? stacked : hidden, hidden, wide);
    Tower block(layer, Part::audio);
    block.tensor("self_attn.fsmn.conv.weight", {hidden, 1, kernel});
    if (i == last || i == before_times) block.norm("final_layernorm", hidden, true);
  });
  tower.children.assign(groups.begin(), groups.end());
  add_tower(tree, std::move(tower));
  const Quantity out = adaptor->size("hidden_size", 1024);
  const Quantity between = adaptor->size("projector_hidden_size", 2048);
  Module projector = two_matrices("model.multi_modal_projector", hidden, between, out, true);
  Module blocks =
      layers("layers.{layer}", "blocks", all_layers(read_layers(*adaptor, "num_hidden_layers", 2)));
  fill_sanm(blocks, Part::projector, out, out, adaptor->size("intermediate_size", 256));
  projector.children.push_back(std::move(blocks));
  add_tower(tree, std::move(projector));
}

// wav2vec 2.0's: convolutions over samples, one over places, blocks.
void add_omni_asr(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  const Quantity hidden = audio->size("hidden_size", 1024), wide = audio->size("intermediate_size", 4096);
  const auto channels = audio->numbers("conv_dim").value_or(std::vector<std::uint64_t>(7, 512));
  const auto kernels =
      audio->numbers("conv_kernel").value_or(std::vector<std::uint64_t>{10, 3, 3, 3, 3, 2, 2});
  audio->require(!channels.empty() && channels.size() == kernels.size(),
                 "conv_dim and conv_kernel are not of one length");
  const auto is_zero = [](std::uint64_t n) { return n == 0; };
  audio->require(std::none_of(channels.begin(), channels.end(), is_zero) &&
                     std::none_of(kernels.begin(), kernels.end(), is_zero),
                 "conv_dim or conv_kernel holds a 0");
  const bool bias = audio->flag("conv_bias", true);
  const Quantity spread = audio->quotient(hidden, audio->size("num_conv_pos_embedding_groups", 16),
                                          "hidden_size / num_conv_pos_embedding_groups");
  Module tower{"model.audio_tower", "encoder of sound (wav2vec 2.0)", {}, {}, {}};
  Tower start(tower, Part::audio);
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const std::string layer = "subsampling.conv_layers." + std::to_string(i);
    const Quantity in = i == 0 ? 1 : channels[i - 1], out = channels[i];
    start.tensor(layer + ".conv.weight", {out, in, kernels[i]});
    if (bias) start.tensor(layer + ".conv.bias", {out});
    start.norm(layer + ".layer_norm", out, true);
  }
  start.norm("subsampling.layer_norm", channels.back(), true)
      .matrix("subsampling.projection", channels.back(), hidden, true)
      .tensor("encode_positions.conv.weight", {hidden, spread, audio->size("num_conv_pos_embeddings", 128)})
      .tensor("encode_positions.conv.bias", {hidden})
      .norm("layer_norm", hidden, true);
  EncoderBlock block{hidden, wide};
  block.norm1 = "layer_norm", block.norm2 = "final_layer_norm";
  block.q = "attention.q_proj", block.k = "attention.k_proj", block.v = "attention.v_proj";
  block.o = "attention.out_proj";
  block.up = "feed_forward.intermediate_dense", block.down = "feed_forward.output_dense";
  tower.children = {
      encoder_blocks("layers.{layer}", read_layers(*audio, "num_hidden_layers", 24), block, Part::audio)};
  add_tower(tree, std::move(tower));
  Module projector{"model", "projector", {}, {}, {}};
  Tower(projector, Part::projector).matrix("multi_modal_projector", hidden, text_width(tree), true);
  add_tower(tree, std::move(projector));
}

namespace {

// What Whisper's blocks became where places are rotations: keys without a bias still.
void fill_rotated(Tower& block, const Quantity& hidden, const Quantity& heads, const Quantity& kv_heads) {
  block.matrix("self_attn.q_proj", hidden, heads, true)
      .matrix("self_attn.k_proj", hidden, kv_heads, false)
      .matrix("self_attn.v_proj", hidden, kv_heads, true)
      .matrix("self_attn.o_proj", heads, hidden, true);
}

void add_convolutions(Tower& tower, const std::string& before, const Quantity& bins, const Quantity& hidden) {
  tower.tensor(before + "conv1.weight", {hidden, bins, 3})
      .tensor(before + "conv1.bias", {hidden})
      .tensor(before + "conv2.weight", {hidden, hidden, 3})
      .tensor(before + "conv2.bias", {hidden});
}

}  // namespace

void add_glm_asr(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  const Quantity hidden = audio->size("hidden_size", 1280), wide = audio->size("intermediate_size", 5120);
  const Quantity heads = audio->size("num_attention_heads", 20),
                 kv_heads = audio->size("num_key_value_heads", heads);
  const Quantity dim = audio->quotient(hidden, heads, "hidden_size / num_attention_heads");
  Module tower{"audio_tower", "encoder of sound", {}, {}, {}};
  Tower start(tower, Part::audio);
  add_convolutions(start, "", audio->size("num_mel_bins", 128), hidden);
  start.norm("norm", hidden, true);
  Module blocks =
      layers("layers.{layer}", "blocks", all_layers(read_layers(*audio, "num_hidden_layers", 32)));
  Tower block(blocks, Part::audio);
  fill_rotated(block, hidden, heads * dim, kv_heads * dim);
  block.norm("input_layernorm", hidden, true)
      .norm("post_attention_layernorm", hidden, true)
      .matrix("mlp.fc1", hidden, wide, true)
      .matrix("mlp.fc2", wide, hidden, true);
  tower.children = {std::move(blocks)};
  add_tower(tree, std::move(tower));
  const Quantity out = text_width(tree);
  add_tower(tree, two_matrices("multi_modal_projector", wide, Quantity(2) * out, out, true));
}

void add_voxtral_realtime(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  const Quantity hidden = audio->size("hidden_size", 1280), wide = audio->size("intermediate_size", 5120);
  const Quantity width = audio->size("num_attention_heads", 32) * audio->size("head_dim", 64);
  Module tower{"audio_tower", "encoder of sound", {}, {}, {}};
  Tower start(tower, Part::audio);
  add_convolutions(start, "embedder.", audio->size("num_mel_bins", 128), hidden);
  start.norm("norm", hidden, false);
  Module blocks =
      layers("layers.{layer}", "blocks", all_layers(read_layers(*audio, "num_hidden_layers", 32)));
  Tower block(blocks, Part::audio);
  fill_rotated(block, hidden, width, width);
  block.norm("self_attn_layer_norm", hidden, false)
      .norm("final_layer_norm", hidden, false)
      .matrix("mlp.gate_proj", hidden, wide, false)
      .matrix("mlp.up_proj", hidden, wide, false)
      .matrix("mlp.down_proj", wide, hidden, true);
  tower.children = {std::move(blocks)};
  add_tower(tree, std::move(tower));
  const Quantity out = text_width(tree);
  add_tower(tree, two_matrices("multi_modal_projector", hidden * document.size("downsample_factor", 4), out,
                               out, false));
}

}  // namespace assay::families
