// What compares images with words: CLIP, SigLIP and SigLIP 2, two encoders that end in one space; and each half by itself (CLIP's
// encoder of words stands in front of models that draw). The encoder of words is told as the model, that of images as a tower.
// Source: transformers 5.24; halves are named as their releases have them, below text_model and vision_model.
#include "core/model/families/all_encoders.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/encoder_kin.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct WordsClass {
  std::uint64_t vocabulary, hidden, wide, heads, places;
};
constexpr WordsClass kClipWords = {49408, 512, 2048, 8, 77}, kSiglipWords = {32000, 768, 3072, 12, 64},
                     kOwlWords = {49408, 512, 2048, 8, 16};

Decoder add_words_side(ConfigReader& text, ModuleTree& tree, const WordsClass& of) {
  Decoder d;
  d.vocabulary = text.size("vocab_size", of.vocabulary);
  d.hidden = text.size("hidden_size", of.hidden);
  d.intermediate = text.size("intermediate_size", of.wide);
  d.layers = read_layers(text, "num_hidden_layers", 12);
  d.heads = d.kv_heads = text.size("num_attention_heads", of.heads);
  d.head_dim = text.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads");
  d.tied = false;
  note_sizes(tree, d);
  const Quantity places = text.size("max_position_embeddings", of.places);
  Module tables{"text_model.embeddings", "places", {}, {}, {}};
  tables.tensors.push_back(
      parameter("position_embedding.weight", {places, d.hidden}, Role::position_embedding, Part::embedding));
  add_buffer(tables, "position_ids", {1, places.value()});
  HeadAttention a = d.attention();
  a.o = "out_proj", a.qkv_bias = a.output_bias = true;
  Module layer = layers("text_model.encoder.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "layer_norm1", d.hidden, Role::input_norm, true);
  add_norm(layer, "layer_norm2", d.hidden, Role::pre_feedforward_norm, true);
  layer.children = {
      attention(a),
      plain_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .up = "fc1", .down = "fc2"})};
  tree.modules = {embedding("text_model.embeddings.token_embedding", d.vocabulary, d.hidden),
                  std::move(tables), std::move(layer),
                  norm("text_model.final_layer_norm", d.hidden, Role::final_norm, true)};
  return d;
}

void add_words_matrix(ModuleTree& tree, std::string name, const Quantity& in, const Quantity& out,
                      bool bias) {
  Module head = head_module("into the common space");
  Linear matrix = head_matrix(std::move(name), in, out);
  matrix.bias = bias;
  add_linear(head, matrix);
  tree.modules.push_back(std::move(head));
}

Module siglip_images(ConfigReader& vision, const SiglipClass& of) {
  Module tower = siglip_tower(vision, "vision_model", of);
  if (vision.flag("vision_use_head", true)) tower.children.push_back(siglip_head(vision, of));
  return tower;
}

// What scales and shifts how alike two are.
void add_scales(ModuleTree& tree, const std::vector<Quantity>& shape, bool shifted) {
  Module scales{"", "scale of likeness", {}, {}, {}};
  Tower tensors(scales, Part::projector);
  tensors.tensor("logit_scale", shape);
  if (shifted) tensors.tensor("logit_bias", shape);
  add_tower(tree, std::move(scales));
}

void describe_clip(ConfigReader& config, ModuleTree& tree) {
  const ModelConfig own = config.config().document_only();
  ConfigReader document(own, "clip");
  const Quantity common = document.size("projection_dim", 512);
  const Decoder d = add_words_side(config, tree, kClipWords);
  add_words_matrix(tree, "text_projection", d.hidden, common, false);
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  add_tower(tree, clip_tower(*vision, "vision_model"));
  Module projection{"", "into the common space", {}, {}, {}};
  Tower(projection, Part::projector)
      .matrix("visual_projection", vision->size("hidden_size", 768), common, false);
  add_tower(tree, std::move(projection));
  add_scales(tree, {}, false);
}

void describe_siglip_of(ConfigReader& config, ModuleTree& tree, const SiglipClass& images) {
  const Decoder d = add_words_side(config, tree, kSiglipWords);
  add_words_matrix(tree, "text_model.head", d.hidden, config.size("projection_size", d.hidden), true);
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  add_tower(tree, siglip_images(*vision, images));
  add_scales(tree, {1}, true);
}
void describe_siglip(ConfigReader& config, ModuleTree& tree) {
  describe_siglip_of(config, tree, {});
}
void describe_siglip2(ConfigReader& config, ModuleTree& tree) {
  describe_siglip_of(config, tree, kSiglip2);
}

// OWL-ViT: a CLIP whose patches are told words, and boxes of their own.
struct OwlKin {
  std::string prefix;
  std::uint64_t patch;
  bool tells_things;  // the second version: whether there is anything at all
};

Module owl_heads(const Quantity& words, const Quantity& seen, const OwlKin& kin) {
  Module heads{"", "what tells classes and boxes", {}, {}, {}};
  Tower into(heads, Part::projector);
  into.norm("layer_norm", seen, true)
      .matrix("class_head.dense0", seen, words, true)
      .matrix("class_head.logit_shift", seen, 1, true)
      .matrix("class_head.logit_scale", seen, 1, true);
  const auto add = [&](const std::string& head, std::uint64_t out) {
    into.matrix(head + ".dense0", seen, seen, true)
        .matrix(head + ".dense1", seen, seen, true)
        .matrix(head + ".dense2", seen, out, true);
  };
  add("box_head", 4);
  if (kin.tells_things) add("objectness_head", 1);
  return heads;
}

void describe_owl_of(ConfigReader& config, ModuleTree& tree, const OwlKin& kin) {
  const bool alone = config.config().architecture().ends_with("Model");
  const std::string prefix = alone ? "" : kin.prefix;
  const ModelConfig own = config.config().document_only();
  ConfigReader document(own, "owl");
  const Quantity common = document.size("projection_dim", 512);
  const Decoder d = add_words_side(config, tree, kOwlWords);
  for (Module& module : tree.modules) module.path = prefix + module.path;
  add_words_matrix(tree, prefix + "text_projection", d.hidden, common, false);
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  Module images = clip_tower(*vision, prefix + "vision_model", {.patch = kin.patch, .image = 768});
  for (TensorSpec& spec : images.tensors)  // spelled as words are
    if (spec.name.starts_with("pre_layrnorm")) spec.name.replace(0, 12, "pre_layernorm");
  add_tower(tree, std::move(images));
  const Quantity seen = vision->size("hidden_size", 768);
  Module projection{"", "into the common space", {}, {}, {}};
  Tower(projection, Part::projector)
      .matrix(prefix + "visual_projection", seen, common, false)
      .tensor(prefix + "logit_scale", {});
  add_tower(tree, std::move(projection));
  if (alone)
    tree.aliases = {{"", kin.prefix}};
  else
    add_tower(tree, owl_heads(d.hidden, seen, kin));
}
void describe_owl(ConfigReader& config, ModuleTree& tree) {
  describe_owl_of(config, tree, {"owlvit.", 32, false});
}
void describe_owl2(ConfigReader& config, ModuleTree& tree) {
  describe_owl_of(config, tree, {"owlv2.", 16, true});
}

// CLIPSeg: a CLIP, and a narrow decoder over several layers of its images that cuts out what words name.
Module clipseg_decoder(ConfigReader& document, ConfigReader& vision, const Quantity& common) {
  const Quantity hidden = document.size("reduce_dim", 64), seen = vision.size("hidden_size", 768),
                 patch = vision.size("patch_size", 32);
  const auto taken = document.numbers("extract_layers").value_or(std::vector<std::uint64_t>{3, 6, 9});
  document.require(!taken.empty() && taken.size() <= 1000, "extract_layers names no layers, or too many");
  Module decoder{"decoder", "what cuts out", {}, {}, {}};
  Tower into(decoder, Part::projector);
  into.matrix("film_mul", common, hidden, true).matrix("film_add", common, hidden, true);
  const auto convolve = [&](const char* name, const std::vector<Quantity>& shape, const Quantity& out) {
    into.tensor(std::string("transposed_convolution") + name + ".weight", shape)
        .tensor(std::string("transposed_convolution") + name + ".bias", {out});
  };
  if (document.flag("use_complex_transposed_convolution", false)) {
    document.require(hidden.value() > 1 && patch.value() > 3, "reduce_dim or patch_size cannot be divided");
    const Quantity half("reduce_dim / 2", hidden.value() / 2), quarter("patch_size / 4", patch.value() / 4);
    convolve(".0", {hidden, hidden, 3, 3}, hidden);
    convolve(".2", {hidden, half, quarter, quarter}, half);
    convolve(".4", {half, 1, quarter, quarter}, 1);
  } else {
    convolve("", {hidden, 1, patch, patch}, 1);
  }
  for (std::size_t i = 0; i < taken.size(); ++i)
    into.matrix("reduces." + std::to_string(i), seen, hidden, true);
  EncoderBlock block{hidden, document.size("decoder_intermediate_size", 2048)};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  decoder.children = {
      encoder_blocks("layers.{layer}", Quantity("extract_layers", taken.size()), block, Part::projector)};
  return decoder;
}

// A pair below `prefix`: words, images, the common space.
struct Pair {
  std::string prefix;
  Quantity common;
};
void add_pair_rest(ModuleTree& tree, ConfigReader& vision, const Pair& of) {
  add_tower(tree, clip_tower(vision, of.prefix + "vision_model"));
  Module projection{"", "into the common space", {}, {}, {}};
  Tower(projection, Part::projector)
      .matrix(of.prefix + "visual_projection", vision.size("hidden_size", 768), of.common, false)
      .tensor(of.prefix + "logit_scale", {});
  add_tower(tree, std::move(projection));
}

void describe_clipseg(ConfigReader& config, ModuleTree& tree) {
  const bool alone = config.config().architecture().ends_with("Model");
  const ModelConfig own = config.config().document_only();
  ConfigReader document(own, "clipseg");
  const Pair pair{alone ? "" : "clip.", document.size("projection_dim", 512)};
  const Decoder d = add_words_side(config, tree, kClipWords);
  for (Module& module : tree.modules) module.path = pair.prefix + module.path;
  add_words_matrix(tree, pair.prefix + "text_projection", d.hidden, pair.common, false);
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  add_pair_rest(tree, *vision, pair);
  if (alone)
    tree.aliases = {{"", "clip."}};
  else
    add_tower(tree, clipseg_decoder(document, *vision, pair.common));
}

// Chinese-CLIP: words are read by a BERT.
void describe_chinese_clip(ConfigReader& config, ModuleTree& tree) {
  const ModelConfig own = config.config().document_only();
  ConfigReader document(own, "chinese_clip");
  const Pair pair{"", document.size("projection_dim", 512)};
  const EncoderKin bert;
  const Decoder d = read_encoder(config, tree, bert);
  add_encoder_tables(config, tree, d, bert, "text_model.");
  tree.modules.push_back(encoder_layer(d, bert, "text_model."));
  add_words_matrix(tree, "text_projection", d.hidden, pair.common, false);
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  add_pair_rest(tree, *vision, pair);
}

// AltCLIP: words of many languages are read by an XLM-RoBERTa, and brought to the width that a CLIP's words had.
void describe_altclip(ConfigReader& config, ModuleTree& tree) {
  const ModelConfig own = config.config().document_only();
  ConfigReader document(own, "altclip");
  const Pair pair{"", document.size("projection_dim", 768)};
  EncoderKin kin{.positions = 514, .types = 1};
  kin.sizes.vocabulary = 250002, kin.sizes.hidden = 1024, kin.sizes.intermediate = 4096;
  kin.sizes.layers = 24, kin.sizes.heads = 16;
  const Decoder d = read_encoder(config, tree, kin);
  add_encoder_tables(config, tree, d, kin, "text_model.roberta.");
  tree.modules.push_back(encoder_layer(d, kin, "text_model.roberta."));
  const Quantity brought = config.size("project_dim", 768);
  Module leads{"text_model", "to the width of words", {}, {}, {}};
  add_norm(leads, "pre_LN", d.hidden, Role::final_norm, true);
  tree.modules.push_back(std::move(leads));
  add_words_matrix(tree, "text_model.transformation", d.hidden, brought, true);
  add_words_matrix(tree, "text_projection", brought, pair.common, false);
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  add_pair_rest(tree, *vision, pair);
}

// Halves.
void describe_clip_words(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = add_words_side(config, tree, kClipWords);
  if (config.config().architecture().ends_with("WithProjection"))
    add_words_matrix(tree, "text_projection", d.hidden, config.size("projection_dim", 512), false);
  tree.aliases = {{"text_model.", ""}};
}

// An encoder of images alone is no tower beside a model: it is the model.
void tell_as_model(ModuleTree& tree, ConfigReader& config, Module images) {
  tree.hidden_size = config.size("hidden_size", 768).value();
  tree.layers = read_layers(config, "num_hidden_layers", 12).value();
  tree.modules.push_back(std::move(images));
}

void add_image_classes(ConfigReader& config, ModuleTree& tree, const Quantity& width) {
  Module head = head_module("classifier");
  add_linear(head, head_matrix("classifier", width, label_count(config)));
  tree.modules.push_back(std::move(head));
}

void describe_clip_images(ConfigReader& config, ModuleTree& tree) {
  tell_as_model(tree, config, clip_tower(config, "vision_model"));
  if (config.config().architecture().ends_with("WithProjection"))
    add_words_matrix(tree, "visual_projection", config.size("hidden_size", 768),
                     config.size("projection_dim", 512), false);
  tree.aliases = {{"vision_model.", ""}};
}

void describe_siglip_images(ConfigReader& config, ModuleTree& tree) {
  const bool flat = config.config().architecture().starts_with("Siglip2") ||
                    config.config().model_type() == "siglip2_vision_model";
  tell_as_model(tree, config, siglip_images(config, flat ? kSiglip2 : SiglipClass{}));
  tree.aliases = {{"vision_model.", ""}};
}

// The whole model's config, and half of the model with a head.
void describe_image_classes(ConfigReader& config, ModuleTree& tree) {
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  const std::string& architecture = config.config().architecture();
  const ModelConfig own = config.config().document_only();
  ConfigReader document(own, "classifier of images");
  tell_as_model(tree, *vision,
                architecture.starts_with("CLIP") || architecture.starts_with("MetaClip2")
                    ? clip_tower(*vision, "vision_model")
                    : siglip_images(*vision, architecture.starts_with("Siglip2") ? kSiglip2 : SiglipClass{}));
  add_image_classes(document, tree, vision->size("hidden_size", 768));
}

constexpr std::string_view kClipArchitectures[] = {"CLIPModel", "MetaClip2Model"},
                           kClipTypes[] = {"clip", "metaclip_2"}, kSiglipArchitectures[] = {"SiglipModel"},
                           kSiglipTypes[] = {"siglip"}, kSiglip2Architectures[] = {"Siglip2Model"},
                           kSiglip2Types[] = {"siglip2"},
                           kOwlArchitectures[] = {"OwlViTModel", "OwlViTForObjectDetection"},
                           kOwlTypes[] = {"owlvit"},
                           kOwl2Architectures[] = {"Owlv2Model", "Owlv2ForObjectDetection"},
                           kOwl2Types[] = {"owlv2"},
                           kClipSegArchitectures[] = {"CLIPSegModel", "CLIPSegForImageSegmentation"},
                           kClipSegTypes[] = {"clipseg"}, kChineseClipArchitectures[] = {"ChineseCLIPModel"},
                           kChineseClipTypes[] = {"chinese_clip"}, kAltClipArchitectures[] = {"AltCLIPModel"},
                           kAltClipTypes[] = {"altclip"},
                           kClipWordsArchitectures[] = {"CLIPTextModel", "CLIPTextModelWithProjection"},
                           kClipWordsTypes[] = {"clip_text_model"},
                           kClipImagesArchitectures[] = {"CLIPVisionModel", "CLIPVisionModelWithProjection"},
                           kClipImagesTypes[] = {"clip_vision_model"},
                           kSiglipImagesArchitectures[] = {"SiglipVisionModel", "Siglip2VisionModel"},
                           kSiglipImagesTypes[] = {"siglip_vision_model", "siglip2_vision_model"},
                           kImageClassesArchitectures[] = {
                               "CLIPForImageClassification", "SiglipForImageClassification",
                               "Siglip2ForImageClassification", "MetaClip2ForImageClassification"};

}  // namespace

const Family kClip = {"clip", "CLIP", kClipArchitectures, kClipTypes, {}, describe_clip};
const Family kSiglip = {"siglip", "SigLIP", kSiglipArchitectures, kSiglipTypes, {}, describe_siglip};
const Family kSiglip2Pair = {"siglip2",     "SigLIP 2", kSiglip2Architectures,
                             kSiglip2Types, {},         describe_siglip2};
const Family kOwl = {"owlvit", "OWL-ViT", kOwlArchitectures, kOwlTypes, {}, describe_owl};
const Family kOwl2 = {"owlv2", "OWLv2", kOwl2Architectures, kOwl2Types, {}, describe_owl2};
const Family kClipSeg = {"clipseg", "CLIPSeg", kClipSegArchitectures, kClipSegTypes, {}, describe_clipseg};
const Family kChineseClip = {
    "chinese_clip", "Chinese-CLIP", kChineseClipArchitectures, kChineseClipTypes, {}, describe_chinese_clip};
const Family kAltClip = {"altclip", "AltCLIP", kAltClipArchitectures, kAltClipTypes, {}, describe_altclip};
const Family kClipText = {"clip_text", "CLIP (words)",     kClipWordsArchitectures, kClipWordsTypes,
                          {},          describe_clip_words};
const Family kClipVision = {
    "clip_vision", "CLIP (images)", kClipImagesArchitectures, kClipImagesTypes, {}, describe_clip_images};
const Family kSiglipVision = {
    "siglip_vision",       "SigLIP (images)", kSiglipImagesArchitectures, kSiglipImagesTypes, {},
    describe_siglip_images};
const Family kImageClasses = {
    "image_classes",       "CLIP, SigLIP (classifiers of images)", kImageClassesArchitectures, {}, {},
    describe_image_classes};

}  // namespace assay::families
