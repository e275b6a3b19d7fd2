// Models that see and write by a decoder of their own: BLIP, whose BERT attends to what it sees, and answers questions with a
// second one; TrOCR, which reads lines of text with BART's decoder, Donut, which reads pages with mBART's, and captioners with
// GPT-2; GIT, whose BERT reads what a CLIP saw as if it were words. Encoders are told as towers; what a decoder sees of one
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

// Keys and values of what another model has made, whose width is `seen`.
void widen_keys(Module& across, const Decoder& d, const Quantity& seen) {
  for (TensorSpec& spec : across.tensors) {
    if (spec.bias || (spec.role != Role::k && spec.role != Role::v)) continue;
    spec.shape[1] = seen.value(), spec.elements = seen * d.hidden;
  }
}

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

// The encoder's modules as towers below "encoder"; gives its width.
Quantity add_page_encoder(ConfigReader& config, ModuleTree& tree) {
  TowerConfig encoder(config, tree, "encoder");
  config.require(static_cast<bool>(encoder), "encoder is missing");
  const std::string kind = encoder->text("model_type", "");
  ModuleTree alone;
  if (kind == "vit")
    describe_vit(*encoder, alone);
  else if (kind == "deit")
    describe_deit(*encoder, alone);
  else if (kind == "donut-swin")
    add_swin(*encoder, alone, "", SwinKind::donut);
  else
    config.fail(
        "encoder.model_type is neither vit, deit nor donut-swin: of readers of images only those with such "
        "an encoder are described");
  for (Module& module : alone.modules) {
    module.path = module.path.empty() ? "encoder" : "encoder." + module.path;
    add_tower(tree, std::move(module));
  }
  return {"encoder.hidden_size", alone.hidden_size};
}

// What is seen is as wide as a decoder that does not say otherwise, or is made so.
void add_seen_matrix(ModuleTree& tree, const Quantity& seen, const Quantity& hidden) {
  if (seen.value() == hidden.value()) return;
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector).matrix("enc_to_dec_proj", seen, hidden, true);
  add_tower(tree, std::move(projector));
}

// TrOCR's decoder, and that of mBART, which Donut writes by: BART's with other keys, tables and norms.
struct PageDecoder {
  bool mbart = false;
  std::uint64_t places() const { return mbart ? 1024 : 512; }
  std::string head() const { return mbart ? "decoder.lm_head" : "decoder.output_projection"; }
};

Decoder read_page_decoder(ConfigReader& text, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = text.size("vocab_size", 50265), d.hidden = text.size("d_model|hidden_size", 1024);
  d.intermediate = text.size("decoder_ffn_dim", 4096), d.layers = read_layers(text, "decoder_layers", 12);
  d.heads = d.kv_heads = text.size("decoder_attention_heads", 16);
  d.head_dim = text.quotient(d.hidden, d.heads, "d_model / decoder_attention_heads");
  d.tied = text.tied_embeddings(true);
  note_sizes(tree, d);
  return d;
}

// A BART's decoder over what an encoder of images saw.
void describe_bart_reader(ConfigReader& config, ModuleTree& tree, ConfigReader& text, const PageDecoder& of) {
  const Decoder d = read_page_decoder(text, tree);
  const std::string path = "decoder.model.decoder";
  Module tables{path, "places", {}, {}, {}};
  const Quantity places = text.size("max_position_embeddings", of.places());
  if (of.mbart || text.flag("use_learned_position_embeddings", true))
    tables.tensors.push_back(parameter("embed_positions.weight", {places + Quantity(2), d.hidden},
                                       Role::position_embedding, Part::embedding));
  if (of.mbart || text.flag("layernorm_embedding", true))
    add_norm(tables, "layernorm_embedding", d.hidden, Role::embedding_norm, true);
  Module layer = bart_layers(d, path, "layers", true);
  const Quantity seen = add_page_encoder(config, tree);
  const auto width = of.mbart ? std::nullopt : text.optional_size("cross_attention_hidden_size");
  if (width) widen_keys(layer.children[1], d, *width);
  tree.modules = {embedding(path + ".embed_tokens", d.vocabulary, d.hidden), std::move(tables),
                  std::move(layer)};
  if (of.mbart) tree.modules.push_back(norm(path + ".layer_norm", d.hidden, Role::final_norm, true));
  tree.modules.push_back(
      output_head(of.head(), d.vocabulary, d.hidden, d.tied, path + ".embed_tokens.weight"));
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  if (!width) add_seen_matrix(tree, seen, d.hidden);
}

// GPT-2 with a second attention in each layer.
void describe_gpt2_reader(ConfigReader& config, ModuleTree& tree, ConfigReader& text) {
  Decoder d;
  d.vocabulary = text.size("vocab_size", 50257), d.hidden = text.size("n_embd|hidden_size", 768);
  d.layers = read_layers(text, "n_layer|num_hidden_layers", 12);
  d.intermediate = text.size("n_inner", Quantity(4) * d.hidden);
  d.heads = d.kv_heads = text.size("n_head|num_attention_heads", 12);
  d.head_dim = text.quotient(d.hidden, d.heads, "n_embd / n_head");
  d.tied = text.tied_embeddings(true);
  note_sizes(tree, d);
  const std::string path = "decoder.transformer.";
  HeadAttention own = d.attention();
  own.path = "attn", own.fused = "c_attn", own.o = "c_proj";
  own.qkv_bias = own.output_bias = own.input_major = true;
  Module layer = layers(path + "h.{layer}", "layers", all_layers(d.layers));
  for (const char* name : {"ln_1", "ln_cross_attn", "ln_2"})
    add_norm(layer, name, d.hidden, Role::input_norm, true);
  Module across{"crossattention", "attention to what is seen", {}, {}, {}};
  const auto add = [&](const char* name, const Quantity& out, Role role) {
    add_linear(across, {.name = name,
                        .in = d.hidden,
                        .out = out,
                        .role = role,
                        .part = Part::attention,
                        .bias = true,
                        .input_major = true});
  };
  add("c_attn", Quantity(2) * d.hidden, Role::kv_a);
  add("q_attn", d.hidden, Role::q);
  add("c_proj", d.hidden, Role::attention_output);
  layer.children = {attention(own), std::move(across),
                    plain_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .input_major = true})};
  const Quantity context = text.size("n_positions|n_ctx", 1024);
  for (std::size_t i = 0; i < 2; ++i) {  // causal masks, which releases hold
    add_buffer(layer.children[i], "bias", {1, 1, context.value(), context.value()});
    add_buffer(layer.children[i], "masked_bias", {});
  }
  Module places{"decoder.transformer", "places", {}, {}, {}};
  places.tensors.push_back(
      parameter("wpe.weight", {context, d.hidden}, Role::position_embedding, Part::embedding));
  const Quantity seen = add_page_encoder(config, tree);
  tree.modules = {embedding(path + "wte", d.vocabulary, d.hidden), std::move(places), std::move(layer),
                  norm(path + "ln_f", d.hidden, Role::final_norm, true),
                  output_head("decoder.lm_head", d.vocabulary, d.hidden, d.tied, path + "wte.weight")};
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  add_seen_matrix(tree, seen, d.hidden);
}

void describe_page_reader(ConfigReader& config, ModuleTree& tree) {
  TowerConfig decoder(config, tree, "decoder");
  const std::string kind = decoder ? decoder->text("model_type", "") : "";
  if (kind == "gpt2") return describe_gpt2_reader(config, tree, *decoder);
  config.require(
      kind == "trocr" || kind == "mbart",
      "decoder.model_type is neither trocr, mbart nor gpt2: of models of an encoder of images and any "
      "decoder only those are described");
  describe_bart_reader(config, tree, *decoder, {kind == "mbart"});
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
                           kBlipTypes[] = {"blip"}, kTrocrArchitectures[] = {"VisionEncoderDecoderModel"},
                           kTrocrTypes[] = {"vision-encoder-decoder"};

}  // namespace

const Family kBlip = {"blip", "BLIP", kBlipArchitectures, kBlipTypes, {}, describe_blip};
const Family kGit = {"git", "GIT", kGitArchitectures, kGitTypes, {}, describe_git};
const Family kTrocr = {"trocr", "TrOCR, Donut", kTrocrArchitectures, kTrocrTypes, {}, describe_page_reader};

}  // namespace assay::families
