// Janus as transformers saves it: it sees through a SigLIP of its own, and draws: what it tells of an image are words of a
// VQ-GAN.
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/families/vq_gan.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// fc1, and matrices as wide as what it gives.
Module aligner(std::string path, const Quantity& in, const Quantity& out, std::uint64_t depth) {
  Module module{std::move(path), "projector", {}, {}, {}};
  Tower(module, Part::projector).matrix("fc1", in, out, true);
  if (depth <= 1) return module;
  Module hidden = layers("hidden_layers.{layer}", "matrices", all_layers(Quantity(depth - 1)));
  hidden.tensors.clear();
  Tower(hidden, Part::projector).matrix("", out, out, true);
  for (TensorSpec& spec : hidden.tensors) spec.name = spec.name.substr(1);  // of no name of its own
  module.children.push_back(std::move(hidden));
  return module;
}

void add_eye(ConfigReader& vision, ModuleTree& tree) {
  const Quantity hidden = vision.size("hidden_size", 1024), patch = vision.size("patch_size", 16);
  const Quantity side("image_size / patch_size", vision.size("image_size", 384).value() / patch.value());
  const auto wide =
      static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * vision.real("mlp_ratio", 4, 0, 1024));
  const bool bias = vision.flag("attention_bias", true), normed = vision.flag("use_qk_norm", false);
  Module tower{"model.vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.patch_embedding.weight", {hidden, vision.size("num_channels", 3), patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden})
      .tensor("embeddings.position_embedding.weight", {side * side, hidden})
      .norm("post_layernorm", hidden, true);
  Module blocks =
      layers("encoder.layers.{layer}", "blocks", all_layers(read_layers(vision, "num_hidden_layers", 24)));
  Tower block(blocks, Part::vision);
  for (const char* matrix : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"})
    block.matrix(matrix, hidden, hidden, bias);
  if (normed) block.norm("self_attn.q_norm", hidden, true).norm("self_attn.k_norm", hidden, true);
  block.matrix("self_attn.projection_layer", hidden, hidden, true)
      .norm("layer_norm1", hidden, true)
      .norm("layer_norm2", hidden, true)
      .matrix("mlp.fc1", hidden, {"hidden_size × mlp_ratio", wide}, true)
      .matrix("mlp.fc2", {"hidden_size × mlp_ratio", wide}, hidden, true);
  tower.children.push_back(std::move(blocks));
  add_tower(tree, std::move(tower));
  add_tower(tree, aligner("model.aligner", hidden, vision.size("projection_dim", 2048),
                          vision.size("depth", 2).value()));
}

}  // namespace

void add_janus(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config"), drawn(document, tree, "vq_config");
  if (!vision || !drawn) return;
  add_eye(*vision, tree);
  VqGan gan{{"model.vqmodel", "down", "up", "block", {"block_1", "attn_1", "block_2"}},
            drawn->size("base_channels", 128),
            drawn->size("latent_channels", 256),
            drawn->size("in_channels", 3),
            drawn->size("out_channels", 3),
            drawn->size("embed_dim", 8),
            drawn->size("num_embeddings", 16384),
            {1, 1, 2, 2, 4},
            drawn->size("num_res_blocks", 2).value(),
            drawn->flag("double_latent", false)};
  if (const auto given = drawn->numbers("channel_multiplier")) gan.multipliers = *given;
  drawn->require(!gan.multipliers.empty() && gan.multipliers.size() <= 64 && gan.blocks <= 64,
                 "more levels than an image has");
  add_tower(tree, vq_gan(gan));
  const Quantity width = drawn->size("projection_dim", 2048);
  add_bare(tree, "model.generation_embeddings.weight", {gan.words, gan.embedding});
  add_tower(tree, aligner("model.generation_aligner", gan.embedding, width,
                          drawn->size("num_hidden_layers", 2).value()));
  Module head{"model.generation_head", "head that draws", {}, {}, {}};
  Tower(head, Part::projector)
      .matrix("proj_out", drawn->size("image_token_embed_dim", 2048), width, true)
      .matrix("vision_head", width, gan.words, true);
  add_tower(tree, std::move(head));
}

}  // namespace assay::families
