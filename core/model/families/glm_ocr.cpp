// GLM-OCR: a GLM-4-0414 behind a tower whose heads norm queries and keys. Source: transformers 5.23 (glm_ocr); the
// checkpoint has a layer for multi-token prediction besides, which the class leaves out.
#include "core/model/families/all_2026.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/seeing_forward.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

void fill_layer(Module& layer, const Decoder& d) {
  GatedMlp mlp = d.mlp();
  mlp.fused = "gate_up_proj";
  add_pre_norms(layer, d.hidden);
  add_norm(layer, "post_self_attn_layernorm", d.hidden, Role::post_attention_norm);
  add_norm(layer, "post_mlp_layernorm", d.hidden, Role::post_feedforward_norm);
  layer.children = {attention(d.attention()), gated_mlp(mlp)};
}

void describe_glm_ocr(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 59392, .hidden = 1024, .intermediate = 4096, .layers = 16, .heads = 16, .kv_heads = 8});
  d.tied = tree.tied_embeddings = tied_in_either(config, false);
  const std::string prefix = is_nested(config) ? "model.language_model." : "model.";
  const std::string path = prefix + "layers.{layer}";
  Module layer = layers(path, "layers", all_layers(d.layers));
  fill_layer(layer, d);
  add_frame(tree, d, {layer}, frame_under(prefix));
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  if (const std::uint64_t predicted = read_mtp_layers(config, 0); predicted > 0) {
    const auto behind = layers_after(d.layers, predicted);
    Module next = layers(path, "multi-token prediction", behind);
    fill_layer(next, d);
    add_mtp(tree, d, std::move(next), prefix + "embed_tokens.weight", "lm_head.weight");
    tree.mtp_attention.push_back(geometry(d.attention(), behind));
  }
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity context = vision->size("in_channels", 3) * vision->size("out_hidden_size", 1536);
  tree.towers.push_back(glm_ocr_tower(*vision, "model.visual", context));
}

constexpr std::string_view kGlmOcrArchitectures[] = {"GlmOcrForConditionalGeneration"};
constexpr std::string_view kGlmOcrTypes[] = {"glm_ocr", "glm_ocr_text"};

}  // namespace

const Family kGlmOcr = {"glm_ocr", "GLM-OCR",        kGlmOcrArchitectures, kGlmOcrTypes,
                        {},        describe_glm_ocr, forward_glm_ocr};

}  // namespace assay::families
