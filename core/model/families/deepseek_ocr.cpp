// DeepSeek's models that see, as their own code names them: DeepSeek-VL2 behind SigLIP, DeepSeek-OCR (and Baidu's
// Unlimited-OCR) behind SAM and CLIP, DeepSeek-OCR-2 behind SAM and a small Qwen2 that reads patches in an order of its own.
#include "core/model/families/deepseek_ocr.h"

#include "core/model/families/all_2026.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/timm_towers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Into the text's width: one matrix, or matrices over downsample_ratio × downsample_ratio patches joined.
void add_mlp_projector(ConfigReader& document, ModuleTree& tree, const std::string& path,
                       std::uint64_t input_default) {
  TowerConfig config(document, tree, "projector_config");
  Module projector{path, "projector", {}, {}, {}};
  Tower into(projector, Part::projector);
  if (!config) {  // transformers' configs leave it out
    into.matrix("layers", input_default, text_width(tree), true);
    add_tower(tree, std::move(projector));
    return;
  }
  const Quantity in = config->size("input_dim", input_default), out = config->size("n_embed", 2048);
  const std::string type = config->text("projector_type", "downsample_mlp_gelu");
  if (type == "linear") {
    into.matrix("layers", in, out, true);
  } else {
    config->require(type == "downsample_mlp_gelu", "projector_type is none of downsample_mlp_gelu, linear");
    const Quantity side = config->size("downsample_ratio", 2);
    const Quantity between = out * config->size("mlp_ratio", 1);
    const std::uint64_t depth = config->size("depth", 2).value();
    config->require(depth >= 2 && depth <= 64, "depth of the projector is not within 2 and 64");
    into.matrix("layers.0", side * side * in, between, true);
    for (std::uint64_t i = 1; i + 1 < depth; ++i)
      into.matrix("layers." + std::to_string(2 * i), between, between, true);
    into.matrix("layers." + std::to_string(2 * (depth - 1)), between, out, true);
  }
  add_tower(tree, std::move(projector));
}

void add_separators(ModuleTree& tree, const std::string& before) {
  add_bare(tree, before + "image_newline", {text_width(tree)});
  add_bare(tree, before + "view_seperator", {text_width(tree)});  // as it is spelt
}

// An object within vision_config.width, or one of transformers' beside it ("sam_config").
std::optional<ModelConfig> part_of(const ModelConfig& vision, std::string_view own, std::string_view other) {
  if (const auto widths = vision.section("width")) {
    if (auto part = widths->section(own)) return part;
  }
  return vision.section(other);
}

// CLIP's blocks under other names, and their width. What CLIP made of pixels the model leaves aside, for it is given what SAM made of them.
Quantity add_deep_clip(const ModelConfig& vision, ModuleTree& tree, bool keeps_patches) {
  const auto part = part_of(vision, "clip-l-14-224", "encoder_config");
  const ModelConfig& keys = part ? *part : vision;
  ConfigReader clip(keys, "vision_config");
  const Quantity hidden = part ? clip.size("width|hidden_size", 1024) : Quantity("hidden_size", 1024);
  const Quantity patch = part ? clip.size("patch_size", 14) : Quantity("patch_size", 14);
  const Quantity image = part ? clip.size("image_size", 224) : Quantity("image_size", 224);
  const Quantity depth = part ? read_layers(clip, "layers|num_hidden_layers", 24) : Quantity("layers", 24);
  const Quantity wide = part ? clip.size("intermediate_size", Quantity(4) * hidden) : Quantity(4) * hidden;
  const Quantity side("image_size / patch_size", image.value() / patch.value());
  Module tower{"model.vision_model", "vision tower (CLIP)", {}, {}, {}};
  Tower start(tower, Part::vision);
  start.tensor("embeddings.class_embedding", {hidden})
      .tensor("embeddings.position_embedding.weight", {side * side + Quantity(1), hidden})
      .norm("pre_layrnorm", hidden, true);
  const std::string patches = "embeddings.patch_embedding.weight";
  if (keeps_patches)
    start.tensor(patches, {hidden, 3, patch, patch});
  else
    add_buffer(tower, patches, {hidden.value(), 3, patch.value(), patch.value()});
  EncoderBlock block{hidden, wide};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2", block.qkv = "self_attn.qkv_proj";
  tower.children = {encoder_blocks("transformer.layers.{layer}", depth, block, Part::vision)};
  add_tower(tree, std::move(tower));
  return hidden;
}

// SAM's encoder and the convolutions behind it, which halve its grid twice. Returns the width of its output.
Quantity add_deep_sam(const ModelConfig& vision, ModuleTree& tree, std::uint64_t last_default) {
  const auto part = part_of(vision, "sam_vit_b", "sam_config");
  const ModelConfig none = vision.document_only();
  ConfigReader sam(part ? *part : none, "vision_config");
  std::vector<std::uint64_t> down = {512, last_default};
  // Its own code takes no size of the last convolution from "width": DeepSeek-OCR-2's says 1024 and means 896.
  const bool own_code = vision.section("width").has_value();
  if (part && !own_code) down = sam.numbers("downsample_channels").value_or(down);
  sam.require(down.size() == 2 && down[0] > 0 && down[1] > 0, "downsample_channels are not two");
  Module tower = part ? deep_sam_tower(sam, "model.sam_model") : Module{};
  sam.require(part.has_value(), "vision_config tells nothing of SAM (sam_vit_b, sam_config)");
  const Quantity channels = sam.size("output_channels", 256);
  Tower(tower, Part::vision)
      .tensor("net_2.weight", {down[0], channels, 3, 3})
      .tensor("net_3.weight", {down[1], down[0], 3, 3});
  add_tower(tree, std::move(tower));
  return down[1];
}

void add_ocr(ConfigReader& document, ModuleTree& tree, bool keeps_patches) {
  const auto vision = document.config().section("vision_config");
  document.require(vision.has_value(), "vision_config is missing");
  const Quantity seen = add_deep_sam(*vision, tree, 1024);
  const Quantity both = seen + add_deep_clip(*vision, tree, keeps_patches);
  add_mlp_projector(document, tree, "model.projector", both.value());
  add_separators(tree, "model.");
}

// A Qwen2 without a table of tokens: queries behind patches, 144 of a view and 256 of the whole image.
void add_reading_order(const ModelConfig& vision, ModuleTree& tree, const Quantity& hidden) {
  const auto part = vision.section("encoder_config");
  const ModelConfig none = vision.document_only();
  ConfigReader config(part ? *part : none, "vision_config");
  const auto told = [&](std::string_view key, std::uint64_t published) {
    return part ? config.size(key, published) : Quantity(std::string(key), published);
  };
  const Quantity heads = told("num_attention_heads", 14), kv_heads = told("num_key_value_heads", 2);
  const Quantity wide = told("intermediate_size", 4864);
  const Quantity dim = config.quotient(hidden, heads, "hidden_size / num_attention_heads");
  const Quantity depth = part ? read_layers(config, "num_hidden_layers", 24) : Quantity("layers", 24);
  Module tower{"model.qwen2_model", "vision tower (Qwen2)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("query_768.weight", {144, hidden})
      .tensor("query_1024.weight", {256, hidden})
      .norm("model.model.norm", hidden, false);
  Module blocks = layers("model.model.layers.{layer}", "blocks", all_layers(depth));
  Tower(blocks, Part::vision)
      .norm("input_layernorm", hidden, false)
      .norm("post_attention_layernorm", hidden, false)
      .matrix("self_attn.q_proj", hidden, heads * dim, true)
      .matrix("self_attn.k_proj", hidden, kv_heads * dim, true)
      .matrix("self_attn.v_proj", hidden, kv_heads * dim, true)
      .matrix("self_attn.o_proj", heads * dim, hidden, false)
      .matrix("mlp.gate_proj", hidden, wide, false)
      .matrix("mlp.up_proj", hidden, wide, false)
      .matrix("mlp.down_proj", wide, hidden, false);
  tower.children = {std::move(blocks)};
  add_tower(tree, std::move(tower));
}

}  // namespace

void add_deepseek_vl2(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  vision->require(vision->text("model_name", "siglip_so400m_patch14_384").find("siglip") != std::string::npos,
                  "model_name is no SigLIP");
  const Quantity width = vision->size("width", 1152), patch = vision->size("patch_size", 14);
  const Quantity wide("width × mlp_ratio",
                      static_cast<std::uint64_t>(static_cast<double>(width.value()) *
                                                 vision->real("mlp_ratio", 3.7362, 1e-3, 1024)));
  const Quantity side("image_size / patch_size", vision->size("image_size", 384).value() / patch.value());
  add_tower(tree, timm_vit({.width = width,
                            .depth = read_layers(*vision, "layers", 27),
                            .wide = wide,
                            .patch = patch,
                            .places = side * side,
                            .pooled = true},
                           "vision"));
  add_mlp_projector(document, tree, "projector", 1152);
  add_separators(tree, "");
}

void add_deepseek_ocr(ConfigReader& document, ModuleTree& tree) {
  add_ocr(document, tree, true);
}
void add_unlimited_ocr(ConfigReader& document, ModuleTree& tree) {
  add_ocr(document, tree, false);
}

void add_deepseek_ocr2(ConfigReader& document, ModuleTree& tree) {
  const auto vision = document.config().section("vision_config");
  document.require(vision.has_value(), "vision_config is missing");
  const Quantity hidden = add_deep_sam(*vision, tree, 896);
  add_reading_order(*vision, tree, hidden);
  add_mlp_projector(document, tree, "model.projector", hidden.value());
  add_bare(tree, "model.view_seperator", {text_width(tree)});
}

namespace {

// The text of both as transformers has it: the first DeepSeek's.
void describe_ocr_text(ConfigReader& config, ModuleTree& tree) {
  const bool unlimited = config.config().model_type() == "unlimited_ocr_text";
  LlamaKin kin;
  kin.sizes =
      unlimited ? DecoderDefaults{.vocabulary = 129280,
                                  .hidden = 1280,
                                  .intermediate = 6848,
                                  .layers = 12,
                                  .heads = 10,
                                  .kv_heads = 10}
                : DecoderDefaults{
                      .vocabulary = 102400, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32};
  kin.mlp_bias_keys = "mlp_bias";
  ExpertKin experts{.count_keys = "n_routed_experts",
                    .count = 64,
                    .active_keys = "num_experts_per_tok",
                    .active = 6,
                    .width_keys = "moe_intermediate_size",
                    .width = unlimited ? 896U : 1407U,
                    .shared_keys = "n_shared_experts",
                    .shared = 2,
                    .dense_first_keys = "first_k_dense_replace",
                    .dense_first = unlimited ? 1U : 0U};
  experts.names.shared_bias = config.flag("mlp_bias", false);
  kin.experts = experts;
  describe_kin(config, tree, kin);
}

constexpr std::string_view kOcrTextTypes[] = {"unlimited_ocr_text", "deepseek_ocr2_text"};

}  // namespace

const Family kOcrText = {
    "ocr_text", "DeepSeekMoE within readers of documents", {}, kOcrTextTypes, {}, describe_ocr_text, nullptr};

}  // namespace assay::families
