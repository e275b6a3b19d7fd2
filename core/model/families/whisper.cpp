// Whisper: an encoder of sound, and a decoder that attends to itself and to it. What it attends to of the sound is computed
// once and does not grow with the text. Source: transformers 5.24 (whisper).
#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/hearing.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

Module whisper_attention(const HeadAttention& a) {
  Module module = attention(a);
  std::erase_if(module.tensors, [](const TensorSpec& spec) { return spec.name == "k_proj.bias"; });
  return module;
}

void describe_whisper(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_writer(
      config, {.vocabulary = 51865, .hidden = 384, .intermediate = 1536, .layers = 4, .heads = 6});
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  HeadAttention a = d.attention();
  a.o = "out_proj", a.qkv_bias = a.output_bias = true;
  HeadAttention to_sound = a;
  to_sound.path = "encoder_attn";
  Module layer = layers("model.decoder.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "self_attn_layer_norm", d.hidden, Role::input_norm, true);
  add_norm(layer, "encoder_attn_layer_norm", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, "final_layer_norm", d.hidden, Role::pre_feedforward_norm, true);
  layer.children = {
      whisper_attention(a), whisper_attention(to_sound),
      plain_mlp(
          {.hidden = d.hidden, .intermediate = d.intermediate, .path = "", .up = "fc1", .down = "fc2"})};
  add_frame(tree, d, {layer},
            {.embedding = "model.decoder.embed_tokens",
             .final_norm = "model.decoder.layer_norm",
             .head = "proj_out",
             .norm_bias = true});
  add_positions(tree, "model.decoder.embed_positions", config.size("max_target_positions", 448), d.hidden);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  if (config.config().architecture() == "WhisperForCausalLM") return;  // the decoder alone
  add_tower(tree,
            whisper_encoder(config, "model.encoder", {.bins = 80, .hidden = 384, .layers = 4, .wide = 1536}));
}

constexpr std::string_view kWhisperArchitectures[] = {"WhisperForConditionalGeneration",
                                                      "WhisperForCausalLM"},
                           kWhisperTypes[] = {"whisper"};

}  // namespace

const Family kWhisper = {"whisper",        "Whisper", kWhisperArchitectures, kWhisperTypes, {},
                         describe_whisper, nullptr};

}  // namespace assay::families
