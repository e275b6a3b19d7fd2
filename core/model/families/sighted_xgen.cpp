// xGen-MM, that was BLIP-3: a Phi-3 behind a SigLIP, whose patches learnt queries gather (a perceiver). Rows of three new tokens lie
// in tables of their own, and its head has got a bias. Source: modeling_xgenmm.py beside the weights, which knows one encoder.
#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

constexpr std::uint64_t kRowsOfNewTokens = 3;

Module perceiver(ConfigReader& tokenizer, const Quantity& out) {
  constexpr std::uint64_t kDepth = 6, kInner = std::uint64_t{16} * 96;
  const Quantity width = tokenizer.size("vis_feature_dim", 1152), wide = Quantity(4) * width, inner = kInner;
  Module module{"vlm.vision_tokenizer", "perceiver", {}, {}, {}};
  Tower(module, Part::projector)
      .tensor("latents", {tokenizer.size("num_vis_tokens", 128), width})
      .matrix("projection", width, out, true)
      .norm("norm", width, true);
  Module layer = layers("layers.{layer}", "layers", all_layers(Quantity(kDepth)));
  Tower(layer, Part::projector)
      .norm("0.norm_media", width, true)
      .norm("0.norm_latents", width, true)
      .matrix("0.to_q", width, inner, false)
      .matrix("0.to_kv", width, Quantity(2) * inner, false)
      .matrix("0.to_out", inner, width, false)
      .norm("1.0", width, true)
      .matrix("1.1", width, wide, false)
      .matrix("1.3", wide, width, false);
  module.children = {std::move(layer)};
  return module;
}

}  // namespace

void add_xgen_mm(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_encoder_config"),
      tokenizer(document, tree, "vision_tokenizer_config");
  document.require(vision && tokenizer, "vision_encoder_config or vision_tokenizer_config is missing");
  const std::string encoder = vision->text("model_name", "google/siglip-so400m-patch14-384");
  vision->require(encoder == "google/siglip-so400m-patch14-384",
                  "model_name: \"" + encoder + "\" is not described");
  Module tower = siglip_tower(*vision, "vlm.vision_encoder", kSiglipOfKeye);
  tower.children.push_back(siglip_head(*vision, kSiglipOfKeye));
  add_tower(tree, std::move(tower));
  const Quantity width = text_width(tree);
  add_tower(tree, perceiver(*tokenizer, width));
  const Quantity vocabulary("vocab_size", tree.vocabulary);
  Module rest{"vlm.lang_model", "rows of new tokens", {}, {}, {}};
  Tower(rest, Part::projector)
      .tensor("model.embed_tokens.additional_embedding.weight", {kRowsOfNewTokens, width})
      .tensor("lm_head.bias", {vocabulary})
      .matrix("lm_head.additional_fc", width, kRowsOfNewTokens, true);
  add_tower(tree, std::move(rest));
}

}  // namespace assay::families
