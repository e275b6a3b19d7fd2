// Encoders of images by themselves, as models that classify, embed or are built upon: ViT, DeiT, DINOv2 with and without registers,
// DINOv3; and the Audio Spectrogram Transformer, a DeiT of pictures of sound. Source: transformers 5.24.
#include "core/model/families/image_encoders.h"

#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"

namespace assay::families {
using namespace blocks;

Sides pixel_sides(ConfigReader& config, const std::string& key, std::uint64_t class_default) {
  if (!config.is_list(key)) {
    const Quantity side = config.size(key, class_default);
    return {side, side};
  }
  const auto sides = config.numbers(key);
  config.require(sides && sides->size() == 2 && (*sides)[0] > 0 && (*sides)[1] > 0,
                 key + " is neither a side nor two");
  return {{key, (*sides)[0]}, {key, (*sides)[1]}};
}

Quantity seen_patches(ConfigReader& config, std::uint64_t patch_default, std::uint64_t image_default) {
  const Sides image = pixel_sides(config, "image_size", image_default),
              patch = pixel_sides(config, "patch_size", patch_default);
  config.require(patch.height.value() <= image.height.value() && patch.width.value() <= image.width.value(),
                 "patch_size exceeds image_size");
  return Quantity("image_size / patch_size", image.height.value() / patch.height.value()) *
         Quantity("image_size / patch_size", image.width.value() / patch.width.value());
}

bool is_alone(const ConfigReader& config, const ImageKin& kin) {
  return !config.config().architecture().starts_with(std::string(kin.stem) + "For");
}

Module& add_image_module(ModuleTree& tree, std::string path, std::string title) {
  tree.modules.push_back({std::move(path), std::move(title), {}, {}, {}});
  return tree.modules.back();
}

std::string trimmed(const std::string& prefix) {
  return prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1);
}

Quantity read_image_width(ConfigReader& config, ModuleTree& tree, std::uint64_t class_default) {
  Quantity hidden = config.size("hidden_size", class_default);
  config.require_divides(config.size("num_attention_heads", class_default == 384 ? 6 : 12), hidden);
  tree.hidden_size = hidden.value();
  return hidden;
}

EncoderBlock vit_block(const Quantity& hidden, const Quantity& wide) {
  EncoderBlock block{hidden, wide};
  block.norm1 = "layernorm_before", block.norm2 = "layernorm_after";
  block.up = "intermediate.dense", block.down = "output.dense";
  return block;
}

std::vector<Quantity> stage_sizes(ConfigReader& config, const std::string& key,
                                  const std::vector<std::uint64_t>& class_default) {
  constexpr std::size_t kMostStages = 32;
  const std::vector<std::uint64_t> said = config.numbers(key).value_or(class_default);
  config.require(!said.empty() && said.size() <= kMostStages, key + " has no stage, or too many");
  std::vector<Quantity> sizes;
  for (const std::uint64_t size : said) {
    config.require(size > 0 && size <= std::uint64_t{1} << 32, key + " holds what is no size");
    sizes.emplace_back(key, size);
  }
  return sizes;
}

void leave_out_qkv_biases(Module& blocks) {
  std::erase_if(blocks.tensors, [](const TensorSpec& spec) {
    return spec.bias && spec.name.find("attention.attention.") != std::string::npos;
  });
}

Module vit_layers(ConfigReader& config, const std::string& path, const Quantity& depth, EncoderBlock block,
                  Part part) {
  block.q = "attention.attention.query", block.k = "attention.attention.key";
  block.v = "attention.attention.value", block.o = "attention.output.dense";
  Module blocks = encoder_blocks(path, depth, block, part);
  if (!config.flag("qkv_bias", true)) leave_out_qkv_biases(blocks);
  return blocks;
}

Module vit_blocks(ConfigReader& config, ModuleTree& tree, const std::string& path, EncoderBlock block,
                  Part part) {
  const Quantity depth = read_layers(config, "num_hidden_layers", 12);
  tree.layers = depth.value();
  return vit_layers(config, path, depth, std::move(block), part);
}

void add_image_classifier(ConfigReader& config, ModuleTree& tree, const std::vector<std::string>& names,
                          const Quantity& width) {
  Module head = head_module("classifier");
  for (const std::string& name : names) add_linear(head, head_matrix(name, width, label_count(config)));
  tree.modules.push_back(std::move(head));
}

void add_seen(ModuleTree& tree, const std::string& prefix, const Enters& of, Part part) {
  Tower enters(add_image_module(tree, prefix + "embeddings", "what enters"), part);
  for (const std::string& token : of.tokens) enters.tensor(token, {1, 1, of.hidden});
  enters.tensor("position_embeddings", {1, of.places + Quantity(of.tokens.size()), of.hidden})
      .tensor("patch_embeddings.projection.weight", {of.hidden, of.channels, of.patch.height, of.patch.width})
      .tensor("patch_embeddings.projection.bias", {of.hidden});
}

void add_vit_layers(ConfigReader& config, ModuleTree& tree, const std::string& prefix, const Quantity& hidden,
                    Part part) {
  tree.modules.push_back(vit_blocks(config, tree, prefix + "encoder.layer.{layer}",
                                    vit_block(hidden, config.size("intermediate_size", 3072)), part));
  Tower(add_image_module(tree, trimmed(prefix), "last norm"), part).norm("layernorm", hidden, true);
}

Quantity add_plain_vit(ConfigReader& config, ModuleTree& tree, const std::string& prefix,
                       std::vector<std::string> tokens, std::uint64_t image_default) {
  Quantity hidden = read_image_width(config, tree, 768);
  add_seen(tree, prefix,
           {hidden, seen_patches(config, 16, image_default), config.size("num_channels", 3),
            pixel_sides(config, "patch_size", 16), std::move(tokens)},
           Part::vision);
  add_vit_layers(config, tree, prefix, hidden, Part::vision);
  return hidden;
}

std::string add_prefix(ConfigReader& config, ModuleTree& tree, const ImageKin& kin) {
  if (!is_alone(config, kin)) return kin.prefix;
  tree.aliases = {{"", kin.prefix}};
  return "";
}

void add_vit_pooler(ConfigReader& config, ModuleTree& tree, const Quantity& hidden) {
  Module pooler = head_module("pooler");
  add_linear(pooler, head_matrix("pooler.dense", hidden, config.size("pooler_output_size", hidden)));
  tree.modules.push_back(std::move(pooler));
}

void describe_vit(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"vit.", "ViT"};
  const Quantity hidden = add_plain_vit(config, tree, add_prefix(config, tree, kin), {"cls_token"});
  if (is_alone(config, kin))
    add_vit_pooler(config, tree, hidden);
  else
    add_image_classifier(config, tree, {"classifier"}, hidden);
}

void describe_deit(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"deit.", "DeiT"};
  const Quantity hidden =
      add_plain_vit(config, tree, add_prefix(config, tree, kin), {"cls_token", "distillation_token"});
  if (is_alone(config, kin))
    add_vit_pooler(config, tree, hidden);
  else if (config.config().architecture().ends_with("WithTeacher"))
    add_image_classifier(config, tree, {"cls_classifier", "distillation_classifier"}, hidden);
  else
    add_image_classifier(config, tree, {"classifier"}, hidden);
}

namespace {

// How often a patch fits, with strides that let patches overlap.
Quantity steps(ConfigReader& config, const char* length, std::uint64_t default_length, const char* stride,
               const Quantity& patch) {
  const Quantity whole = config.size(length, default_length), step = config.size(stride, 10);
  config.require(patch.value() <= whole.value(), std::string("patch_size exceeds ") + length);
  return Quantity(std::string(length) + " in steps", (whole.value() - patch.value()) / step.value() + 1);
}

void describe_spectrogram(ConfigReader& config, ModuleTree& tree) {
  const ImageKin kin{"audio_spectrogram_transformer.", "AST", 16, Part::audio};
  const Quantity hidden = read_image_width(config, tree, 768);
  const Sides patch = pixel_sides(config, "patch_size", 16);
  const Quantity places = steps(config, "num_mel_bins", 128, "frequency_stride", patch.height) *
                          steps(config, "max_length", 1024, "time_stride", patch.width);
  const std::string prefix = add_prefix(config, tree, kin);
  add_seen(tree, prefix, {hidden, places, 1, patch, {"cls_token", "distillation_token"}}, kin.part);
  add_vit_layers(config, tree, prefix, hidden, kin.part);
  if (is_alone(config, kin)) return;
  Module head = head_module("classifier");
  add_norm(head, "classifier.layernorm", hidden, Role::final_norm, true);
  add_linear(head, head_matrix("classifier.dense", hidden, label_count(config)));
  tree.modules.push_back(std::move(head));
}

// DINOv2: its gated MLP is two thirds as wide, in steps of 8, and one matrix makes both of its halves.
Quantity dino_width(ConfigReader& config, const Quantity& hidden, bool gated) {
  const double ratio = config.real("mlp_ratio", 4, 0.001, 1000);
  auto wide = static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * ratio);
  if (gated) wide = (static_cast<std::uint64_t>(static_cast<double>(wide) * 2 / 3) + 7) / 8 * 8;
  config.require(wide > 0, "mlp_ratio leaves the MLP without a width");
  return {"hidden_size × mlp_ratio", wide};
}

void add_dino_scales(Module& blocks, const Quantity& hidden) {
  Tower(blocks, Part::vision)
      .tensor("layer_scale1.lambda1", {hidden})
      .tensor("layer_scale2.lambda1", {hidden});
}

void describe_dino2_of(ConfigReader& config, ModuleTree& tree, const ImageKin& kin, bool registers) {
  const Quantity hidden = read_image_width(config, tree, 768);
  const bool gated = config.flag("use_swiglu_ffn", false);
  const Quantity wide = dino_width(config, hidden, gated);
  const bool alone = is_alone(config, kin);
  const std::string prefix = alone ? "" : kin.prefix;
  add_seen(tree, prefix,
           {hidden,
            seen_patches(config, kin.patch),
            config.size("num_channels", 3),
            pixel_sides(config, "patch_size", kin.patch),
            {"cls_token"}},
           Part::vision);
  Tower tokens(tree.modules.back(), Part::vision);
  if (registers || config.flag("use_mask_token", true)) tokens.tensor("mask_token", {1, hidden});
  if (registers) {
    const std::uint64_t count = config.number("num_register_tokens", 4);
    if (count > 0) tokens.tensor("register_tokens", {1, {"num_register_tokens", count}, hidden});
  }
  EncoderBlock block{hidden, wide};
  Module blocks = vit_blocks(config, tree, prefix + "encoder.layer.{layer}", block, Part::vision);
  if (gated) {
    std::erase_if(blocks.tensors, [](const TensorSpec& spec) { return spec.name.starts_with("mlp."); });
    Tower(blocks, Part::vision)
        .matrix("mlp.weights_in", hidden, Quantity(2) * wide, true)
        .matrix("mlp.weights_out", wide, hidden, true);
  }
  add_dino_scales(blocks, hidden);
  tree.modules.push_back(std::move(blocks));
  Tower(add_image_module(tree, trimmed(prefix), "last norm"), Part::vision).norm("layernorm", hidden, true);
  if (alone)
    tree.aliases = {{"", kin.prefix}};
  else  // of the class token and the mean of patches
    add_image_classifier(config, tree, {"classifier"}, Quantity(2) * hidden);
}
}  // namespace

void describe_dino2(ConfigReader& config, ModuleTree& tree) {
  describe_dino2_of(config, tree, {"dinov2.", "Dinov2", 14}, false);
}

namespace {

void describe_dino2_registers(ConfigReader& config, ModuleTree& tree) {
  describe_dino2_of(config, tree, {"dinov2_with_registers.", "Dinov2WithRegisters", 16}, true);
}

// DINOv3: places are angles.
void describe_dino3(ConfigReader& config, ModuleTree& tree) {
  const Quantity hidden = read_image_width(config, tree, 384);
  const Quantity wide = config.size("intermediate_size", 1536),
                 depth = read_layers(config, "num_hidden_layers", 12);
  const Sides patch = pixel_sides(config, "patch_size", 16);
  tree.layers = depth.value();
  Tower enters(add_image_module(tree, "embeddings", "what enters"), Part::vision);
  enters.tensor("cls_token", {1, 1, hidden}).tensor("mask_token", {1, 1, hidden});
  if (const std::uint64_t count = config.number("num_register_tokens", 0); count > 0)
    enters.tensor("register_tokens", {1, {"num_register_tokens", count}, hidden});
  enters
      .tensor("patch_embeddings.weight", {hidden, config.size("num_channels", 3), patch.height, patch.width})
      .tensor("patch_embeddings.bias", {hidden});
  const bool bias = config.flag("mlp_bias", true);
  Module layer = layers("layer.{layer}", "blocks", all_layers(depth));
  Tower block(layer, Part::vision);
  block.norm("norm1", hidden, true)
      .matrix("attention.q_proj", hidden, hidden, config.flag("query_bias", true))
      .matrix("attention.k_proj", hidden, hidden, config.flag("key_bias", false))
      .matrix("attention.v_proj", hidden, hidden, config.flag("value_bias", true))
      .matrix("attention.o_proj", hidden, hidden, config.flag("proj_bias", true))
      .norm("norm2", hidden, true);
  if (config.flag("use_gated_mlp", false)) block.matrix("mlp.gate_proj", hidden, wide, bias);
  block.matrix("mlp.up_proj", hidden, wide, bias).matrix("mlp.down_proj", wide, hidden, bias);
  add_dino_scales(layer, hidden);
  tree.modules.push_back(std::move(layer));
  Tower(add_image_module(tree, "", "last norm"), Part::vision).norm("norm", hidden, true);
}

constexpr std::string_view kVitArchitectures[] = {"ViTModel", "ViTForImageClassification"},
                           kVitTypes[] = {"vit"},
                           kDeitArchitectures[] = {"DeiTModel", "DeiTForImageClassification",
                                                   "DeiTForImageClassificationWithTeacher"},
                           kDeitTypes[] = {"deit"},
                           kDino2Architectures[] = {"Dinov2Model", "Dinov2Backbone",
                                                    "Dinov2ForImageClassification"},
                           kDino2Types[] = {"dinov2"},
                           kDino2RegistersArchitectures[] = {"Dinov2WithRegistersModel",
                                                             "Dinov2WithRegistersBackbone",
                                                             "Dinov2WithRegistersForImageClassification"},
                           kDino2RegistersTypes[] = {"dinov2_with_registers"},
                           kDino3Architectures[] = {"DINOv3ViTModel", "DINOv3ViTBackbone"},
                           kDino3Types[] = {"dinov3_vit"},
                           kSpectrogramArchitectures[] = {"ASTModel", "ASTForAudioClassification"},
                           kSpectrogramTypes[] = {"audio-spectrogram-transformer"};

}  // namespace

const Family kVit = {"vit", "ViT", kVitArchitectures, kVitTypes, {}, describe_vit};
const Family kDeit = {"deit", "DeiT", kDeitArchitectures, kDeitTypes, {}, describe_deit};
const Family kDino2 = {"dinov2", "DINOv2", kDino2Architectures, kDino2Types, {}, describe_dino2};
const Family kDino2Registers = {
    "dinov2_with_registers", "DINOv2 (registers)", kDino2RegistersArchitectures, kDino2RegistersTypes, {},
    describe_dino2_registers};
const Family kDino3 = {"dinov3_vit", "DINOv3", kDino3Architectures, kDino3Types, {}, describe_dino3};
const Family kSpectrogram = {"ast",
                             "Audio Spectrogram Transformer",
                             kSpectrogramArchitectures,
                             kSpectrogramTypes,
                             {},
                             describe_spectrogram};

}  // namespace assay::families
