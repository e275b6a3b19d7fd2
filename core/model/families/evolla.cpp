// Evolla: a Llama some of whose layers attend, behind gates, to what a SaProt (an ESM whose letters tell residue and structure) and
// a resampler have made of a protein. Source: transformers 5.23 (evolla).
#include <algorithm>

#include "core/model/families/all_kin.h"
#include "core/model/families/encoder_kin.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

EncoderKin saprot_kin() {
  EncoderKin kin{.prefix = "model.protein_encoder.model.", .positions = 0, .types = 0, .norm_of_tables = ""};
  kin.sizes = {.vocabulary = 446, .hidden = 1280, .intermediate = 5120, .layers = 33, .heads = 20};
  kin.attention_norm = "attention.LayerNorm", kin.mlp_norm = "LayerNorm";
  return kin;
}

// Gives its width.
Quantity add_saprot(ConfigReader& config, ModuleTree& tree) {
  TowerConfig protein(config, tree, "protein_encoder_config");
  config.require(static_cast<bool>(protein), "protein_encoder_config is missing");
  protein->require(protein->text("position_embedding_type", "rotary") == "rotary",
                   "protein_encoder_config.position_embedding_type is not rotary");
  protein->require(!protein->flag("emb_layer_norm_before", false),
                   "protein_encoder_config.emb_layer_norm_before is true: not described");
  const EncoderKin kin = saprot_kin();
  ModuleTree alone;
  const Decoder d = read_encoder(*protein, alone, kin);
  add_encoder_body(*protein, alone, d, kin, kin.prefix);
  alone.modules.push_back(
      norm(kin.prefix + "encoder.emb_layer_norm_after", d.hidden, Role::final_norm, true));
  for (Module& module : alone.modules) add_tower(tree, std::move(module));
  return d.hidden;
}

Module protein_resampler(ConfigReader& config, const Quantity& seen, const Quantity& hidden) {
  const Quantity width = config.size("resampler_heads", 8) * config.size("resampler_dim_head", 64);
  const Quantity wide = config.size("resampler_ff_mult", 4) * seen;
  Module module{"model.protein_encoder.sequence_compressor_resampler", "resampler", {}, {}, {}};
  Tower(module, Part::projector)
      .tensor("latents", {config.size("resampler_num_latents", 64), seen})
      .norm("norm", hidden, true)
      .matrix("protein_projector", seen, hidden, true);
  Module block = layers("layers.{layer}", "blocks", all_layers(read_layers(config, "resampler_depth", 6)));
  Tower(block, Part::projector)
      .norm("0.norm_media", seen, true)
      .norm("0.norm_latents", seen, true)
      .matrix("0.to_q", seen, width, false)
      .matrix("0.to_kv", seen, Quantity(2) * width, false)
      .matrix("0.to_out", width, seen, false)
      .norm("1.norm", seen, true)
      .matrix("1.fc1", seen, wide, false)
      .matrix("1.fc2", wide, seen, false);
  module.children = {std::move(block)};
  return module;
}

// In the last of every so many layers: attention to the protein, whose keys and values do not grow with the text.
Module protein_adapters(ConfigReader& config, const Decoder& d) {
  const std::uint64_t asked = config.size("aligner_num_add_layers", 8).value();
  const std::uint64_t every = std::max<std::uint64_t>(d.layers.value() / asked, 1);
  Module module = layers("model.layers.{layer}.adapter", "layers that see a protein",
                         layers_where(d.layers, [&](std::uint64_t i) { return (i + 1) % every == 0; }));
  module.tensors = {parameter("gate_attention", {1}, Role::layer_scale, Part::norm),
                    parameter("gate_ffw", {1}, Role::layer_scale, Part::norm)};
  add_norm(module, "attention_norm", d.hidden, Role::input_norm);
  add_norm(module, "ff.norm", d.hidden, Role::pre_feedforward_norm, true);
  HeadAttention a = d.attention();
  a.kv_heads = d.heads, a.path = "", a.qkv_bias = true,
  a.output_bias = config.flag("aligner_enable_bias", true);
  a.q = "query", a.k = "key_protein", a.v = "value_protein", a.o = "out_proj";
  Module sees = attention(a);
  for (TensorSpec& spec : sees.tensors) {  // which no engine joins with the queries
    if (spec.role == Role::k || spec.role == Role::v) spec.role = Role::other;
  }
  module.children = {std::move(sees),
                     plain_mlp({.hidden = d.hidden,
                                .intermediate = config.size("aligner_ffn_mult", 4) * d.hidden,
                                .path = "ff",
                                .bias = false,
                                .up = "fc1",
                                .down = "fc2"})};
  return module;
}

void describe_evolla(ConfigReader& config, ModuleTree& tree) {
  const LlamaKin kin = {.sizes = {.vocabulary = 128256,
                                  .hidden = 4096,
                                  .intermediate = 14336,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 8},
                        .mlp_bias_keys = "mlp_bias"};
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.tied = tree.tied_embeddings = false;  // whatever the config says: the class ties nothing
  config.require(d.head_dim.value() * d.heads.value() == d.hidden.value(),
                 "hidden_size is not num_attention_heads × head_dim");
  describe_kin(config, tree, kin, d);
  tree.modules.push_back(protein_adapters(config, d));
  const Quantity seen = add_saprot(config, tree);
  add_tower(tree, protein_resampler(config, seen, d.hidden));
}

constexpr std::string_view kEvollaArchitectures[] = {"EvollaForProteinText2Text"},
                           kEvollaTypes[] = {"evolla"};

}  // namespace

const Family kEvolla = {"evolla", "Evolla", kEvollaArchitectures, kEvollaTypes, {}, describe_evolla};

}  // namespace assay::families
