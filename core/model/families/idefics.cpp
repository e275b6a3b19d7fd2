// IDEFICS (the first, 9B and 80B): a Llama, before some of whose layers stand others that attend to what a CLIP saw, through gates
// that were shut when training began; a perceiver makes a fixed number of vectors of an image. Further tokens have a table of their
// own. Source: transformers 5.23 (idefics).
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kSeen = 768;  // IdeficsVisionConfig's embed_dim

// Keys and values are an image's, computed once for all tokens that follow: they do not grow with the text.
Module gated_seeing_layers(ConfigReader& config, const Decoder& d, const Quantity& seen) {
  const std::uint64_t interval = config.size("cross_layer_interval", 1).value();
  Module layer = layers("model.gated_cross_attn_layers.{layer}", "layers that see",
                        all_layers({"layers / cross_layer_interval", d.layers.value() / interval}));
  const std::string gates = config.text("alpha_type", "float");
  config.require(gates == "float" || gates == "vector", "alpha_type is neither float nor vector");
  for (const char* gate : {"alpha_cross_attn", "alpha_dense"}) {
    const std::vector<Quantity> shape =
        gates == "float" ? std::vector<Quantity>{1} : std::vector<Quantity>{1, 1, d.hidden};
    layer.tensors.push_back(parameter(gate, shape, Role::layer_scale, Part::norm));
  }
  add_pre_norms(layer, d.hidden);
  HeadAttention a = d.attention();
  a.path = "cross_attn";
  if (config.flag("qk_layer_norms", false)) a.qk_norm = QkNorm::per_head;
  a.q_norm = "q_layer_norm", a.k_norm = "k_layer_norm";
  Module sees = attention(a);
  widen_keys(sees, d, seen);
  layer.children = {std::move(sees), gated_mlp(d.mlp())};
  return layer;
}

Module idefics_perceiver(ConfigReader& config, const Quantity& seen) {
  const Quantity width = config.size("resampler_n_heads", 16) * config.size("resampler_head_dim", 96);
  const Quantity wide = Quantity(4) * seen;
  Module module{"model.perceiver_resampler", "perceiver", {}, {}, {}};
  Tower(module, Part::projector)
      .tensor("latents", {config.size("resampler_n_latents", 64), seen})
      .norm("layer_norm", seen, true);
  Module block = layers("blocks.{layer}", "blocks", all_layers(read_layers(config, "resampler_depth", 6)));
  Tower into(block, Part::projector);
  into.norm("0.context_layer_norm", seen, true)
      .norm("0.latents_layer_norm", seen, true)
      .matrix("0.q_proj", seen, width, false)
      .matrix("0.k_proj", seen, width, false)
      .matrix("0.v_proj", seen, width, false)
      .matrix("0.output_proj", width, seen, false)
      .norm("1.ln", seen, true)
      .matrix("1.fc", seen, wide, false)
      .matrix("1.c_proj", wide, seen, false);
  if (config.flag("qk_layer_norms_perceiver", false))
    into.norm("0.q_layer_norm", config.size("resampler_head_dim", 96), true)
        .norm("0.k_layer_norm", config.size("resampler_head_dim", 96), true);
  module.children = {std::move(block)};
  return module;
}

// Rows of the table and of the head that training added.
void add_further_words(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  const std::uint64_t count = config.number("additional_vocab_size", 0);
  if (count == 0) return;
  const Quantity rows("additional_vocab_size", count);
  const std::string table = "model.embed_tokens.additional_embedding";
  tree.modules.push_back(embedding(table, rows, d.hidden));
  tree.modules.push_back(output_head("lm_head.additional_fc", rows, d.hidden, d.tied, table + ".weight"));
}

void describe_idefics(ConfigReader& config, ModuleTree& tree) {
  const LlamaKin kin = {
      .sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
      .bias_keys = ""};
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.kv_heads = d.heads;
  describe_kin(config, tree, kin, d);
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  const Quantity seen = vision->size("embed_dim|hidden_size", kSeen);
  tree.modules.push_back(gated_seeing_layers(config, d, seen));
  add_further_words(config, tree, d);
  add_tower(tree, clip_tower(*vision, "model.vision_model",
                             {.hidden = kSeen, .patch = 14, .intermediate = 5120, .layers = 32}));
  if (!config.flag("use_resampler", false)) return;
  TowerConfig resampler(config, tree, "perceiver_config");
  config.require(static_cast<bool>(resampler), "perceiver_config is missing");
  add_tower(tree, idefics_perceiver(*resampler, seen));
}

constexpr std::string_view kIdeficsArchitectures[] = {"IdeficsForVisionText2Text"},
                           kIdeficsTypes[] = {"idefics"};

}  // namespace

const Family kIdefics = {"idefics", "IDEFICS", kIdeficsArchitectures, kIdeficsTypes, {}, describe_idefics};

}  // namespace assay::families
