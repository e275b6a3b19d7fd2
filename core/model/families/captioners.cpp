// Models that see and write by a decoder of their own: BLIP, whose BERT attends to what it sees, and answers questions with a
// second one; GIT, whose BERT reads what a CLIP saw as if it were words. Encoders are told as towers; what a decoder sees of one
// caches nothing that grows. Source: transformers 5.24 (GIT: 5.23).
#include "core/model/families/all_encoders.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_decoders.h"
#include "core/model/families/encoder_kin.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/image_encoders.h"
#include "core/model/families/image_parts.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

EncoderKin blip_kin() {
  EncoderKin kin{.types = 0};
  kin.sizes = {
      .vocabulary = 30524, .hidden = 768, .intermediate = 3072, .layers = 12, .heads = 8, .tied = true};
  return kin;
}

// A BERT that sees.
Module blip_layer(ConfigReader& text, const Decoder& d, const EncoderKin& kin, const std::string& prefix) {
  HeadAttention sees = kin.attend;
  sees.hidden = d.hidden, sees.heads = sees.kv_heads = d.heads, sees.head_dim = d.head_dim;
  sees.path = "crossattention";
  Module across = attention(sees), layer = encoder_layer(d, kin, prefix);
  widen_keys(across, d, text.size("encoder_hidden_size", 768));
  add_norm(layer, "crossattention.output.LayerNorm", d.hidden, Role::post_attention_norm, true);
  layer.children.push_back(std::move(across));
  return layer;
}

Module blip_images(ConfigReader& vision) {
  const Quantity hidden = vision.size("hidden_size", 768), patch = vision.size("patch_size", 16);
  const Quantity image = vision.size("image_size", 384);
  const Quantity side("image_size / patch_size", image.value() / patch.value());
  Module tower{"vision_model", "vision tower (BLIP)", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.class_embedding", {1, 1, hidden})
      .tensor("embeddings.position_embedding", {1, side * side + Quantity(1), hidden})
      .tensor("embeddings.patch_embedding.weight", {hidden, 3, patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden})
      .norm("post_layernorm", hidden, true);
  EncoderBlock block{hidden, vision.size("intermediate_size", 3072)};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  block.qkv = "self_attn.qkv", block.o = "self_attn.projection";
  tower.children = {encoder_blocks("encoder.layers.{layer}", read_layers(vision, "num_hidden_layers", 12),
                                   block, Part::vision)};
  return tower;
}

void describe_blip(ConfigReader& config, ModuleTree& tree) {
  const EncoderKin kin = blip_kin();
  const Decoder d = read_encoder(config, tree, kin);
  if (config.config().architecture() == "BlipForQuestionAnswering") {  // reads the question
    add_encoder_tables(config, tree, d, kin, "text_encoder.");
    tree.modules.push_back(blip_layer(config, d, kin, "text_encoder."));
  }
  const std::string prefix = "text_decoder.bert.", head = "text_decoder.cls.predictions.";
  add_encoder_tables(config, tree, d, kin, prefix);
  tree.modules.push_back(blip_layer(config, d, kin, prefix));
  EncoderHeads heads;
  heads.guessing = {head + "transform.dense", head + "transform.LayerNorm", head + "decoder", head + "bias"};
  add_encoder_head(config, tree, EncoderUse::guessing, heads,
                   {.prefix = prefix,
                    .table = prefix + "embeddings.word_embeddings.weight",
                    .vocabulary = d.vocabulary,
                    .hidden = d.hidden,
                    .table_width = d.hidden,
                    .tied = d.tied});
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  config.require(vision->size("patch_size", 16).value() <= vision->size("image_size", 384).value(),
                 "patch_size exceeds image_size");
  add_tower(tree, blip_images(*vision));
}

// What GIT sees: a CLIP, a matrix with a norm, and where several pictures follow each other a vector for each.
void add_git_images(ConfigReader& config, ModuleTree& tree, const Decoder& d, const std::string& prefix) {
  TowerConfig vision(config, tree, "vision_config");
  config.require(static_cast<bool>(vision), "vision_config is missing");
  add_tower(tree, clip_tower(*vision, prefix + "image_encoder.vision_model", {.patch = 16}));
  Module projector{"", "projector", {}, {}, {}};
  Tower into(projector, Part::projector);
  const Quantity seen = vision->size("hidden_size", 768);
  into.matrix(prefix + "visual_projection.visual_projection.0", seen, d.hidden, true)
      .norm(prefix + "visual_projection.visual_projection.1", d.hidden, true);
  const std::uint64_t pictures = config.optional_number("num_image_with_embedding").value_or(0);
  config.require(pictures <= 10'000, "num_image_with_embedding is no number of pictures");
  for (std::uint64_t i = 0; i < pictures; ++i)
    into.tensor(prefix + "img_temporal_embedding." + std::to_string(i), {1, 1, seen});
  add_tower(tree, std::move(projector));
}

void describe_git(ConfigReader& config, ModuleTree& tree) {
  const bool alone = config.config().architecture() == "GitModel";
  const std::string prefix = alone ? "" : "git.";
  EncoderKin kin{.positions = 1024, .types = 0};
  kin.sizes = {.vocabulary = 30522, .hidden = 768, .intermediate = 3072, .layers = 6, .heads = 12};
  const Decoder d = read_encoder(config, tree, kin);
  add_encoder_tables(config, tree, d, kin, prefix);
  tree.modules.push_back(encoder_layer(d, kin, prefix));
  HeadAttention attend = d.attention();
  tree.attention.push_back(geometry(attend, all_layers(d.layers)));
  add_git_images(config, tree, d, prefix);
  if (alone)
    tree.aliases = {{"", "git."}};
  else
    tree.modules.push_back(output_head("output", d.vocabulary, d.hidden, d.tied,
                                       prefix + "embeddings.word_embeddings.weight", true));
}

constexpr std::string_view kGitArchitectures[] = {"GitModel", "GitForCausalLM"}, kGitTypes[] = {"git"};
constexpr std::string_view kBlipArchitectures[] = {"BlipForConditionalGeneration",
                                                   "BlipForQuestionAnswering"},
                           kBlipTypes[] = {"blip"};

}  // namespace

const Family kBlip = {"blip", "BLIP", kBlipArchitectures, kBlipTypes, {}, describe_blip};
const Family kGit = {"git", "GIT", kGitArchitectures, kGitTypes, {}, describe_git};

}  // namespace assay::families
