// NVIDIA's Nemotron 3 Diarization, which tells who speaks, and Nemotron 3.5 Transcribe, a Nemotron-H behind an encoder of
// sound and that one, with a head beside that tells when words are said. All encoders are plain: norm, attention, norm, MLP.
// Source: transformers 5.23 (conversion_mapping.py has the names of NeMo's release of the second).
#include "core/model/families/all_speakers.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/sound_towers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// NeMo's names of an encoder's parts, or those of transformers.
struct PlainNames {
  bool nemo = false;
  const char* entry() const { return nemo ? "pre_encode.proj" : "embedder.projection"; }
  const char* first_norm() const { return nemo ? "embed_norm" : "input_layer_norm"; }
  const char* last_norm() const { return nemo ? "final_norm" : "layer_norm"; }
  EncoderBlock block(const Quantity& hidden, const Quantity& wide) const {
    EncoderBlock block{hidden, wide};
    block.norm1 = nemo ? "norm1" : "layer_norm1", block.norm2 = nemo ? "norm2" : "layer_norm2";
    block.qkv = nemo ? "attn.w_qkv" : "", block.o = nemo ? "attn.out_proj" : "self_attn.o_proj";
    block.attention_bias = false;
    block.up = nemo ? "ffn.net.0" : "mlp.fc1", block.down = nemo ? "ffn.net.3" : "mlp.fc2";
    return block;
  }
};

// What one of the three has by its class.
struct PlainClass {
  std::uint64_t hidden, wide, layers, heads;
  bool norms_heads = true;  // of queries and keys, named as NeMo does
};
constexpr PlainClass kHears = {1280, 5120, 32, 10}, kTellsWhen = {1280, 640, 2, 16},
                     kTellsWho = {512, 2048, 31, 8, false};

// The norms and layers; gives its width.
Quantity add_plain_layers(ConfigReader& config, Module& encoder, const PlainNames& names,
                          const PlainClass& of) {
  const Quantity hidden = config.size("hidden_size", of.hidden),
                 heads = config.size("num_attention_heads", of.heads);
  const Quantity dim = config.quotient(hidden, heads, "hidden_size / num_attention_heads");
  config.require(config.size("num_key_value_heads", heads).value() == heads.value(),
                 "num_key_value_heads is not num_attention_heads: such a joint matrix is not described");
  Tower(encoder, Part::audio).norm(names.first_norm(), hidden, true).norm(names.last_norm(), hidden, true);
  Module blocks = encoder_blocks("layers.{layer}", read_layers(config, "num_hidden_layers", of.layers),
                                 names.block(hidden, config.size("intermediate_size", of.wide)), Part::audio);
  Tower block(blocks, Part::audio);
  block.tensor(names.nemo ? "attn.out_proj.bias" : "self_attn.o_proj.bias", {hidden});
  if (of.norms_heads) block.norm("attn.q_norm", dim, true).norm("attn.k_norm", dim, true);
  encoder.children.push_back(std::move(blocks));
  return hidden;
}

// Frames of a spectrum, so many together, and layers over them.
Quantity add_plain_encoder(ConfigReader& config, Module& encoder, const PlainNames& names,
                           const PlainClass& of) {
  const Quantity together = config.size("subsampling_factor", 8) * config.size("num_mel_bins", 128);
  const Quantity hidden = add_plain_layers(config, encoder, names, of);
  Tower(encoder, Part::audio).matrix(names.entry(), together, hidden, false);
  return hidden;
}

struct DiarizationNames {
  std::string narrows, upsampler, dense, out, silence;
};

// What stands behind the encoder: as many frames again as were put together, and a chance for each speaker. Gives the number
// of speakers.
Quantity add_speaker_head(ConfigReader& config, ModuleTree& tree, Module& into, const Quantity& hidden,
                          const DiarizationNames& names) {
  TowerConfig given(config, tree, "head_config");
  const Quantity width = given ? given->size("hidden_size", 192) : Quantity(192),
                 speakers = given ? given->size("num_speakers", 8) : Quantity(8),
                 factor = given ? given->size("subsampling_factor", 8) : Quantity(8);
  constexpr std::uint64_t kReach = 3;  // by the class
  Tower(into, Part::audio)
      .tensor(names.silence, {hidden})
      .matrix(names.narrows, hidden, width, true)
      .tensor(names.upsampler + ".weight", {factor * width, width, kReach})
      .tensor(names.upsampler + ".bias", {factor * width})
      .matrix(names.dense, width, width, true)
      .matrix(names.out, width, speakers, true);
  return speakers;
}

void describe_diarization(ConfigReader& config, ModuleTree& tree) {
  TowerConfig audio(config, tree, "audio_config");
  config.require(static_cast<bool>(audio), "audio_config is missing, which tells the encoder's sizes");
  Module encoder{"model.audio_tower", "encoder of sound", {}, {}, {}};
  const Quantity hidden = add_plain_encoder(*audio, encoder, {}, kTellsWho);
  tree.hidden_size = hidden.value();
  tree.layers = read_layers(*audio, "num_hidden_layers", kTellsWho.layers).value();
  tree.modules.push_back(std::move(encoder));
  Module head{"", "who speaks", {}, {}, {}};
  add_speaker_head(
      config, tree, head, hidden,
      {"model.proj", "model.upsampler.conv", "classifier.dense", "classifier.out_proj", "silence_embeds"});
  tree.modules.push_back(std::move(head));
}

constexpr PlainNames kNemo = {.nemo = true};

// Both encoders of what is heard, and the norms under which they are added up.
Quantity add_hearing_pair(ConfigReader& audio, ModuleTree& tree) {
  TowerConfig hears(audio, tree, "asr_config"), tells(audio, tree, "diarization_config");
  audio.require(hears && tells, "audio_config has no asr_config, or no diarization_config");
  Module encoder{"perception.encoder.asr_encoder", "encoder of sound", {}, {}, {}};
  const Quantity hidden = add_plain_encoder(*hears, encoder, kNemo, kHears);
  add_tower(tree, std::move(encoder));
  TowerConfig sound(*tells, tree, "audio_config");
  tells->require(static_cast<bool>(sound), "diarization_config has no audio_config");
  Module who{"perception.encoder.diarization_model", "who speaks", {}, {}, {}};
  Module layers{"encoder", "encoder of sound", {}, {}, {}};
  const Quantity narrow = add_plain_encoder(*sound, layers, kNemo, kTellsWho);
  who.children.push_back(std::move(layers));
  const std::string head = "sortformer_modules.";
  const Quantity speakers =
      add_speaker_head(*tells, tree, who, narrow,
                       {head + "encoder_proj", head + "subpixel_upsample", head + "first_hidden_to_hidden",
                        head + "single_hidden_to_spks", head + "learnable_sil_emb"});
  add_tower(tree, std::move(who));
  Module norms{"perception.encoder", "norms of both", {}, {}, {}};
  Tower(norms, Part::audio).norm("asr_norm", hidden, true).norm("diar_norm", speakers, true);
  add_tower(tree, std::move(norms));
  return hidden;
}

// When words are said: of frames half as long, pieces of an alphabet of its own.
void add_word_times(ConfigReader& document, ModuleTree& tree) {
  TowerConfig times(document, tree, "word_timestamp_config");
  document.require(static_cast<bool>(times), "word_timestamp_config is missing");
  Module head{"ctc_timestamp.decoder", "when words are said", {}, {}, {}};
  Module encoder{"transformer", "encoder", {}, {}, {}};
  const Quantity hidden = add_plain_layers(*times, encoder, kNemo, kTellsWhen);
  Tower(head, Part::audio)
      .tensor("upsample.weight", {hidden, hidden, times->size("upsampling_factor", 2)})
      .tensor("upsample.bias", {hidden});
  const Quantity pieces = times->size("vocab_size", 23863);
  Tower(head, Part::audio)
      .tensor("decoder_layers.0.weight", {pieces, hidden, 1})
      .tensor("decoder_layers.0.bias", {pieces});
  head.children.push_back(std::move(encoder));
  add_tower(tree, std::move(head));
}

// What NeMo keeps in float32 stands in a module of its own.
void set_apart(Module& module) {
  for (TensorSpec& spec : module.tensors) {
    for (const std::string name : {".mixer.A_log", ".mixer.D", ".mixer.dt_bias"}) {
      if (spec.name.ends_with(name)) spec.name.insert(spec.name.rfind('.') + 1, "_fp32_params.");
    }
  }
  for (Module& child : module.children) set_apart(child);
}

}  // namespace

void add_nemotron_transcribe(ConfigReader& document, ModuleTree& tree) {
  rename(tree, "llm.backbone.embeddings.", "llm.model.embed_tokens.");
  rename(tree, "llm.backbone.norm_f.", "llm.model.norm.");
  rename(tree, "llm.backbone.layers.", "llm.model.layers.");
  for (Module& module : tree.modules) set_apart(module);
  TowerConfig audio(document, tree, "audio_config");
  document.require(static_cast<bool>(audio), "audio_config is missing");
  const Quantity hidden = add_hearing_pair(*audio, tree);
  add_word_times(document, tree);
  Module projector{"perception", "projector", {}, {}, {}};
  Tower(projector, Part::projector).matrix("proj", hidden, text_width(tree), true);
  add_tower(tree, std::move(projector));
}

namespace {

constexpr std::string_view kDiarizationArchitectures[] = {"Nemotron3DiarizationForAudioFrameClassification"},
                           kDiarizationTypes[] = {"nemotron3_diarization"};

}  // namespace

const Family kNemotronDiarization = {
    "nemotron3_diarization", "Nemotron 3 Diarization", kDiarizationArchitectures, kDiarizationTypes, {},
    describe_diarization};

}  // namespace assay::families
