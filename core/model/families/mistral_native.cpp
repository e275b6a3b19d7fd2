// Mistral's models as its own files have them, params.json and consolidated.safetensors (core/formats/mistral_params.h): Mistral 7B to
// Large 2, Nemo, Codestral, Devstral, Magistral, Ministral 3, Mixtral, Pixtral, Voxtral, Voxtral Realtime. Elements 2i and 2i + 1 of a head
// rotate together, as in the first Llama. Sources: mistral-inference 1.6 (transformer.py, moe.py, vision_encoder.py);
// vLLM 0.33 (transformers_utils/configs/mistral.py, models/voxtral.py) for sound, windows and the temperature.
#include "core/model/families/mistral_native.h"

#include <nlohmann/json.hpp>

#include "core/model/families/all_mixtures.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/forward.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

GatedMlp mistral_mlp(const Quantity& hidden, const Quantity& width) {
  GatedMlp mlp{hidden, width, "feed_forward"};
  mlp.gate = "w1", mlp.up = "w3", mlp.down = "w2";
  return mlp;
}

void add_mistral_norms(Module& layer, const Quantity& hidden) {
  add_norm(layer, "attention_norm", hidden, Role::input_norm);
  add_norm(layer, "ffn_norm", hidden, Role::pre_feedforward_norm);
}

void add_mistral_native_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  for (const char* key :
       {"hidden_size", "num_channels", "patch_size", "intermediate_size", "num_hidden_layers"})
    vision->size(key);
  const Quantity hidden = vision->size("hidden_size"), merge = vision->size("spatial_merge_size", 1);
  tree.towers.push_back(pixtral_tower(*vision, "vision_encoder", PixtralNames::mistrals));
  if (vision->flag("add_pre_mm_projector_layer_norm", false)) {
    Module norm{"", "projector norm", {}, {}, {}};
    Tower(norm, Part::projector).norm("pre_mm_projector_norm", hidden, false);
    tree.towers.push_back(std::move(norm));
  }
  if (vision->text("mm_projector_id", "") == "patch_merge") {
    Module merger{"patch_merger", "patch merger", {}, {}, {}};
    Tower(merger, Part::projector).matrix("merging_layer", merge * merge * hidden, hidden, false);
    tree.towers.push_back(std::move(merger));
  }
  const bool bias = vision->flag("adapter_bias", true);
  Module adapter{"vision_language_adapter", "projector", {}, {}, {}};
  Tower(adapter, Part::projector)
      .matrix("w_in", hidden, text_hidden, bias)
      .matrix("w_out", text_hidden, text_hidden, bias);
  tree.towers.push_back(std::move(adapter));
}

namespace {

// Whisper's, without its table of places, which are sines.
Module whisper_encoder(ConfigReader& audio, const std::string& path) {
  const Quantity width = audio.size("dim"), wide = audio.size("hidden_dim"),
                 bins = audio.size("num_mel_bins");
  Module tower{path, "encoder of sound (Whisper)", {}, {}, {}};
  Tower(tower, Part::audio)
      .tensor("conv_layers.0.weight", {width, bins, 3})
      .tensor("conv_layers.0.bias", {width})
      .tensor("conv_layers.1.weight", {width, width, 3})
      .tensor("conv_layers.1.bias", {width})
      .norm("transformer.norm", width, true);
  Module blocks =
      layers("transformer.layers.{layer}", "blocks", all_layers(read_layers(audio, "n_layers", 0)));
  Tower(blocks, Part::audio)
      .norm("attention_norm", width, true)
      .matrix("attention.wq", width, width, true)
      .matrix("attention.wk", width, width, false)
      .matrix("attention.wv", width, width, true)
      .matrix("attention.wo", width, width, true)
      .norm("ffn_norm", width, true)
      .matrix("feed_forward.w1", width, wide, true)
      .matrix("feed_forward.w2", wide, width, true);
  tower.children = {std::move(blocks)};
  return tower;
}

// The encoder that hears as it goes: a Mistral's blocks with the biases of Whisper's, under convolutions that look back alone.
Module streaming_encoder(ConfigReader& audio, const std::string& path) {
  const Quantity width = audio.size("dim"), wide = audio.size("hidden_dim"),
                 bins = audio.size("num_mel_bins"), heads = audio.size("n_heads") * audio.size("head_dim");
  Module tower{path, "encoder of sound, as it comes", {}, {}, {}};
  Tower(tower, Part::audio)
      .tensor("conv_layers.0.conv.weight", {width, bins, 3})
      .tensor("conv_layers.0.conv.bias", {width})
      .tensor("conv_layers.1.conv.weight", {width, width, 3})
      .tensor("conv_layers.1.conv.bias", {width})
      .norm("transformer.norm", width, false);
  Module blocks =
      layers("transformer.layers.{layer}", "blocks", all_layers(read_layers(audio, "n_layers", 0)));
  Tower(blocks, Part::audio)
      .norm("attention_norm", width, false)
      .matrix("attention.wq", width, heads, true)
      .matrix("attention.wk", width, heads, false)
      .matrix("attention.wv", width, heads, true)
      .matrix("attention.wo", heads, width, true)
      .norm("ffn_norm", width, false)
      .matrix("feed_forward.w1", width, wide, false)
      .matrix("feed_forward.w3", width, wide, false)
      .matrix("feed_forward.w2", wide, width, true);
  tower.children = {std::move(blocks)};
  return tower;
}

// What hears, and the table of tokens beside it.
std::string path_of_sound(ConfigReader& audio) {
  return audio.flag("causal", false) ? "mm_streams_embeddings.embedding_module" : "mm_whisper_embeddings";
}

// `downsample_factor` of the encoder's outputs become one token.
void add_mistral_sound(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig audio(config, tree, "audio_config");
  if (!audio) return;
  const std::string path = path_of_sound(*audio);
  const Quantity width = audio->size("dim"), joined = audio->size("downsample_factor");
  const auto encoder = audio->flag("causal", false) ? streaming_encoder : whisper_encoder;
  tree.towers.push_back(encoder(*audio, path + ".whisper_encoder"));
  Module projector{path + ".audio_language_projection", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("0", joined * width, text_hidden, false)
      .matrix("2", text_hidden, text_hidden, false);
  tree.towers.push_back(std::move(projector));
}

// What tells an MLP how late it may answer (Voxtral Realtime).
void add_delay(ConfigReader& config, Module& layer, const Quantity& hidden) {
  if (!config.flag("ada_rms_norm_t_cond", false)) return;
  const Quantity rank = config.size("ada_rms_norm_t_cond_dim");
  Linear down{"ada_rms_norm_t_cond.0", hidden, rank, Role::residual_mix, Part::norm};
  Linear up{"ada_rms_norm_t_cond.2", rank, hidden, Role::residual_mix, Part::norm};
  down.quantizable = up.quantizable = false;
  add_linear(layer, down);
  add_linear(layer, up);
}

HeadAttention own_attention(const Decoder& d) {
  HeadAttention a = d.attention();
  a.path = "attention";
  a.q = "wq", a.k = "wk", a.v = "wv", a.o = "wo";
  return a;
}

Module feed_forward(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  if (!config.has("num_local_experts")) return gated_mlp(mistral_mlp(d.hidden, d.intermediate));
  Mixture m{d.hidden, read_experts(config, tree, "num_local_experts", 0, "num_experts_per_tok", 0),
            d.intermediate};
  m.path = "feed_forward";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  return mixture(m);
}

// Nothing is left to a class: what the params do not say has no default.
void describe_mistral_native(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "num_key_value_heads", "head_dim"})
    config.size(key);
  if (config.has("num_local_experts")) config.size("num_experts_per_tok");
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 1,
                                  .hidden = 1,
                                  .intermediate = 1,
                                  .layers = 1,
                                  .heads = 1,
                                  .kv_heads = 1,
                                  .head_dim = 1});
  const HeadAttention a = own_attention(d);
  Module layer = layers("layers.{layer}", "layers", all_layers(d.layers));
  add_mistral_norms(layer, d.hidden);
  add_delay(config, layer, d.hidden);
  layer.children = {attention(a), feed_forward(config, tree, d)};
  Frame frame = kMistralFrame;
  if (const auto audio = config.config().section("audio_config")) {
    ConfigReader sound(*audio, "audio_config");
    frame.embedding = path_of_sound(sound) + ".tok_embeddings";
  }
  add_frame(tree, d, {layer}, frame);
  const auto window = config.optional_number("sliding_window");
  add_geometry(tree, a, d.layers,
               windowed_layers(config, d.layers, [&](std::uint64_t) { return window.has_value(); }),
               window.value_or(0));
  add_mistral_native_vision(config, tree, d.hidden);
  add_mistral_sound(config, tree, d.hidden);
}

// Of rope_theta the code has had two defaults (10,000 beside a window, then 1,000,000): a config must say it to be computed.
Hyperparameters forward_mistral_native(ConfigReader& config, const ModuleTree& tree) {
  const ParsedJson* rope = object_in(config, "rope_parameters");
  config.require(rope != nullptr && rope->contains("rope_theta"),
                 "rope_theta is not there, of which Mistral's code has had two defaults");
  config.require(config.has("rms_norm_eps"), "norm_eps is not there, which has no default");
  config.require(!config.flag("ada_rms_norm_t_cond", false),
                 "ada_rms_norm_t_cond is true: what a delay does to a layer is not computed here");
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 128000}, .interleaved = true});
  h.routing.renormalize = true;
  const auto number = [&](const char* key) {
    return rope->contains(key) ? config.to_real(rope->at(key), key, 0, 1e9) : 0;
  };
  if (const double beta = number("llama_4_scaling_beta"); beta != 0) {
    const double floor = number("llama_4_scaling_floor");
    config.require(floor > 0, "llama_4_scaling has no original_max_position_embeddings");
    h.temperature = Hyperparameters::Temperature{.scale = beta, .floor = floor};
  }
  return h;
}

constexpr std::string_view kNativeArchitectures[] = {"MistralNativeForCausalLM"};

}  // namespace

const Family kMistralNative = {
    "mistral_native",        "Mistral (its own files)", kNativeArchitectures, {}, {},
    describe_mistral_native, forward_mistral_native};

}  // namespace assay::families
