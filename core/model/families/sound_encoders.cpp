// Encoders of sound by themselves: wav2vec 2.0 (XLS-R, MMS), HuBERT, WavLM; with the head that writes letters (CTC), one that
// classifies, what they are trained with, or none. Convolutions over samples, one more in place of a table of places, then a
// transformer. Source: transformers 5.24; the parts of the convolution's weight have the names that releases give them.
#include "core/model/families/sound_encoders.h"

#include "core/model/families/all_encoders.h"
#include "core/model/families/all_speakers.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct SoundKin {
  std::string prefix;
  std::string_view stem;
  bool distances = false;  // WavLM: scores by distance, under a gate of each head
  bool masks = false;      // UniSpeech-SAT: has what stands for hidden sounds, whatever is hidden
  bool conformer = false;  // its layers are conformers
  bool deep = false;  // data2vec: several convolutions for places, and norms behind all of those over samples
};

struct SoundSizes {
  Quantity hidden, wide, depth, heads;
  std::vector<std::uint64_t> channels;
};

Tower add_sound(ModuleTree& tree, const std::string& path, const char* title) {
  tree.modules.push_back({path, title, {}, {}, {}});
  return {tree.modules.back(), Part::audio};
}

std::vector<std::uint64_t> numbers_or(ConfigReader& config, const char* key,
                                      const std::vector<std::uint64_t>& class_default) {
  const auto said = config.numbers(key);
  return said ? *said : class_default;
}

std::vector<std::uint64_t> read_channels(ConfigReader& config) {
  auto channels = numbers_or(config, "conv_dim", std::vector<std::uint64_t>(7, 512));
  config.require(!channels.empty() && channels.size() <= 100, "conv_dim names no convolution, or too many");
  return channels;
}

SoundSizes read_sound_sizes(ConfigReader& config, ModuleTree& tree) {
  SoundSizes s;
  s.hidden = config.size("hidden_size", 768), s.wide = config.size("intermediate_size", 3072);
  s.depth = read_layers(config, "num_hidden_layers", 12), s.heads = config.size("num_attention_heads", 12);
  config.require_divides(s.heads, s.hidden);
  s.channels = read_channels(config);
  tree.hidden_size = s.hidden.value(), tree.layers = s.depth.value();
  return s;
}

// Each convolution's norm: behind all, or behind the first alone ("group").
void add_sample_convolutions(ConfigReader& config, ModuleTree& tree, const std::string& path_of_all,
                             const SoundSizes& s, bool all_normed = false) {
  const auto kernels = numbers_or(config, "conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  config.require(kernels.size() == s.channels.size(), "conv_kernel and conv_dim have other lengths");
  const bool bias = config.flag("conv_bias", false);
  const std::string norms = config.text("feat_extract_norm", "group");
  config.require(norms == "group" || norms == "layer", "feat_extract_norm is neither group nor layer");
  Tower tower = add_sound(tree, path_of_all, "convolutions over samples");
  Quantity in = 1;
  for (std::size_t i = 0; i < s.channels.size(); ++i) {
    const std::string path = "conv_layers." + std::to_string(i) + ".";
    config.require(s.channels[i] > 0 && kernels[i] > 0, "conv_dim or conv_kernel has a 0");
    const Quantity out("conv_dim", s.channels[i]);
    tower.tensor(path + "conv.weight", {out, in, Quantity("conv_kernel", kernels[i])});
    if (bias) tower.tensor(path + "conv.bias", {out});
    if (all_normed || norms == "layer" || i == 0) tower.norm(path + "layer_norm", out, true);
    in = out;
  }
}

void add_sound_enters(ConfigReader& config, ModuleTree& tree, const std::string& prefix, const SoundSizes& s,
                      bool always_masks = false) {
  const Quantity channels("conv_dim", s.channels.back());
  Tower tower = add_sound(tree, prefix.substr(0, prefix.size() - (prefix.empty() ? 0 : 1)), "what enters");
  if (always_masks || config.real("mask_time_prob", 0.05) > 0 || config.real("mask_feature_prob", 0) > 0)
    tower.tensor("masked_spec_embed", {s.hidden});
  if (config.flag("feat_proj_layer_norm", true)) tower.norm("feature_projection.layer_norm", channels, true);
  tower.matrix("feature_projection.projection", channels, s.hidden, true);
}

// A weight that is a direction and a length for each of its columns.
void add_place_convolution(ConfigReader& config, Tower& tower, const SoundSizes& s) {
  config.require(!config.flag("conv_pos_batch_norm", false),
                 "conv_pos_batch_norm is true: it is not described");
  const Quantity kernel = config.size("num_conv_pos_embeddings", 128);
  const Quantity each = config.quotient(s.hidden, config.size("num_conv_pos_embedding_groups", 16),
                                        "hidden_size / num_conv_pos_embedding_groups");
  tower.tensor("pos_conv_embed.conv.bias", {s.hidden})
      .tensor("pos_conv_embed.conv.weight_g", {1, 1, kernel})
      .tensor("pos_conv_embed.conv.weight_v", {s.hidden, each, kernel});
}

// As torch 2 names the parts of that weight, and transformers saves them since.
void accept_later_parts(ModuleTree& tree, const std::string& path) {
  const std::string weight = path + ".pos_conv_embed.conv.",
                    later = weight + "parametrizations.weight.original";
  tree.aliases.push_back({weight + "weight_g", later + "0"});
  tree.aliases.push_back({weight + "weight_v", later + "1"});
}

void add_deep_places(ConfigReader& config, Tower& tower, const SoundSizes& s) {
  const std::uint64_t count = config.size("num_conv_pos_embeddings", 5).value();
  config.require(count <= 100, "num_conv_pos_embeddings is no number of convolutions");
  const Quantity each = config.quotient(s.hidden, config.size("num_conv_pos_embedding_groups", 16),
                                        "hidden_size / num_conv_pos_embedding_groups");
  const Quantity kernel = config.size("conv_pos_kernel_size", 19);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string path = "pos_conv_embed.layers." + std::to_string(i) + ".conv";
    tower.tensor(path + ".weight", {s.hidden, each, kernel}).tensor(path + ".bias", {s.hidden});
  }
}

void add_language_adapter(ConfigReader& config, Tower& tower, const SoundSizes& s) {
  if (!config.has("adapter_attn_dim") || !config.flag("do_stable_layer_norm", false)) return;
  const Quantity narrow = config.size("adapter_attn_dim");
  tower.norm("adapter_layer.norm", s.hidden, true)
      .matrix("adapter_layer.linear_1", s.hidden, narrow, true)
      .matrix("adapter_layer.linear_2", narrow, s.hidden, true);
}

void add_sound_layers(ConfigReader& config, ModuleTree& tree, const std::string& prefix, const SoundSizes& s,
                      const SoundKin& kin) {
  Tower encoder = add_sound(tree, prefix + "encoder", "places");
  if (kin.deep)
    add_deep_places(config, encoder, s);
  else
    add_place_convolution(config, encoder, s);
  if (!kin.deep) accept_later_parts(tree, prefix + "encoder");
  encoder.norm("layer_norm", s.hidden, true);
  if (kin.conformer) {
    constexpr ConformerClass kClass = {3072, 12, "relative", true};
    tree.modules.push_back(
        conformer_layers(config, prefix + "encoder.layers.{layer}", {s.hidden, s.depth}, kClass));
    return;
  }
  EncoderBlock block{s.hidden, s.wide};
  block.norm1 = "layer_norm", block.norm2 = "final_layer_norm";
  block.q = "attention.q_proj", block.k = "attention.k_proj", block.v = "attention.v_proj";
  block.o = "attention.out_proj";
  block.up = "feed_forward.intermediate_dense", block.down = "feed_forward.output_dense";
  Module blocks = encoder_blocks(prefix + "encoder.layers.{layer}", s.depth, block, Part::audio);
  Tower more(blocks, Part::audio);
  if (kin.distances) {
    more.tensor("attention.gru_rel_pos_const", {1, s.heads, 1, 1})
        .matrix("attention.gru_rel_pos_linear",
                config.quotient(s.hidden, s.heads, "hidden_size / num_attention_heads"), 8, true);
  } else {
    add_language_adapter(config, more, s);
  }
  tree.modules.push_back(std::move(blocks));
  if (!kin.distances) return;
  add_sound(tree, prefix + "encoder.layers.0.attention", "distances")
      .tensor("rel_attn_embed.weight", {config.size("num_buckets", 320), s.heads});
}

// What wav2vec 2.0 is trained with: what it hears is one of a few sounds.
void add_quantizer(ConfigReader& config, ModuleTree& tree, const SoundSizes& s) {
  const Quantity groups = config.size("num_codevector_groups", 2);
  const Quantity sounds = groups * config.size("num_codevectors_per_group", 320);
  const Quantity width = config.size("codevector_dim", 256), out = config.size("proj_codevector_dim", 256);
  add_sound(tree, "", "what it is trained with")
      .tensor("quantizer.codevectors",
              {1, sounds, config.quotient(width, groups, "codevector_dim / num_codevector_groups")})
      .matrix("quantizer.weight_proj", Quantity("conv_dim", s.channels.back()), sounds, true)
      .matrix("project_hid", s.hidden, out, true)
      .matrix("project_q", width, out, true);
}

}  // namespace

void add_samples_net(ConfigReader& config, ModuleTree& tree, const Quantity& hidden,
                     const std::string& path) {
  SoundSizes s;
  s.hidden = hidden, s.channels = read_channels(config);
  add_sample_convolutions(config, tree, path + ".feature_encoder", s);
  add_sound_enters(config, tree, path + ".", s);
  Tower places = add_sound(tree, path, "places");
  add_place_convolution(config, places, s);
  accept_later_parts(tree, path);
}

void add_sound_head(ConfigReader& config, ModuleTree& tree, const SoundHead& of, std::string_view head) {
  Module module = head_module("head");
  const bool classifies = head.ends_with("Classification");
  if (classifies && config.flag("use_weighted_layer_sum", false))
    module.tensors.push_back(
        parameter("layer_weights", {of.depth + Quantity(1)}, Role::output_head, Part::output));
  if (head == "ForCTC") {
    const Quantity letters = of.letters ? config.size("vocab_size", *of.letters) : config.size("vocab_size");
    tree.vocabulary = letters.value();
    add_linear(module, head_matrix("lm_head", of.hidden, letters));
  } else if (head == "ForSequenceClassification") {
    const Quantity narrow = config.size("classifier_proj_size", of.narrow);
    add_linear(module, head_matrix("projector", of.hidden, narrow));
    add_linear(module, head_matrix("classifier", narrow, label_count(config)));
  } else {
    add_linear(module, head_matrix("classifier", of.hidden, label_count(config)));
  }
  tree.modules.push_back(std::move(module));
}

namespace {

void describe_sound(ConfigReader& config, ModuleTree& tree, const SoundKin& kin) {
  config.require(!config.flag("add_language_adapter", false),
                 "add_language_adapter is true: it is not described");
  const std::string& architecture = config.config().architecture();
  const std::string_view head =
      architecture.empty() ? "Model" : std::string_view(architecture).substr(kin.stem.size());
  const std::string prefix = head == "Model" ? "" : kin.prefix;
  const SoundSizes s = read_sound_sizes(config, tree);
  add_sample_convolutions(config, tree, prefix + "feature_extractor", s, kin.deep);
  add_sound_enters(config, tree, prefix, s, kin.masks);
  add_sound_layers(config, tree, prefix, s, kin);
  if (head == "Model")
    tree.aliases.push_back({"", kin.prefix});
  else if (head == "ForPreTraining")
    add_quantizer(config, tree, s);
  else
    add_sound_head(config, tree, {s.hidden, s.depth}, head);
}
void describe_wav2vec2(ConfigReader& config, ModuleTree& tree) {
  describe_sound(config, tree, {"wav2vec2.", "Wav2Vec2"});
}
void describe_hubert(ConfigReader& config, ModuleTree& tree) {
  describe_sound(config, tree, {"hubert.", "Hubert"});
}
void describe_wavlm(ConfigReader& config, ModuleTree& tree) {
  describe_sound(config, tree, {"wavlm.", "WavLM", true});
}

void describe_unispeech(ConfigReader& config, ModuleTree& tree) {
  const bool sat = config.config().architecture().starts_with("UniSpeechSat") ||
                   config.config().model_type() == "unispeech-sat";
  describe_sound(
      config, tree,
      sat ? SoundKin{"unispeech_sat.", "UniSpeechSat", false, true} : SoundKin{"unispeech.", "UniSpeech"});
}
void describe_data2vec_audio(ConfigReader& config, ModuleTree& tree) {
  describe_sound(config, tree, {.prefix = "data2vec_audio.", .stem = "Data2VecAudio", .deep = true});
}
void describe_wav2vec2_conformer(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("add_adapter", false), "add_adapter is true: it is not described");
  describe_sound(config, tree,
                 {.prefix = "wav2vec2_conformer.", .stem = "Wav2Vec2Conformer", .conformer = true});
}

constexpr std::string_view kUnispeechArchitectures[] = {"UniSpeechModel",
                                                        "UniSpeechForCTC",
                                                        "UniSpeechForSequenceClassification",
                                                        "UniSpeechSatModel",
                                                        "UniSpeechSatForCTC",
                                                        "UniSpeechSatForSequenceClassification",
                                                        "UniSpeechSatForAudioFrameClassification"},
                           kUnispeechTypes[] = {"unispeech", "unispeech-sat"},
                           kData2vecAudioArchitectures[] = {"Data2VecAudioModel", "Data2VecAudioForCTC",
                                                            "Data2VecAudioForSequenceClassification",
                                                            "Data2VecAudioForAudioFrameClassification"},
                           kData2vecAudioTypes[] = {"data2vec-audio"};
constexpr std::string_view
    kWav2vec2Architectures[] = {"Wav2Vec2Model", "Wav2Vec2ForCTC", "Wav2Vec2ForPreTraining",
                                "Wav2Vec2ForSequenceClassification", "Wav2Vec2ForAudioFrameClassification"},
    kWav2vec2Types[] = {"wav2vec2"},
    kWav2vec2ConformerArchitectures[] = {"Wav2Vec2ConformerModel", "Wav2Vec2ConformerForCTC",
                                         "Wav2Vec2ConformerForPreTraining",
                                         "Wav2Vec2ConformerForSequenceClassification",
                                         "Wav2Vec2ConformerForAudioFrameClassification"},
    kWav2vec2ConformerTypes[] = {"wav2vec2-conformer"},
    kHubertArchitectures[] = {"HubertModel", "HubertForCTC", "HubertForSequenceClassification"},
    kHubertTypes[] = {"hubert"},
    kWavlmArchitectures[] = {"WavLMModel", "WavLMForCTC", "WavLMForSequenceClassification",
                             "WavLMForAudioFrameClassification"},
    kWavlmTypes[] = {"wavlm"};

}  // namespace

const Family kWav2vec2 = {"wav2vec2", "wav2vec 2.0, XLS-R, MMS", kWav2vec2Architectures, kWav2vec2Types,
                          {},         describe_wav2vec2};
const Family kWav2vec2Conformer = {"wav2vec2_conformer",
                                   "wav2vec 2.0 of conformers",
                                   kWav2vec2ConformerArchitectures,
                                   kWav2vec2ConformerTypes,
                                   {},
                                   describe_wav2vec2_conformer};
const Family kHubert = {"hubert", "HuBERT", kHubertArchitectures, kHubertTypes, {}, describe_hubert};
const Family kUnispeech = {"unispeech", "UniSpeech, UniSpeech-SAT", kUnispeechArchitectures, kUnispeechTypes,
                           {},          describe_unispeech};
const Family kData2vecAudio = {
    "data2vec_audio",       "data2vec (sound)", kData2vecAudioArchitectures, kData2vecAudioTypes, {},
    describe_data2vec_audio};
const Family kWavlm = {"wavlm", "WavLM", kWavlmArchitectures, kWavlmTypes, {}, describe_wavlm};

}  // namespace assay::families
