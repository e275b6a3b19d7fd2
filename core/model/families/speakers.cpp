// Models that write sound as the codes of a codec, frame by frame: a Llama over text and codes, and beside it what guesses the
// codes of one frame (CSM, Moshi), heads for all of them at once (Dia, Higgs Audio 2), or text alone (Kyutai's that hears).
// What guesses within a frame is told as a tower, as the codec is. Source: transformers 5.24.
#include "core/model/families/all_speakers.h"
#include "core/model/families/codec_mimi.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/small_decoders.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

void tell_frames(ModuleTree& tree, const std::string& what) {
  tree.not_counted.push_back({what + ": what it caches within a frame", std::nullopt});
}

// --- CSM -----------------------------------------------------------------------------------------------------------

constexpr std::uint64_t kCsmBooks = 32, kCsmCodes = 2051;

// The table of codes is one for both, unless the config says otherwise.
void add_csm_depth(ConfigReader& config, ModuleTree& tree, const Quantity& all_codes) {
  TowerConfig depth(config, tree, "depth_decoder_config");
  config.require(static_cast<bool>(depth), "depth_decoder_config is missing");
  const Decoder d = read_small_decoder(
      *depth,
      {.vocabulary = 0, .hidden = 1024, .intermediate = 8192, .layers = 4, .heads = 8, .kv_heads = 2});
  const Quantity books = depth->size("num_codebooks", kCsmBooks),
                 codes = depth->size("vocab_size", kCsmCodes);
  const Quantity before = depth->size("backbone_hidden_size", 2048);
  depth->require(books.value() > 1, "num_codebooks is 1: a depth decoder guesses the others");
  const bool tied = config.flag("tie_codebooks_embeddings", true);
  config.require(!tied || (books * codes).value() == all_codes.value(),
                 "the table of codes is tied, and depth_decoder_config has another number of codes");
  Module speaks{"depth_decoder", "depth decoder", {}, {}, {}};
  Tower(speaks, Part::audio)
      .tensor("model.embed_tokens.weight", {books * codes, before})
      .matrix("model.inputs_embeds_projector", before, d.hidden, false)
      .norm("model.norm", d.hidden, false)
      .tensor("codebooks_head.weight", {Quantity("num_codebooks - 1", books.value() - 1), d.hidden, codes});
  if (tied) {
    speaks.tensors.front().storage = Storage::tied;
    speaks.tensors.front().same_as = "backbone_model.embed_tokens.embed_audio_tokens.weight";
  }
  speaks.children = {small_llama(d, "model.layers.{layer}", read_small_layers(*depth))};
  add_tower(tree, std::move(speaks));
}

void describe_csm(ConfigReader& config, ModuleTree& tree) {
  const LlamaKin kin = {.sizes = {.vocabulary = kCsmCodes,
                                  .hidden = 2048,
                                  .intermediate = 8192,
                                  .layers = 16,
                                  .heads = 32,
                                  .kv_heads = 8},
                        .mlp_bias_keys = "mlp_bias",
                        .layer_path = "backbone_model.layers.{layer}",
                        .frame = {.embedding = "embed_text_tokens", .final_norm = "backbone_model.norm"}};
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.tied = tree.tied_embeddings = false;  // tie_word_embeddings is of the codes
  describe_kin(config, tree, kin, d);
  const Quantity words = config.size("text_vocab_size", 128256),
                 codes = config.size("num_codebooks", kCsmBooks) * d.vocabulary;
  tree.modules.front() = embedding("embed_text_tokens", words, d.hidden);
  tree.modules.insert(tree.modules.begin() + 1,
                      embedding("backbone_model.embed_tokens.embed_audio_tokens", codes, d.hidden));
  add_csm_depth(config, tree, codes);
  add_mimi(config, tree, "codec_config", "codec_model");
  tell_frames(tree, "the depth decoder");
}

// --- Kyutai's --------------------------------------------------------------------------------------------------------

// Gate and up are the rows of one matrix, of so many in all.
Quantity half_of_ffn(ConfigReader& config, std::uint64_t class_default) {
  const Quantity both = config.size("ffn_dim", class_default);
  config.require(both.value() % 2 == 0, "ffn_dim is odd");
  return {"ffn_dim / 2", both.value() / 2};
}

struct KyutaiNames {
  std::string layers, table, norm, head;
};
// Moshi's layers of text; the table has rows for other tokens than the head.
Decoder describe_kyutai(ConfigReader& config, ModuleTree& tree, const DecoderDefaults& sizes,
                        std::uint64_t wide, std::uint64_t window, const KyutaiNames& names,
                        const Quantity& further_rows) {
  const std::string ending = ".linear";
  Decoder d = read_decoder(config, tree, sizes);
  d.intermediate = half_of_ffn(config, wide);
  HeadAttention a = d.attention();
  a.q += ending, a.k += ending, a.v += ending, a.o += ending;
  Module layer = layers(names.layers, "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {
      attention(a),
      gated_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .down = "fc2", .fused = "fc1"})};
  tree.modules = {embedding(names.table, d.vocabulary + further_rows, d.hidden), std::move(layer),
                  norm(names.norm, d.hidden, Role::final_norm),
                  output_head(names.head, d.vocabulary, d.hidden, d.tied, names.table + ".weight")};
  const std::uint64_t seen = config.size("sliding_window", window).value();
  tree.attention.push_back(geometry(a, all_layers(d.layers), seen));
  return d;
}

void describe_kyutai_stt(ConfigReader& config, ModuleTree& tree) {
  const Quantity codes = config.size("num_codebooks", 32) * config.size("codebook_vocab_size", 2049);
  describe_kyutai(config, tree,
                  {.vocabulary = 4001, .hidden = 2048, .intermediate = 0, .layers = 48, .heads = 32}, 11264,
                  375, {"model.layers.{layer}", "model.embed_tokens.embed_tokens", "model.norm", "lm_head"},
                  codes + Quantity(1));
  add_mimi(config, tree, "codec_config", "codec_model");
}

// One matrix a codebook in each place: [books, out, in].
Module moshi_depth_layers(const Decoder& d, const Quantity& half, const Quantity& books) {
  const Quantity width = d.heads * d.head_dim, kv_width = d.kv_heads * d.head_dim;
  Module blocks = layers("layers.{layer}", "layers", all_layers(d.layers));
  Tower(blocks, Part::audio)
      .norm("input_layernorm", d.hidden, false)
      .norm("post_attention_layernorm", d.hidden, false)
      .tensor("self_attn.q_proj.linear.weight", {books, width, d.hidden})
      .tensor("self_attn.k_proj.linear.weight", {books, kv_width, d.hidden})
      .tensor("self_attn.v_proj.linear.weight", {books, kv_width, d.hidden})
      .tensor("self_attn.o_proj.linear.weight", {books, d.hidden, width})
      .tensor("mlp.fc1.weight", {books, Quantity(2) * half, d.hidden})
      .tensor("mlp.fc2.weight", {books, d.hidden, half});
  return blocks;
}

// Its vocabularies are those of the whole.
void add_moshi_depth(ConfigReader& config, ModuleTree& tree, const Decoder& whole, const Quantity& books,
                     const Quantity& codes) {
  TowerConfig depth(config, tree, "depth_decoder_config");
  config.require(static_cast<bool>(depth), "depth_decoder_config is missing");
  config.require(books.value() > 1, "num_codebooks is 1: its matrices are not described so");
  const Decoder d = read_small_decoder(
      *depth, {.vocabulary = 0, .hidden = 1024, .intermediate = 0, .layers = 6, .heads = 16});
  Module speaks{"depth_decoder", "depth decoder", {}, {}, {}};
  Tower(speaks, Part::audio)
      .tensor("text_embed_tokens.weight", {whole.vocabulary + Quantity(1), d.hidden})
      .tensor("input_projections.weight", {books, d.hidden, whole.hidden})
      .tensor("lm_heads.weight", {books, codes, d.hidden});
  Module tables = layers("embed_tokens.{layer}", "tables of codes",
                         all_layers(Quantity("num_codebooks - 1", books.value() - 1)));
  Tower(tables, Part::audio).tensor("weight", {codes + Quantity(1), d.hidden});
  speaks.children = {std::move(tables), moshi_depth_layers(d, half_of_ffn(*depth, 5632), books)};
  add_tower(tree, std::move(speaks));
}

void describe_moshi(ConfigReader& config, ModuleTree& tree) {
  const bool writes_alone = config.config().architecture() == "MoshiForCausalLM";  // words, that is
  const std::string at = writes_alone ? "" : "decoder.";
  const Decoder d = describe_kyutai(
      config, tree, {.vocabulary = 32000, .hidden = 4096, .intermediate = 0, .layers = 32, .heads = 32},
      22528, 3000,
      {at + "model.layers.{layer}", at + "model.embed_tokens", at + "model.norm", at + "lm_head"}, 1);
  if (writes_alone) return;
  const Quantity books = read_layers(config, "num_codebooks", 8);
  std::uint64_t of_codec = 2048;
  {
    TowerConfig codec(config, tree, "audio_encoder_config");
    if (codec) of_codec = codec->size("codebook_size", 2048).value();
  }
  const Quantity codes =
      config.optional_size("audio_vocab_size").value_or(Quantity("codebook_size", of_codec));
  Module tables = layers("embed_tokens.{layer}", "tables of codes", all_layers(Quantity(2) * books));
  Tower(tables, Part::audio).tensor("weight", {codes + Quantity(1), d.hidden});
  add_tower(tree, std::move(tables));
  add_moshi_depth(config, tree, d, books, codes);
  add_mimi(config, tree, "audio_encoder_config", "audio_encoder");
  tell_frames(tree, "the depth decoder");
}

// --- Dia -------------------------------------------------------------------------------------------------------------

constexpr std::string_view kDiaAttention = "self_attention";

HeadAttention dia_attention(const Decoder& d, std::string_view path) {
  HeadAttention a = d.attention();
  a.path = path;
  return a;
}

Module dia_encoder(ConfigReader& encoder) {
  const Decoder d = read_small_decoder(encoder, {.vocabulary = 0,
                                                 .hidden = 1024,
                                                 .intermediate = 4096,
                                                 .layers = 12,
                                                 .heads = 16,
                                                 .kv_heads = 16,
                                                 .head_dim = 128});
  Module layer = layers("layers.{layer}", "layers that read", all_layers(d.layers));
  add_norm(layer, "pre_sa_norm", d.hidden, Role::input_norm);
  add_norm(layer, "post_sa_norm", d.hidden, Role::pre_feedforward_norm);
  layer.children = {attention(dia_attention(d, kDiaAttention)),
                    gated_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .fused = "gate_up_proj"})};
  Module reads{"model.encoder", "what reads", {}, {}, {}};
  reads.children = {embedding("embedding", encoder.size("vocab_size", 256), d.hidden), std::move(layer),
                    norm("norm", d.hidden, Role::final_norm)};
  return reads;
}

// What it looks at is as wide as cross_hidden_size says.
Module dia_cross_attention(ConfigReader& decoder, const Decoder& d) {
  const Quantity width = decoder.size("cross_num_attention_heads", 16) * decoder.size("cross_head_dim", 128);
  const Quantity kv_width =
      decoder.size("cross_num_key_value_heads", 16) * decoder.size("cross_head_dim", 128);
  const Quantity seen = decoder.size("cross_hidden_size", 1024);
  Module cross{"cross_attention", "cross attention", {}, {}, {}};
  add_linear(cross,
             {.name = "q_proj", .in = d.hidden, .out = width, .role = Role::q, .part = Part::attention});
  add_linear(cross,
             {.name = "k_proj", .in = seen, .out = kv_width, .role = Role::k, .part = Part::attention});
  add_linear(cross,
             {.name = "v_proj", .in = seen, .out = kv_width, .role = Role::v, .part = Part::attention});
  add_linear(cross, {.name = "o_proj",
                     .in = width,
                     .out = d.hidden,
                     .role = Role::attention_output,
                     .part = Part::attention});
  return cross;
}

void describe_dia(ConfigReader& config, ModuleTree& tree) {
  TowerConfig encoder(config, tree, "encoder_config"), decoder(config, tree, "decoder_config");
  config.require(encoder && decoder, "encoder_config or decoder_config is missing");
  Decoder d = read_small_decoder(*decoder, {.vocabulary = 0,
                                            .hidden = 2048,
                                            .intermediate = 8192,
                                            .layers = 18,
                                            .heads = 16,
                                            .kv_heads = 4,
                                            .head_dim = 128});
  d.vocabulary = decoder->size("num_channels", 9) * decoder->size("vocab_size", 1028);
  d.tied = false;
  note_sizes(tree, d);
  Module layer = layers("model.decoder.layers.{layer}", "layers that write", all_layers(d.layers));
  add_norm(layer, "pre_sa_norm", d.hidden, Role::input_norm);
  add_norm(layer, "pre_ca_norm", d.hidden, Role::post_attention_norm);
  add_norm(layer, "pre_mlp_norm", d.hidden, Role::pre_feedforward_norm);
  const HeadAttention writes = dia_attention(d, kDiaAttention);
  layer.children = {attention(writes), dia_cross_attention(*decoder, d),
                    gated_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .fused = "gate_up_proj"})};
  tree.modules = {dia_encoder(*encoder), embedding("model.decoder.embeddings.embed", d.vocabulary, d.hidden),
                  std::move(layer), norm("model.decoder.norm", d.hidden, Role::final_norm),
                  output_head("logits_dense", d.vocabulary, d.hidden, false, "")};
  tree.attention.push_back(geometry(writes, all_layers(d.layers)));
  tree.not_counted.push_back({"the codec (DAC), in a repository of its own", std::nullopt});
}

// --- Higgs Audio 2 ---------------------------------------------------------------------------------------------------

// A second MLP and second norms in each layer are for tokens of sound: told among the towers.
void describe_higgs(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 128256,
                            .hidden = 3072,
                            .intermediate = 8192,
                            .layers = 28,
                            .heads = 24,
                            .kv_heads = 8,
                            .head_dim = 128},
                  .mlp_bias_keys = "mlp_bias"};
  if (config.is_null("head_dim")) kin.sizes.head_dim.reset();  // hidden / heads
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.tied = tree.tied_embeddings = false;
  describe_kin(config, tree, kin, d);
  const Quantity codes = config.size("num_codebooks", 8) * config.size("codebook_size", 1024);
  tree.modules.back() = output_head("audio_lm_head", codes, d.hidden, false, "");  // none guesses words
  const bool bias = config.flag("mlp_bias", false);
  Module sound = layers("model.layers.{layer}", "of tokens of sound", all_layers(d.layers));
  Tower(sound, Part::audio)
      .norm("audio_input_layernorm", d.hidden, false)
      .norm("audio_post_attention_layernorm", d.hidden, false)
      .matrix("audio_mlp.gate_proj", d.hidden, d.intermediate, bias)
      .matrix("audio_mlp.up_proj", d.hidden, d.intermediate, bias)
      .matrix("audio_mlp.down_proj", d.intermediate, d.hidden, bias);
  add_tower(tree, std::move(sound));
  Module table{"model.embed_audio_tokens", "table of codes", {}, {}, {}};
  Tower(table, Part::audio).tensor("embed_audio_tokens.weight", {codes, d.hidden});
  add_tower(tree, std::move(table));
  tree.not_counted.push_back({"the codec, in a repository of its own", std::nullopt});
}

constexpr std::string_view kCsmArchitectures[] = {"CsmForConditionalGeneration"}, kCsmTypes[] = {"csm"},
                           kDiaArchitectures[] = {"DiaForConditionalGeneration"}, kDiaTypes[] = {"dia"},
                           kKyutaiArchitectures[] = {"KyutaiSpeechToTextForConditionalGeneration"},
                           kKyutaiTypes[] = {"kyutai_speech_to_text"},
                           kMoshiArchitectures[] = {"MoshiForConditionalGeneration", "MoshiForCausalLM"},
                           kMoshiTypes[] = {"moshi"},
                           kHiggsArchitectures[] = {"HiggsAudioV2ForConditionalGeneration"},
                           kHiggsTypes[] = {"higgs_audio_v2"};

}  // namespace

const Family kCsm = {"csm", "CSM", kCsmArchitectures, kCsmTypes, {}, describe_csm};
const Family kDia = {"dia", "Dia", kDiaArchitectures, kDiaTypes, {}, describe_dia};
const Family kKyutaiStt = {"kyutai_speech_to_text", "Kyutai STT", kKyutaiArchitectures, kKyutaiTypes, {},
                           describe_kyutai_stt};
const Family kMoshi = {"moshi", "Moshi", kMoshiArchitectures, kMoshiTypes, {}, describe_moshi};
const Family kHiggs = {"higgs_audio_v2", "Higgs Audio 2", kHiggsArchitectures, kHiggsTypes, {},
                       describe_higgs};

}  // namespace assay::families
