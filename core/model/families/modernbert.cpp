// Encoders of text that are built like decoders: ModernBERT, with eyes and without, and EuroBERT, which is a Llama that sees both
// sides.
// Source: transformers 5.24.
#include "core/model/families/all_2026.h"
#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct ModernBertHead {
  std::string path = "head", guesses = "decoder";
  bool classes_are_biased = false;
  std::string table;  // of words
  bool norm_bias = false, tied = true;
  ConfigReader* labels = nullptr;  // what has them; nullptr: the config itself
};

// One matrix and one norm in front of whatever a head tells.
void add_modernbert_head(ConfigReader& config, ModuleTree& tree, EncoderUse use, const Decoder& d,
                         const ModernBertHead& of) {
  Module head = head_module("head");
  blocks::Linear dense = head_matrix(of.path + ".dense", d.hidden, d.hidden);
  dense.bias = config.flag("classifier_bias", false);
  add_linear(head, dense);
  add_norm(head, of.path + ".norm", d.hidden, Role::final_norm, of.norm_bias);
  if (use != EncoderUse::guessing) {
    const Quantity classes =
        use == EncoderUse::choices ? Quantity(1) : label_count(of.labels != nullptr ? *of.labels : config);
    add_linear(head, head_matrix("classifier", d.hidden, classes));
  } else {
    if (config.flag("decoder_bias", true)) {
      TensorSpec bias = parameter(of.guesses + ".bias", {d.vocabulary}, Role::output_head, Part::output);
      bias.bias = true;
      head.tensors.push_back(std::move(bias));
    }
    TensorSpec again =
        parameter(of.guesses + ".weight", {d.vocabulary, d.hidden}, Role::output_head, Part::output);
    if (of.tied) again.storage = Storage::tied, again.same_as = of.table;
    head.tensors.push_back(std::move(again));
  }
  tree.modules.push_back(std::move(head));
}

// Norms before, no biases unless told, gate and up in one matrix, rotations; the first layer has no norm before attention.
Decoder add_modernbert_body(ConfigReader& config, ModuleTree& tree, const std::string& prefix) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 50368, .hidden = 768, .intermediate = 1152, .layers = 22, .heads = 12, .tied = true});
  const bool norm_bias = config.flag("norm_bias", false);
  tree.modules.push_back(embedding(prefix + "embeddings.tok_embeddings", d.vocabulary, d.hidden));
  tree.modules.push_back(norm(prefix + "embeddings.norm", d.hidden, Role::embedding_norm, norm_bias));
  HeadAttention a = d.attention();
  a.path = "attn", a.fused = "Wqkv", a.o = "Wo";
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  GatedMlp mlp = d.mlp();
  mlp.fused = "Wi", mlp.down = "Wo", mlp.bias = config.flag("mlp_bias", false);
  for (Module& group : group_layers(
           prefix + "layers.{layer}", d.layers,
           [](std::uint64_t i) { return i == 0 ? "first layer" : "layers"; },
           [&](Module&layer, std::uint64_t i) {
             if (i > 0) add_norm(layer, "attn_norm", d.hidden, Role::input_norm, norm_bias);
             add_norm(layer, "mlp_norm", d.hidden, Role::pre_feedforward_norm, norm_bias);
             layer.children = {attention(a), gated_mlp(mlp)};
           }))
    tree.modules.push_back(std::move(group));
  tree.modules.push_back(norm(prefix + "final_norm", d.hidden, Role::final_norm, norm_bias));
  return d;
}

void describe_modernbert(ConfigReader& config, ModuleTree& tree) {
  const EncoderUse use = encoder_use(config);
  const std::string prefix = use == EncoderUse::alone ? "" : "model.";
  const Decoder d = add_modernbert_body(config, tree, prefix);
  if (use == EncoderUse::alone)
    tree.aliases = {{"", "model."}};
  else
    add_modernbert_head(config, tree, use, d,
                        {.table = prefix + "embeddings.tok_embeddings.weight",
                         .norm_bias = config.flag("norm_bias", false),
                         .tied = d.tied});
}

// ModernVBERT: a ModernBERT that sees through a SigLIP, whose patches are joined; and what makes a vector of each token.
// `whole` has both sections.
Decoder add_modernvbert_body(ConfigReader& whole, ModuleTree& tree, const std::string& prefix) {
  TowerConfig text(whole, tree, "text_config"), vision(whole, tree, "vision_config");
  whole.require(text && vision, "text_config or vision_config is missing");
  for (const auto& [section, type] :
       {std::pair(&text, "modernbert"), std::pair(&vision, "siglip_vision_model")})
    whole.require((*section)->text("model_type", type) == type,
                  std::string("a model_type other than ") + type + " is not described");
  const Decoder d = add_modernbert_body(*text, tree, prefix + "text_model.");
  add_tower(tree, siglip_tower(*vision, prefix + "vision_model"));
  if (vision->flag("vision_use_head", true)) {
    Module head = siglip_head(*vision);
    head.path = prefix + "vision_model." + head.path;
    add_tower(tree, std::move(head));
  }
  const Quantity side = whole.size("pixel_shuffle_factor", 4);
  Module connector{prefix + "connector", "projector", {}, {}, {}};
  Tower(connector, Part::projector)
      .matrix("modality_projection", side * side * vision->size("hidden_size", 768), d.hidden, false);
  add_tower(tree, std::move(connector));
  // Releases of before transformers 5 have another "vision_model." within.
  tree.aliases.push_back({prefix + "vision_model.", prefix + "vision_model.vision_model."});
  return d;
}

void describe_modernvbert(ConfigReader& config, ModuleTree& tree) {
  const ModelConfig document = config.config().document_only();
  ConfigReader whole(document, tree.family);
  const EncoderUse use = encoder_use(config);
  const std::string prefix = use == EncoderUse::alone ? "" : "model.";
  const Decoder d = add_modernvbert_body(whole, tree, prefix);
  if (use == EncoderUse::alone) return;
  TowerConfig text(whole, tree, "text_config");
  add_modernbert_head(*text, tree, use, d,
                      {.path = use == EncoderUse::guessing ? "projection_head" : "head",
                       .guesses = "lm_head",
                       .classes_are_biased = true,
                       .table = prefix + "text_model.embeddings.tok_embeddings.weight",
                       .norm_bias = text->flag("norm_bias", false),
                       .tied = whole.flag("tie_word_embeddings", false),
                       .labels = &whole});
}

// As transformers has it, with the whole in vlm_config; or as its authors released it, with text_config and vision_config beside.
void describe_colmodernvbert(ConfigReader& config, ModuleTree& tree) {
  const ModelConfig document = config.config().document_only();
  const auto within = document.section("vlm_config");
  ConfigReader outer(document, tree.family), whole(within ? *within : document, tree.family);
  const std::string prefix = within ? "vlm." : "model.";
  const Decoder d = add_modernvbert_body(whole, tree, prefix);
  Module head = head_module("vectors of tokens");
  blocks::Linear vectors = head_matrix(within ? "embedding_proj_layer" : "model.custom_text_proj", d.hidden,
                                       outer.size("embedding_dim", 128));
  vectors.bias = true;
  add_linear(head, vectors);
  tree.modules.push_back(std::move(head));
}

// A Llama's body; what tells words apart is a head of its own.
void describe_eurobert(ConfigReader& config, ModuleTree& tree) {
  const EncoderUse use = encoder_use(config);
  LlamaKin kin = {.sizes = {.vocabulary = 128256,
                            .hidden = 768,
                            .intermediate = 3072,
                            .layers = 12,
                            .heads = 12,
                            .tied = false},
                  .mlp_bias_keys = "mlp_bias"};
  if (use == EncoderUse::alone) {
    kin.layer_path = "layers.{layer}", kin.frame = {.embedding = "embed_tokens", .final_norm = "norm"};
    tree.aliases = {{"", "model."}};
  }
  kin.frame.head_bias = config.flag("mlp_bias", false);
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  tree.attention.clear();  // it caches nothing
  if (use == EncoderUse::guessing) return;
  tree.modules.pop_back();  // the head that guesses
  tree.tied_embeddings = false;
  if (use == EncoderUse::alone) return;
  Module head = head_module("classifier");
  if (use == EncoderUse::sequences) add_linear(head, head_matrix("dense", d.hidden, d.hidden));
  add_linear(head, head_matrix("classifier", d.hidden, label_count(config)));
  tree.modules.push_back(std::move(head));
}

constexpr std::string_view kModernBertArchitectures[] = {"ModernBertModel",
                                                         "ModernBertForMaskedLM",
                                                         "ModernBertForSequenceClassification",
                                                         "ModernBertForTokenClassification",
                                                         "ModernBertForQuestionAnswering",
                                                         "ModernBertForMultipleChoice"},
                           kModernBertTypes[] = {"modernbert"};
constexpr std::string_view kModernVBertArchitectures[] = {"ModernVBertModel", "ModernVBertForMaskedLM",
                                                          "ModernVBertForSequenceClassification",
                                                          "ModernVBertForTokenClassification"},
                           kModernVBertTypes[] = {"modernvbert"},
                           kColArchitectures[] = {"ColModernVBertForRetrieval"},
                           kColTypes[] = {"colmodernvbert"};
constexpr std::string_view kEurobertArchitectures[] = {"EuroBertModel", "EuroBertForMaskedLM",
                                                       "EuroBertForSequenceClassification",
                                                       "EuroBertForTokenClassification"},
                           kEurobertTypes[] = {"eurobert"};

}  // namespace

const Family kModernBert = {"modernbert",     "ModernBERT", kModernBertArchitectures,
                            kModernBertTypes, {},           describe_modernbert};
const Family kModernVBert = {
    "modernvbert", "ModernVBERT", kModernVBertArchitectures, kModernVBertTypes, {}, describe_modernvbert};
const Family kColModernVBert = {"colmodernvbert",       "ColModernVBERT", kColArchitectures, kColTypes, {},
                                describe_colmodernvbert};
const Family kEurobert = {"eurobert",     "EuroBERT", kEurobertArchitectures,
                          kEurobertTypes, {},         describe_eurobert};

}  // namespace assay::families
