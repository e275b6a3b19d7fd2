// Models that read a text whole and write another, of BART's kind: BART and mBART, M2M-100 and NLLB-200 (and its mixture), Marian
// with which OPUS-MT translates, Pegasus, Blenderbot, PLBART, MVP; LED, BigBird-Pegasus and Pegasus-X, whose encoders read long
// texts; without a head, too, with one that classifies, and their decoders alone. The encoder's layers are
// counted with the decoder's, as tokens of text meet both; only the decoder's attention to itself caches what grows.
// Source: transformers 5.24 (decoders alone: 5.23).
#include "core/model/families/encoder_decoders.h"

#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/all_encoders.h"
#include "core/model/families/all_more.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/encoder_kin.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {

using namespace blocks;

void note_both_sides(ModuleTree& tree, const HeadAttention& a, const Quantity& written,
                     const Quantity& read) {
  tree.layers = std::max(written.value(), read.value());
  tree.attention.push_back(geometry(a, all_layers(written)));
}

Decoder read_writer(ConfigReader& config, const DecoderDefaults& of, std::string_view head_keys) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", of.vocabulary),
  d.hidden = config.size("d_model|hidden_size", of.hidden);
  d.intermediate = config.size("decoder_ffn_dim", of.intermediate);
  d.layers = read_layers(config, "decoder_layers", of.layers);
  d.heads = d.kv_heads = config.size(head_keys, of.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "d_model / decoder_attention_heads");
  return d;
}

void widen_keys(Module& across, const Decoder& d, const Quantity& seen) {
  for (TensorSpec& spec : across.tensors) {
    if (spec.bias || (spec.role != Role::k && spec.role != Role::v)) continue;
    spec.shape[1] = seen.value(), spec.elements = seen * d.hidden;
  }
}

Experts read_fixed_experts(ConfigReader& config, ModuleTree& tree, std::uint64_t count,
                           std::uint64_t active) {
  const Experts experts{config.size("num_experts", count), active};
  config.require(active <= experts.count.value(), "num_experts is less than a token meets");
  tree.experts = experts.count.value(), tree.experts_per_token = active;
  return experts;
}

namespace {

// How a side attends to its own text.
enum class BartAttention { plain, without_biases, longformer, big_bird };

struct BartNames {
  BartAttention attends = BartAttention::plain;
  bool big_bird_bias = false;
  bool global_norm = false;  // Pegasus-X: of tokens that see all
  std::string across = "encoder_attn", mlp_norm = "final_layer_norm", mlp = "";
};

HeadAttention bart_heads(const Decoder& d, const BartNames& names) {
  HeadAttention a = d.attention();
  a.o = "out_proj";
  a.qkv_bias = a.output_bias = names.attends != BartAttention::without_biases;
  return a;
}

// LED's encoder has queries, keys and values of their own for tokens that see all.
Module longformer_attention(const Decoder& d) {
  HeadAttention a = d.attention();
  const std::string own = "longformer_self_attn.";
  a.q = own + "query", a.k = own + "key", a.v = own + "value", a.o = "output";
  a.qkv_bias = a.output_bias = true;
  Module module = attention(a);
  for (const char* name : {"query_global", "key_global", "value_global"})
    add_further_heads(module, d, own + name);
  return module;
}

Module bart_attention(const Decoder& d, const BartNames& names) {
  if (names.attends == BartAttention::longformer) return longformer_attention(d);
  HeadAttention a = bart_heads(d, names);
  if (names.attends == BartAttention::big_bird) {
    a.q = "self.query", a.k = "self.key", a.v = "self.value", a.o = "output";
    a.qkv_bias = a.output_bias = names.big_bird_bias;
  }
  return attention(a);
}

// Layers with the same MLP; without, where `mlp` is null.
Module bart_layers_of(const Decoder& d, Module layer, bool writes, const BartNames& names, Module mlp) {
  HeadAttention across = bart_heads(d, names);
  across.path = names.across;
  if (names.attends == BartAttention::big_bird) across.qkv_bias = across.output_bias = names.big_bird_bias;
  add_norm(layer, "self_attn_layer_norm", d.hidden, Role::input_norm, true);
  if (names.global_norm) add_norm(layer, "global_self_attn_layer_norm", d.hidden, Role::input_norm, true);
  if (writes) add_norm(layer, names.across + "_layer_norm", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, names.mlp_norm, d.hidden, Role::pre_feedforward_norm, true);
  layer.children.push_back(bart_attention(d, names));
  if (writes) layer.children.push_back(attention(across));
  layer.children.push_back(std::move(mlp));
  return layer;
}

Module bart_mlp(const Decoder& d, const std::string& path) {
  return plain_mlp(
      {.hidden = d.hidden, .intermediate = d.intermediate, .path = path, .up = "fc1", .down = "fc2"});
}

}  // namespace

Module bart_layers(const Decoder& d, const std::string& path, const std::string& title, bool writes) {
  return bart_layers_of(d, layers(path + ".layers.{layer}", title, all_layers(d.layers)), writes, {},
                        bart_mlp(d, ""));
}

Module nllb_layers(const Decoder& d, const std::string& path, const std::string& title, bool writes) {
  return bart_layers_of(d, layers(path + ".layers.{layer}", title, all_layers(d.layers)), writes,
                        {.across = "cross_attention", .mlp_norm = "ffn_layer_norm"}, bart_mlp(d, "ffn"));
}

namespace {

// BART: norms behind blocks and behind the tables of places; mBART: norms before, and one more at each end. Places may be sines,
// which some releases store.
struct BartClass {
  std::uint64_t vocabulary = 50265, hidden = 1024, wide = 4096, read = 12, written = 12, heads = 16;
  std::uint64_t places = 1024, places_read = 0;  // places_read: of an encoder whose config tells each side's
  bool norms_last = false;
  enum class Places { learnt, sines, none } tables = Places::learnt;
  std::uint64_t offset = 2;  // rows of the tables that no place uses
  bool normed_tables = true, logits_bias = true;
  std::string prefix = "model", last_norm = "layer_norm";
  BartNames read_names = {}, written_names = {};
  std::uint64_t labels = 2;         // of a classifier, where the config is silent
  std::uint64_t global_tokens = 0;  // learnt ones that stand in front of what is read
  bool sparse = false;              // NLLB's mixture
  bool decoder_never_tied = false;  // alone, whatever the config says
};

// What the class at hand puts behind both sides.
enum class BartUse { writing, alone, sequences, answers, decoder };
BartUse bart_use(const std::string& architecture) {
  if (architecture.ends_with("ForCausalLM")) return BartUse::decoder;
  if (architecture.ends_with("ForSequenceClassification")) return BartUse::sequences;
  if (architecture.ends_with("ForQuestionAnswering")) return BartUse::answers;
  const bool alone = architecture.ends_with("Model") && !architecture.ends_with("MTModel");
  return alone ? BartUse::alone : BartUse::writing;
}

// "model.encoder", or "encoder" where nothing stands around both sides.
std::string below(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

// What stands between the embedding and a side's layers.
std::optional<Module> bart_places(ConfigReader& config, const BartClass& of, const std::string& side,
                                  const std::string& path, const Quantity& hidden) {
  Module tables{path, side + "'s places", {}, {}, {}};
  const bool each = of.places_read > 0;
  const Quantity said = config.size(each ? "max_" + side + "_position_embeddings" : "max_position_embeddings",
                                    each && side == "encoder" ? of.places_read : of.places);
  const Quantity places = of.offset > 0 ? said + Quantity(of.offset) : said;
  if (of.tables == BartClass::Places::learnt) {
    tables.tensors.push_back(
        parameter("embed_positions.weight", {places, hidden}, Role::position_embedding, Part::embedding));
  } else if (of.tables == BartClass::Places::sines) {
    add_buffer(tables, "embed_positions.weight", {places.value(), hidden.value()});
  }
  if (of.global_tokens > 0 && side == "encoder")
    tables.tensors.push_back(parameter("embed_global.weight",
                                       {config.size("num_global_tokens", of.global_tokens), hidden},
                                       Role::token_embedding, Part::embedding));
  if (of.normed_tables) add_norm(tables, "layernorm_embedding", hidden, Role::embedding_norm, true);
  return tables.tensors.empty() ? std::nullopt : std::optional(std::move(tables));
}

// Experts in the last of every so many layers, beside a router; elsewhere one MLP.
std::vector<Module> nllb_side(ConfigReader& config, ModuleTree& tree, const Decoder& d,
                              const std::string& side, const std::string& path, const BartNames& names) {
  const Experts experts = read_fixed_experts(config, tree, 128, 2);
  const bool router_bias = config.flag("router_bias", false);
  const std::uint64_t step = config.number(side + "_sparse_step", 4);
  const auto has_experts = [&](std::uint64_t i) { return step > 0 && (i + 1) % step == 0; };
  return group_layers(
      path + ".layers.{layer}", d.layers,
      [&](std::uint64_t i) { return side + (has_experts(i) ? "'s layers with experts" : "'s layers"); },
      [&](Module& layer, std::uint64_t i) {
        Module mlp = bart_mlp(d, "ffn");
        if (has_experts(i)) {
          mlp = {"ffn", "experts", {}, {}, {}};
          add_router(mlp, "router.classifier", d.hidden, experts.count, router_bias);
          mlp.children = {routed_experts({.hidden = d.hidden,
                                          .intermediate = d.intermediate,
                                          .bias = true,
                                          .gate = "",
                                          .up = "fc1",
                                          .down = "fc2"},
                                         experts.count, experts.active, "experts.expert_{expert}")};
        }
        layer = bart_layers_of(d, std::move(layer), side == "decoder", names, std::move(mlp));
      });
}

void add_bart_head(ConfigReader& config, ModuleTree& tree, const Decoder& d, const BartClass& of, BartUse use,
                   const std::string& table) {
  Module head = head_module(use == BartUse::writing ? "what is added to logits" : "classifier");
  switch (use) {
    case BartUse::alone:
    case BartUse::decoder: break;
    case BartUse::sequences:
      add_linear(head, head_matrix("classification_head.dense", d.hidden, d.hidden));
      add_linear(head, head_matrix("classification_head.out_proj", d.hidden, label_count(config, of.labels)));
      break;
    case BartUse::answers:  // where one begins and where it ends, whatever id2label says
      add_linear(head, head_matrix("qa_outputs", d.hidden, 2));
      break;
    case BartUse::writing:
      if (of.logits_bias) add_buffer(head, "final_logits_bias", {1, d.vocabulary.value()});
  }
  if (!head.tensors.empty()) tree.modules.push_back(std::move(head));
  const bool tied = d.tied && !(use == BartUse::decoder && of.decoder_never_tied);
  if (use == BartUse::writing || use == BartUse::decoder)
    tree.modules.push_back(output_head("lm_head", d.vocabulary, d.hidden, tied, table + ".weight"));
}

// Sizes of a side, into `d`, and its modules.
void add_bart_side(ConfigReader& config, ModuleTree& tree, Decoder& d, const BartClass& of,
                   const std::string& prefix, const std::string& side) {
  const bool writes = side == "decoder";
  const std::string path = below(prefix, side);
  const BartNames& names = writes ? of.written_names : of.read_names;
  d.intermediate = config.size(side + "_ffn_dim", of.wide);
  d.layers = read_layers(config, side + "_layers", writes ? of.written : of.read);
  d.heads = d.kv_heads = config.size(side + "_attention_heads", of.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "d_model / " + side + "_attention_heads");
  if (auto places = bart_places(config, of, side, path, d.hidden)) tree.modules.push_back(std::move(*places));
  if (of.sparse) {
    for (Module& group : nllb_side(config, tree, d, side, path, names))
      tree.modules.push_back(std::move(group));
  } else {
    tree.modules.push_back(
        bart_layers_of(d, layers(path + ".layers.{layer}", side + "'s layers", all_layers(d.layers)), writes,
                       names, bart_mlp(d, names.mlp)));
  }
  if (of.norms_last)
    tree.modules.push_back(norm(path + "." + of.last_norm, d.hidden, Role::final_norm, true));
}

void describe_bart_of(ConfigReader& config, ModuleTree& tree, const BartClass& of) {
  const BartUse use = bart_use(config.config().architecture());
  const std::string prefix = use == BartUse::alone ? "" : of.prefix;
  Decoder d;
  d.vocabulary = config.size("vocab_size", of.vocabulary);
  d.hidden = config.size("d_model|hidden_size", of.hidden);
  d.tied = config.tied_embeddings(true);
  const std::string table = below(prefix, use == BartUse::decoder ? "decoder.embed_tokens" : "shared");
  tree.modules.push_back(embedding(table, d.vocabulary, d.hidden));
  Quantity read = 0;
  if (use != BartUse::decoder) {
    add_bart_side(config, tree, d, of, prefix, "encoder");
    read = d.layers;
  }
  add_bart_side(config, tree, d, of, prefix, "decoder");
  note_sizes(tree, d);
  add_bart_head(config, tree, d, of, use, table);
  if (use == BartUse::alone) tree.aliases = {{"", of.prefix + "."}};
  note_both_sides(tree, d.attention(), d.layers, read);
}

void describe_bart(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree, {.labels = 3});
}
void describe_mbart(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree, {.norms_last = true});
}
void describe_m2m(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.vocabulary = 128112,
                    .norms_last = true,
                    .tables = BartClass::Places::none,
                    .normed_tables = false,
                    .logits_bias = false});
}
void describe_nllb_moe(ConfigReader& config, ModuleTree& tree) {
  const BartNames names{.across = "cross_attention", .mlp_norm = "ff_layer_norm"};
  describe_bart_of(config, tree,
                   {.vocabulary = 128112,
                    .norms_last = true,
                    .tables = BartClass::Places::none,
                    .normed_tables = false,
                    .logits_bias = false,
                    .read_names = names,
                    .written_names = names,
                    .sparse = true});
}
void describe_led(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.places_read = 16384,
                    .offset = 0,
                    .prefix = "led",
                    .read_names = {.attends = BartAttention::longformer}});
}
void describe_bigbird_pegasus(ConfigReader& config, ModuleTree& tree) {
  const bool bias = config.flag("use_bias", false);
  describe_bart_of(config, tree,
                   {.vocabulary = 96103,
                    .read = 16,
                    .written = 16,
                    .places = 4096,
                    .norms_last = true,
                    .offset = 0,
                    .normed_tables = false,
                    .last_norm = "layernorm_embedding",
                    .read_names = {.attends = BartAttention::big_bird, .big_bird_bias = bias},
                    .written_names = {.attends = bias ? BartAttention::plain : BartAttention::without_biases},
                    .decoder_never_tied = true});
}
void describe_pegasus_x(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.vocabulary = 96103,
                    .read = 16,
                    .written = 16,
                    .norms_last = true,
                    .tables = BartClass::Places::none,
                    .normed_tables = false,
                    .logits_bias = false,
                    .read_names = {.attends = BartAttention::without_biases, .global_norm = true},
                    .written_names = {.attends = BartAttention::without_biases},
                    .global_tokens = 32});
}
void describe_marian(ConfigReader& config, ModuleTree& tree) {
  const Quantity read = config.size("vocab_size", 58101);
  config.require(
      config.flag("share_encoder_decoder_embeddings", true) &&
          config.size("decoder_vocab_size", read).value() == read.value(),
      "share_encoder_decoder_embeddings is false, or decoder_vocab_size differs: tables for each side "
      "are not described");
  describe_bart_of(
      config, tree,
      {.vocabulary = 58101, .tables = BartClass::Places::sines, .offset = 0, .normed_tables = false});
}
void describe_pegasus(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(
      config, tree,
      {.norms_last = true, .tables = BartClass::Places::sines, .offset = 0, .normed_tables = false});
}
void describe_blenderbot(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.vocabulary = 8008,
                    .hidden = 2560,
                    .wide = 10240,
                    .read = 2,
                    .written = 24,
                    .heads = 32,
                    .places = 128,
                    .norms_last = true,
                    .offset = 0,
                    .normed_tables = false});
}
void describe_blenderbot_small(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.hidden = 512, .wide = 2048, .read = 8, .written = 8, .places = 512, .offset = 0});
}
void describe_plbart(ConfigReader& config, ModuleTree& tree) {
  describe_bart_of(config, tree,
                   {.vocabulary = 50005, .hidden = 768, .wide = 3072, .read = 6, .written = 6, .heads = 12});
}
void describe_mvp(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("use_prompt", false), "use_prompt is true: MVP with prompts is not described");
  describe_bart_of(config, tree, {.vocabulary = 50267});
}

constexpr std::string_view
    kBartArchitectures[] = {"BartForConditionalGeneration", "BartForCausalLM", "BartModel",
                            "BartForSequenceClassification", "BartForQuestionAnswering"},
    kBartTypes[] = {"bart"},
    kMbartArchitectures[] = {"MBartForConditionalGeneration", "MBartForCausalLM", "MBartModel",
                             "MBartForSequenceClassification", "MBartForQuestionAnswering"},
    kMbartTypes[] = {"mbart"}, kM2mArchitectures[] = {"M2M100ForConditionalGeneration", "M2M100Model"},
    kM2mTypes[] = {"m2m_100"}, kNllbMoeArchitectures[] = {"NllbMoeForConditionalGeneration", "NllbMoeModel"},
    kNllbMoeTypes[] = {"nllb-moe"},
    kMarianArchitectures[] = {"MarianMTModel", "MarianForCausalLM", "MarianModel"},
    kMarianTypes[] = {"marian"},
    kPegasusArchitectures[] = {"PegasusForConditionalGeneration", "PegasusForCausalLM", "PegasusModel"},
    kPegasusTypes[] = {"pegasus"},
    kBlenderbotArchitectures[] = {"BlenderbotForConditionalGeneration", "BlenderbotForCausalLM",
                                  "BlenderbotModel"},
    kBlenderbotTypes[] = {"blenderbot"},
    kBlenderbotSmallArchitectures[] = {"BlenderbotSmallForConditionalGeneration",
                                       "BlenderbotSmallForCausalLM", "BlenderbotSmallModel"},
    kBlenderbotSmallTypes[] = {"blenderbot-small"},
    kPlbartArchitectures[] = {"PLBartForConditionalGeneration", "PLBartForCausalLM", "PLBartModel",
                              "PLBartForSequenceClassification"},
    kPlbartTypes[] = {"plbart"},
    kMvpArchitectures[] = {"MvpForConditionalGeneration", "MvpForCausalLM", "MvpModel",
                           "MvpForSequenceClassification", "MvpForQuestionAnswering"},
    kMvpTypes[] = {"mvp"},
    kLedArchitectures[] = {"LEDForConditionalGeneration", "LEDModel", "LEDForQuestionAnswering"},
    kLedTypes[] = {"led"},
    kBigbirdPegasusArchitectures[] = {"BigBirdPegasusForConditionalGeneration", "BigBirdPegasusForCausalLM",
                                      "BigBirdPegasusModel", "BigBirdPegasusForSequenceClassification",
                                      "BigBirdPegasusForQuestionAnswering"},
    kBigbirdPegasusTypes[] = {"bigbird_pegasus"},
    kPegasusXArchitectures[] = {"PegasusXForConditionalGeneration", "PegasusXModel"},
    kPegasusXTypes[] = {"pegasus_x"};

}  // namespace

const Family kBart = {"bart", "BART", kBartArchitectures, kBartTypes, {}, describe_bart};
const Family kMbart = {"mbart", "mBART", kMbartArchitectures, kMbartTypes, {}, describe_mbart};
const Family kM2m = {"m2m_100", "M2M-100, NLLB-200", kM2mArchitectures, kM2mTypes, {}, describe_m2m};
const Family kNllbMoe = {"nllb_moe", "NLLB-MoE", kNllbMoeArchitectures, kNllbMoeTypes, {}, describe_nllb_moe};
const Family kMarian = {"marian", "Marian, OPUS-MT", kMarianArchitectures, kMarianTypes, {}, describe_marian};
const Family kPegasus = {"pegasus", "Pegasus", kPegasusArchitectures, kPegasusTypes, {}, describe_pegasus};
const Family kBlenderbot = {"blenderbot",     "Blenderbot", kBlenderbotArchitectures,
                            kBlenderbotTypes, {},           describe_blenderbot};
const Family kBlenderbotSmall = {
    "blenderbot_small",       "Blenderbot (small)", kBlenderbotSmallArchitectures, kBlenderbotSmallTypes, {},
    describe_blenderbot_small};
const Family kPlbart = {"plbart", "PLBART", kPlbartArchitectures, kPlbartTypes, {}, describe_plbart};
const Family kMvp = {"mvp", "MVP", kMvpArchitectures, kMvpTypes, {}, describe_mvp};
const Family kLed = {"led", "LED", kLedArchitectures, kLedTypes, {}, describe_led};
const Family kBigbirdPegasus = {
    "bigbird_pegasus",       "BigBird-Pegasus", kBigbirdPegasusArchitectures, kBigbirdPegasusTypes, {},
    describe_bigbird_pegasus};
const Family kPegasusX = {"pegasus_x",    "Pegasus-X", kPegasusXArchitectures,
                          kPegasusXTypes, {},          describe_pegasus_x};

}  // namespace assay::families
