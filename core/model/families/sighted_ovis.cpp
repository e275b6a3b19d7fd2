// Ovis 1.6 and 2 as AIDC-AI publishes them, and 2.5 and 2.6: patches become a distribution over a vocabulary of its own,
// whose words have embeddings (vte). Names of Ovis 2 from transformers' converter, of 2.5 from vLLM 0.33 (ovis2_5.py).
#include "core/model/families/encoder_towers.h"
#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// What tells a word from patches: a matrix, a norm. Words of the vocabulary that are indicators it cannot tell.
Module word_head(ConfigReader& config, const Quantity& hidden, const Quantity& words,
                 std::uint64_t indicators) {
  config.require(words.value() > indicators, "the vocabulary of the eye has no words beside indicators");
  const Quantity told("vocabulary − " + std::to_string(indicators), words.value() - indicators);
  const Quantity stride = config.size("hidden_stride", 1);
  Module head{"visual_tokenizer.head", "vocabulary of the eye", {}, {}, {}};
  Tower(head, Part::projector).matrix("0", hidden * stride * stride, told, false).norm("1", told, true);
  return head;
}

// Apple's AIMv2: RMSNorms and gated MLPs. Aimv2VisionConfig's defaults.
Module aimv2_tower(ConfigReader& vision, std::string path) {
  const Quantity hidden = vision.size("hidden_size", 1024), patch = vision.size("patch_size", 14);
  const Quantity side("image_size / patch_size", vision.size("image_size", 224).value() / patch.value());
  Module tower{std::move(path), "vision tower (AIMv2)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("preprocessor.patchifier.proj.weight", {hidden, vision.size("num_channels", 3), patch, patch})
      .tensor("preprocessor.patchifier.proj.bias", {hidden})
      .norm("preprocessor.patchifier.norm", hidden, false)
      .tensor("preprocessor.pos_embed", {1, side * side, hidden})
      .norm("trunk.post_trunk_norm", hidden, false);
  EncoderBlock block{hidden, vision.size("intermediate_size", 2816)};
  block.norm1 = "norm_1", block.norm2 = "norm_2", block.norm_bias = false;
  block.qkv = "attn.qkv", block.o = "attn.proj", block.attention_bias = vision.flag("qkv_bias", false);
  block.gate = "mlp.fc1", block.up = "mlp.fc3", block.down = "mlp.fc2";
  block.mlp_bias = vision.flag("use_bias|mlp_bias", false);
  vision.require(block.attention_bias == block.mlp_bias,
                 "qkv_bias and use_bias differ: such an AIMv2 is not described");
  tower.children = {encoder_blocks("trunk.blocks.{layer}", read_layers(vision, "num_hidden_layers", 24),
                                   block, Part::vision)};
  return tower;
}

void add_words(ConfigReader& document, ModuleTree& tree, const Quantity& words) {
  add_bare(tree, "vte.weight", {words, document.size("hidden_size", text_width(tree))});
}

// A SigLIP that takes images of any size: its positions are a square's, where it has any.
Module siglip_navit(ConfigReader& vision, std::string path) {
  const bool flat = vision.real("num_patches", -1, -1, 1e9) > 0;
  Module tower = siglip_tower(vision, std::move(path), flat ? kSiglip2 : kSiglipOfKeye);
  if (!vision.flag("preserve_original_pe", true))
    std::erase_if(tower.tensors,
                  [](const TensorSpec& t) { return t.name == "embeddings.position_embedding.weight"; });
  return tower;
}

}  // namespace

void add_ovis(ConfigReader& document, ModuleTree& tree) {
  constexpr std::uint64_t kIndicators = 5;  // IMAGE_INDICATOR_IDS
  TowerConfig tokenizer(document, tree, "visual_tokenizer_config");
  if (!tokenizer) return;
  TowerConfig vision(*tokenizer, tree, "backbone_config");
  if (!vision) return;
  const std::string path = "visual_tokenizer.backbone";
  const std::string type = vision->text("model_type", "aimv2");
  if (type == "aimv2" || type == "aimv2_vision_model") {
    add_tower(tree, aimv2_tower(*vision, path));
  } else if (!add_encoder(*vision, tree, path + ".vision_model", type)) {
    return;
  }
  const Quantity hidden = vision->size("hidden_size", type == "siglip_vision_model" ? 768 : 1024);
  const Quantity words = tokenizer->size("vocab_size", 16384);
  add_tower(tree, word_head(*tokenizer, hidden, words, kIndicators));
  add_words(document, tree, words);
}

void add_ovis_2_5(ConfigReader& document, ModuleTree& tree) {
  constexpr std::uint64_t kIndicators = 4;  // INDICATOR_IDS
  TowerConfig vision(document, tree, "vit_config");
  if (!vision) return;
  const Quantity words = document.size("visual_vocab_size", 65536);
  add_tower(tree, siglip_navit(*vision, "visual_tokenizer.vit.vision_model"));
  add_tower(tree, word_head(*vision, vision->size("hidden_size", 1152), words, kIndicators));
  add_words(document, tree, words);
}

// AndesVL: patches by fours through an MLP into a Qwen3. Positions are learnt only where preserve_original_pe says so.
void add_andes(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  Module tower = aimv2_tower(*vision, "vision_encoder");
  if (!vision->flag("preserve_original_pe", false))
    std::erase_if(tower.tensors, [](const TensorSpec& t) { return t.name == "preprocessor.pos_embed"; });
  add_tower(tree, std::move(tower));
  const Quantity joined = Quantity(4) * vision->size("hidden_size", 1024);
  Module projector{"mlp", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("0", joined, joined, true)
      .matrix("2", joined, text_width(tree), true);
  add_tower(tree, std::move(projector));
}

}  // namespace assay::families
