#include "core/model/families/encoder_towers.h"

#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// A side in pixels: one number, or two that are equal.
Quantity side_of(ConfigReader& vision, const std::string& key, std::uint64_t class_default) {
  if (!vision.is_list(key)) return vision.size(key, class_default);
  const auto sides = vision.numbers(key);
  vision.require(sides && sides->size() == 2 && (*sides)[0] == (*sides)[1] && (*sides)[0] > 0,
                 key + " is not the side of a square");
  return {key, (*sides)[0]};
}

// Patches of a square image.
Quantity patches_of(ConfigReader& vision, std::uint64_t image_default, std::uint64_t patch_default) {
  const Quantity image = side_of(vision, "image_size", image_default);
  const Quantity patch = side_of(vision, "patch_size", patch_default);
  const Quantity side("image_size / patch_size", image.value() / patch.value());
  return side * side;
}

// What CLIP, SigLIP and Idefics3 call the parts of a block.
EncoderBlock siglip_block(const Quantity& hidden, const Quantity& intermediate) {
  EncoderBlock block{hidden, intermediate};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  return block;
}

Module last_norm(const std::string& name, const Quantity& hidden) {
  Module rest{"", "last norm", {}, {}, {}};
  Tower(rest, Part::vision).norm(name, hidden, true);
  return rest;
}

}  // namespace

Module clip_tower(ConfigReader& vision, std::string path, const ClipClass& defaults) {
  const Quantity hidden = vision.size("hidden_size|embed_dim", defaults.hidden),
                 patch = side_of(vision, "patch_size", defaults.patch);
  Module tower{std::move(path), "vision tower (CLIP)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.class_embedding", {hidden})
      .tensor("embeddings.patch_embedding.weight", {hidden, vision.size("num_channels", 3), patch, patch})
      .tensor("embeddings.position_embedding.weight",
              {patches_of(vision, defaults.image, defaults.patch) + Quantity(1), hidden})
      .norm("pre_layrnorm", hidden, true);  // as CLIP spells it
  tower.children = {
      encoder_blocks("encoder.layers.{layer}", read_layers(vision, "num_hidden_layers", defaults.layers),
                     siglip_block(hidden, vision.size("intermediate_size", defaults.intermediate)),
                     Part::vision),
      last_norm("post_layernorm", hidden)};
  return tower;
}

Module siglip_tower(ConfigReader& vision, std::string path, const SiglipClass& defaults) {
  const Quantity hidden = vision.size("hidden_size", defaults.hidden);
  const Quantity patch = side_of(vision, "patch_size", defaults.patch),
                 channels = vision.size("num_channels", 3);
  const bool flat = defaults.patches == SiglipPatches::flat;
  Module tower{std::move(path), "vision tower (SigLIP)", {}, {}, {}};
  Tower start(tower, Part::vision);
  if (flat)
    start.tensor("embeddings.patch_embedding.weight", {hidden, channels * patch * patch});
  else
    start.tensor("embeddings.patch_embedding.weight", {hidden, channels, patch, patch});
  start.tensor("embeddings.patch_embedding.bias", {hidden})
      .tensor("embeddings.position_embedding.weight",
              {flat ? vision.size("num_patches", 256) : patches_of(vision, defaults.image, defaults.patch),
               hidden});
  tower.children = {
      encoder_blocks("encoder.layers.{layer}", read_layers(vision, "num_hidden_layers", defaults.layers),
                     siglip_block(hidden, vision.size("intermediate_size", defaults.intermediate)),
                     Part::vision),
      last_norm("post_layernorm", hidden)};
  return tower;
}

Module siglip_head(ConfigReader& vision, const SiglipClass& defaults) {
  const Quantity hidden = vision.size("hidden_size", defaults.hidden);
  const Quantity width = vision.size("intermediate_size", defaults.intermediate);
  Module head{"head", "pooling head", {}, {}, {}};
  Tower(head, Part::vision)
      .tensor("probe", {1, 1, hidden})
      .tensor("attention.in_proj_weight", {Quantity(3) * hidden, hidden})
      .tensor("attention.in_proj_bias", {Quantity(3) * hidden})
      .matrix("attention.out_proj", hidden, hidden, true)
      .norm("layernorm", hidden, true)
      .matrix("mlp.fc1", hidden, width, true)
      .matrix("mlp.fc2", width, hidden, true);
  return head;
}

Module pixtral_tower(ConfigReader& vision, std::string path, PixtralNames names) {
  const Quantity hidden = vision.size("hidden_size", 1024), patch = side_of(vision, "patch_size", 16);
  Module tower{std::move(path), "vision tower (Pixtral)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_conv.weight", {hidden, vision.size("num_channels", 3), patch, patch})
      .norm("ln_pre", hidden, false);
  EncoderBlock block{hidden, vision.size("intermediate_size", 4096)};
  block.norm1 = "attention_norm", block.norm2 = "ffn_norm";
  block.q = "attention.q_proj", block.k = "attention.k_proj", block.v = "attention.v_proj";
  block.o = "attention.o_proj";
  block.gate = "feed_forward.gate_proj", block.up = "feed_forward.up_proj";
  block.down = "feed_forward.down_proj";
  if (names == PixtralNames::mistrals) {
    block.q = "attention.wq", block.k = "attention.wk", block.v = "attention.wv", block.o = "attention.wo";
    block.gate = "feed_forward.w1", block.up = "feed_forward.w3", block.down = "feed_forward.w2";
  }
  block.norm_bias = block.attention_bias = block.mlp_bias = false;
  tower.children = {encoder_blocks("transformer.layers.{layer}", read_layers(vision, "num_hidden_layers", 24),
                                   block, Part::vision)};
  return tower;
}

// A block: x + λ₁ attention(norm(x)), x + λ₂ mlp(norm(x)); q and k of some sizes are normed over all heads.
Module internvl_tower(ConfigReader& vision, std::string path) {
  const Quantity hidden = vision.size("hidden_size", 1024), width = vision.size("intermediate_size", 4096);
  const Quantity patch = side_of(vision, "patch_size", 14);
  const bool bias = vision.flag("attention_bias", false), normed = vision.flag("use_qk_norm", false);
  const bool rms = vision.text("norm_type", "layer_norm") == "rms_norm";
  Module tower{std::move(path), "vision tower (InternViT)", {}, {}, {}};
  Tower start(tower, Part::vision);
  start.tensor("embeddings.cls_token", {1, 1, hidden});
  if (vision.flag("use_mask_token", false)) start.tensor("embeddings.mask_token", {1, 1, hidden});
  start
      .tensor("embeddings.patch_embeddings.projection.weight",
              {hidden, vision.size("num_channels", 3), patch, patch})
      .tensor("embeddings.patch_embeddings.projection.bias", {hidden});
  if (vision.flag("use_absolute_position_embeddings", true))
    start.tensor("embeddings.position_embeddings", {1, patches_of(vision, 448, 14) + Quantity(1), hidden});
  Module blocks =
      layers("encoder.layer.{layer}", "blocks", all_layers(read_layers(vision, "num_hidden_layers", 24)));
  Tower block(blocks, Part::vision);
  for (const char* matrix : {"attention.q_proj", "attention.k_proj", "attention.v_proj"})
    block.matrix(matrix, hidden, hidden, bias);
  if (normed) block.norm("attention.q_norm", hidden, false).norm("attention.k_norm", hidden, false);
  block.matrix("attention.projection_layer", hidden, hidden, true)
      .norm("layernorm_before", hidden, !rms)
      .norm("layernorm_after", hidden, !rms)
      .tensor("lambda_1", {hidden})
      .tensor("lambda_2", {hidden})
      .matrix("mlp.fc1", hidden, width, true)
      .matrix("mlp.fc2", width, hidden, true);
  tower.children.push_back(std::move(blocks));
  if (!vision.flag("use_mean_pooling", true)) tower.children.push_back(last_norm("layernorm", hidden));
  return tower;
}

Module intern_vit(ConfigReader& vision, std::string path, std::uint64_t added_heads) {
  const Quantity hidden = vision.size("hidden_size", 1024), width = vision.size("intermediate_size", 4096);
  Quantity attended = hidden;
  if (added_heads > 0) {
    const Quantity heads = vision.size("num_attention_heads", 16);
    attended =
        (heads + Quantity(added_heads)) * vision.quotient(hidden, heads, "hidden_size / num_attention_heads");
  }
  const Quantity patch = side_of(vision, "patch_size", 14);
  const bool bias = vision.flag("qkv_bias|attention_bias", true);
  const bool normed = vision.flag("qk_normalization|use_qk_norm", false);
  const bool rms = vision.text("norm_type", "layer_norm") == "rms_norm";
  Module tower{std::move(path), "vision tower (InternViT)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.class_embedding", {1, 1, hidden})
      .tensor("embeddings.patch_embedding.weight", {hidden, vision.size("num_channels", 3), patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden})
      .tensor("embeddings.position_embedding", {1, patches_of(vision, 448, 14) + Quantity(1), hidden});
  Module blocks =
      layers("encoder.layers.{layer}", "blocks", all_layers(read_layers(vision, "num_hidden_layers", 24)));
  Tower block(blocks, Part::vision);
  block.matrix("attn.qkv", hidden, Quantity(3) * attended, bias).matrix("attn.proj", attended, hidden, true);
  if (normed) block.norm("attn.q_norm", attended, false).norm("attn.k_norm", attended, false);
  block.norm("norm1", hidden, !rms)
      .norm("norm2", hidden, !rms)
      .tensor("ls1", {hidden})
      .tensor("ls2", {hidden})
      .matrix("mlp.fc1", hidden, width, true)
      .matrix("mlp.fc2", width, hidden, true);
  tower.children.push_back(std::move(blocks));
  return tower;
}

namespace {

// Patches that a convolution joins, and a gated MLP of them.
Module glm_merger(const Quantity& hidden, const Quantity& merge, const Quantity& out,
                  const Quantity& context) {
  Module merger{"", "patch merger", {}, {}, {}};
  Tower(merger, Part::projector)
      .tensor("downsample.weight", {out, hidden, merge, merge})
      .tensor("downsample.bias", {out})
      .matrix("merger.proj", out, out, false)
      .norm("merger.post_projection_norm", out, true)
      .matrix("merger.gate_proj", out, context, false)
      .matrix("merger.up_proj", out, context, false)
      .matrix("merger.down_proj", context, out, false);
  return merger;
}

}  // namespace

Module glm4v_tower(ConfigReader& vision, std::string path, std::uint64_t out_default) {
  const Quantity hidden = vision.size("hidden_size", 1536), patch = side_of(vision, "patch_size", 14);
  const Quantity out = vision.size("out_hidden_size", out_default);
  const Quantity context = vision.size("intermediate_size", 13696),
                 merge = vision.size("spatial_merge_size", 2);
  const bool bias = vision.flag("attention_bias", false);
  Module tower{std::move(path), "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.position_embedding.weight", {patches_of(vision, 336, 14), hidden})
      .tensor("patch_embed.proj.weight",
              {hidden, vision.size("in_channels", 3), vision.size("temporal_patch_size", 2), patch, patch})
      .tensor("patch_embed.proj.bias", {hidden})
      .norm("post_conv_layernorm", hidden, false)
      .norm("post_layernorm", hidden, false);
  // The blocks' MLP is as wide as the output.
  Module blocks = layers("blocks.{layer}", "blocks", all_layers(read_layers(vision, "depth", 24)));
  Tower(blocks, Part::vision)
      .norm("norm1", hidden, false)
      .norm("norm2", hidden, false)
      .matrix("attn.qkv", hidden, Quantity(3) * hidden, bias)
      .matrix("attn.proj", hidden, hidden, false)
      .matrix("mlp.gate_proj", hidden, out, false)
      .matrix("mlp.up_proj", hidden, out, false)
      .matrix("mlp.down_proj", out, hidden, false);
  tower.children = {std::move(blocks), glm_merger(hidden, merge, out, context)};
  return tower;
}

Module glm_ocr_tower(ConfigReader& vision, std::string path, const Quantity& context) {
  const Quantity hidden = vision.size("hidden_size", 1024), patch = side_of(vision, "patch_size", 14);
  const Quantity out = vision.size("out_hidden_size", 1536), merge = vision.size("spatial_merge_size", 2);
  const Quantity heads = vision.size("num_heads|num_attention_heads", 16);
  Module tower{std::move(path), "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("patch_embed.proj.weight",
              {hidden, vision.size("in_channels", 3), vision.size("temporal_patch_size", 2), patch, patch})
      .tensor("patch_embed.proj.bias", {hidden})
      .norm("post_layernorm", hidden, false);
  EncoderBlock block{hidden, vision.size("intermediate_size", 4096)};
  block.qkv = "attn.qkv", block.o = "attn.proj";
  block.gate = "mlp.gate_proj", block.up = "mlp.up_proj", block.down = "mlp.down_proj";
  block.norm_bias = false, block.attention_bias = block.mlp_bias = vision.flag("attention_bias", true);
  Module blocks = encoder_blocks("blocks.{layer}", read_layers(vision, "depth|num_hidden_layers", 24), block,
                                 Part::vision);
  const Quantity head = vision.quotient(hidden, heads, "hidden_size / num_heads");
  Tower(blocks, Part::vision).norm("attn.q_norm", head, false).norm("attn.k_norm", head, false);
  tower.children = {std::move(blocks), glm_merger(hidden, merge, out, context)};
  return tower;
}

}  // namespace assay::families
