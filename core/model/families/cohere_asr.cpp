// Cohere Transcribe: a Parakeet that hears, and a decoder that writes what it attends to, under the names of NVIDIA's NeMo,
// which the release has (vLLM 0.33's cohere_asr.py reads them; transformers 5.24's class renames them). The encoder is told as
// a tower; what the decoder sees of it caches nothing that grows.
#include "core/model/families/all_more.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// NeMo's names of what Parakeet's class in transformers has renamed.
void name_as_nemo(Module& module) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"self_attn.q_proj", "self_attn.linear_q"},
      {"self_attn.k_proj", "self_attn.linear_k"},
      {"self_attn.v_proj", "self_attn.linear_v"},
      {"self_attn.o_proj", "self_attn.linear_out"},
      {"self_attn.relative_k_proj", "self_attn.linear_pos"},
      {"self_attn.bias_u", "self_attn.pos_bias_u"},
      {"self_attn.bias_v", "self_attn.pos_bias_v"},
      {"conv.norm", "conv.batch_norm"}};
  if (module.path == "subsampling") {
    module.path = "pre_encode";
    for (TensorSpec& spec : module.tensors) {
      if (spec.name.starts_with("layers.")) spec.name = "conv." + spec.name.substr(7);
      if (spec.name.starts_with("linear.")) spec.name = "out." + spec.name.substr(7);
    }
  }
  for (TensorSpec& spec : module.tensors) {
    for (const auto& [ours, theirs] : kNames) {
      if (spec.name.starts_with(ours)) spec.name = std::string(theirs) + spec.name.substr(ours.size());
    }
  }
  for (Module& child : module.children) name_as_nemo(child);
}

Module cohere_layer(const Decoder& d, const HeadAttention& writes, const HeadAttention& sees) {
  Module layer = layers("transf_decoder._decoder.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "layer_norm_1", d.hidden, Role::input_norm, true);
  add_norm(layer, "layer_norm_2", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, "layer_norm_3", d.hidden, Role::pre_feedforward_norm, true);
  layer.children = {attention(writes), attention(sees),
                    plain_mlp({.hidden = d.hidden,
                               .intermediate = d.intermediate,
                               .path = "third_sub_layer",
                               .up = "dense_in",
                               .down = "dense_out"})};
  return layer;
}

void describe_cohere_asr(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 16384, .hidden = 1024, .intermediate = 4096, .layers = 8, .heads = 8});
  HeadAttention writes = d.attention();
  writes.qkv_bias = writes.output_bias = config.flag("attention_bias", true);
  writes.path = "first_sub_layer";
  writes.q = "query_net", writes.k = "key_net", writes.v = "value_net", writes.o = "out_projection";
  HeadAttention sees = writes;
  sees.path = "second_sub_layer";
  TowerConfig encoder(config, tree, "encoder_config");
  config.require(static_cast<bool>(encoder), "encoder_config is missing, which tells the encoder's sizes");

  const std::string start = "transf_decoder._embedding.", table = start + "token_embedding";
  Module places{"", "places, and what enters", {}, {}, {}};
  places.tensors.push_back(parameter(start + "position_embedding.pos_enc",
                                     {config.size("max_position_embeddings", 1024), d.hidden},
                                     Role::position_embedding, Part::embedding));
  add_norm(places, start + "layer_norm", d.hidden, Role::embedding_norm, true);
  tree.modules = {
      embedding(table, d.vocabulary, d.hidden), std::move(places), cohere_layer(d, writes, sees),
      norm("transf_decoder._decoder.final_layer_norm", d.hidden, Role::final_norm, true),
      output_head("log_softmax.mlp.layer0", d.vocabulary, d.hidden, d.tied, table + ".weight", true)};
  tree.attention.push_back(geometry(writes, all_layers(d.layers)));

  constexpr ParakeetClass kClass = {
      .hidden = 1280, .layers = 48, .wide = 5120, .bins = 128, .attention_bias = true};
  Module tower = parakeet_encoder(*encoder, "encoder", kClass);
  name_as_nemo(tower);
  add_tower(tree, std::move(tower));
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("encoder_decoder_proj", encoder->size("hidden_size", kClass.hidden), d.hidden, true);
  add_tower(tree, std::move(projector));
}

constexpr std::string_view kCohereAsrArchitectures[] = {"CohereAsrForConditionalGeneration"},
                           kCohereAsrTypes[] = {"cohere_asr"};

}  // namespace

const Family kCohereAsr = {"cohere_asr", "Cohere Transcribe", kCohereAsrArchitectures, kCohereAsrTypes,
                           {},           describe_cohere_asr};

}  // namespace assay::families
