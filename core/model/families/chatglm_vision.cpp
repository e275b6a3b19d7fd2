// GLM-4V-9B and CogAgent: ChatGLM behind EVA2-CLIP, a convolution that joins four patches, and a gated MLP. Source: vLLM
// 0.33 (glm4v.py), whose names are those of modeling_chatglm.py and visual.py beside the weights.
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// Norms stand behind attention and MLP, and what they are of is the same.
Module eva_blocks(ConfigReader& vision, const Quantity& hidden) {
  const Quantity wide = vision.size("intermediate_size");
  vision.size("num_hidden_layers");  // required: read_layers would take a default
  EncoderBlock block{hidden, wide};
  block.norm1 = "input_layernorm", block.norm2 = "post_attention_layernorm";
  block.qkv = "attention.query_key_value", block.o = "attention.dense";
  return encoder_blocks("transformer.layers.{layer}", read_layers(vision, "num_hidden_layers", 1), block,
                        Part::vision);
}

// A row of its own begins and another ends each image.
Module eva_projector(const Quantity& hidden, const Quantity& text, const Quantity& width, EvaJoins joins) {
  Module projector{"", "projector", {}, {}, {}};
  Tower tensors(projector, Part::projector);
  const Quantity& joined = joins == EvaJoins::into_text ? text : hidden;
  if (joins != EvaJoins::none)
    tensors.tensor("conv.weight", {joined, hidden, 2, 2}).tensor("conv.bias", {joined});
  tensors.matrix("linear_proj.linear_proj", joined, text, false)
      .norm("linear_proj.norm1", text, true)
      .matrix("linear_proj.gate_proj", text, width, false)
      .matrix("linear_proj.dense_h_to_4h", text, width, false)
      .matrix("linear_proj.dense_4h_to_h", width, text, false)
      .tensor("boi", {1, 1, text})
      .tensor("eoi", {1, 1, text});
  return projector;
}

}  // namespace

void add_eva_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden,
                    const Quantity& text_width, const EvaPlace& place) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size"), patch = vision->size("patch_size");
  Module tower{place.path, "vision tower (EVA2-CLIP)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_embedding.proj.weight", {hidden, vision->size("in_channels"), patch, patch})
      .tensor("patch_embedding.proj.bias", {hidden})
      .tensor("patch_embedding.cls_embedding", {1, hidden})
      .tensor("patch_embedding.position_embedding.weight", {vision->size("num_positions"), hidden});
  tower.children = {eva_blocks(*vision, hidden), eva_projector(hidden, text_hidden, text_width, place.joins)};
  tree.towers.push_back(std::move(tower));
}

}  // namespace assay::families
