// MiniCPM-V 4.6 and 4.7 and MiniCPM-OCR over Qwen3.5, Ovis2.
#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// The two sides of a window.
Quantity window_of(ConfigReader& config, const std::string& key) {
  const auto sides = config.numbers(key).value_or(std::vector<std::uint64_t>{2, 2});
  config.require(sides.size() == 2 && sides[0] > 0 && sides[1] > 0, key + " is no pair of sides");
  return {key, sides[0] * sides[1]};
}

// Between two blocks of the tower, attention within windows and an MLP that makes one patch of each.
Module window_merger(ConfigReader& vision) {
  const Quantity hidden = vision.size("hidden_size", 768), window = window_of(vision, "window_kernel_size");
  const Quantity joined = window * hidden, wide = window * vision.size("intermediate_size", 3072);
  Module merger{"vit_merger", "merger of windows", {}, {}, {}};
  Tower tensors(merger, Part::vision);
  for (const char* matrix :
       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"})
    tensors.matrix(matrix, hidden, hidden, true);
  tensors.norm("layer_norm1", hidden, true)
      .norm("pre_norm", joined, true)
      .matrix("linear_1", joined, wide, true)
      .matrix("linear_2", wide, hidden, true);
  return merger;
}

}  // namespace

void add_minicpm_v(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  Module tower = siglip_tower(*vision, "model.vision_tower");
  tower.children.push_back(window_merger(*vision));
  add_tower(tree, std::move(tower));
  // Each joins four patches; all but the last keep the tower's width.
  const Quantity hidden = vision->size("hidden_size", 768), joined = Quantity(4) * hidden;
  const std::uint64_t times = document.size("merger_times", 1).value();
  const auto groups = group_layers(
      "model.merger.mlp.{layer}", read_layers(document, "merger_times", 1),
      [&](std::uint64_t i) { return i + 1 == times ? "projector" : "mergers"; },
      [&](Module& merger, std::uint64_t i) {
        Tower(merger, Part::projector)
            .norm("pre_norm", joined, true)
            .matrix("linear_1", joined, joined, true)
            .matrix("linear_2", joined, i + 1 == times ? text_width(tree) : hidden, true);
      });
  for (const Module& group : groups) add_tower(tree, group);
}

// Patches become a distribution over a vocabulary of its own, whose words have embeddings.
void add_ovis2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1024), patch = vision->size("patch_size", 14);
  const Quantity side("image_size / patch_size", vision->size("image_size", 224).value() / patch.value());
  const Quantity words = vision->size("vocab_size", 16384);
  const std::uint64_t indicators = vision->number("num_visual_indicator_tokens", 5);
  vision->require(indicators < words.value(),
                  "num_visual_indicator_tokens leaves no words of its vocabulary");
  const Quantity told("vocab_size − num_visual_indicator_tokens", words.value() - indicators);
  const Quantity stride = vision->size("hidden_stride", 1);
  Module tower{"model.vision_tower", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("transformer.embeddings.patch_embedding.weight",
              {hidden, vision->size("num_channels", 3), patch, patch})
      .tensor("transformer.embeddings.patch_embedding.bias", {hidden})
      .tensor("transformer.embeddings.position_embedding.weight", {side * side, hidden})
      .norm("transformer.embeddings.rms_norm", hidden, false)
      .norm("transformer.rms_norm", hidden, false);
  EncoderBlock block{hidden, vision->size("intermediate_size", 2816)};
  block.norm1 = "rms_norm1", block.norm2 = "rms_norm2", block.norm_bias = false;
  block.q = "attention.q_proj", block.k = "attention.k_proj", block.v = "attention.v_proj";
  block.o = "attention.out_proj", block.attention_bias = vision->flag("qkv_bias", false);
  block.gate = "ffn.gate_proj", block.up = "ffn.up_proj", block.down = "ffn.down_proj";
  block.mlp_bias = vision->flag("mlp_bias", false);
  Module head{"", "vocabulary of the eye", {}, {}, {}};
  Tower(head, Part::projector)
      .matrix("head_linear", hidden * stride * stride, told, false)
      .norm("head_norm", told, true);
  tower.children = {encoder_blocks("transformer.encoder.layers.{layer}",
                                   read_layers(*vision, "num_hidden_layers", 24), block, Part::vision),
                    std::move(head)};
  add_tower(tree, std::move(tower));
  add_bare(tree, "model.visual_embeddings_table.weight", {words, document.size("hidden_size", 1536)});
}

}  // namespace assay::families
