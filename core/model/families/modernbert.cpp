// Encoders of text that are built like decoders: ModernBERT, and EuroBERT, which is a Llama that sees both sides.
// Source: transformers 5.24.
#include "core/model/families/all_2026.h"
#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// One matrix and one norm in front of whatever a head tells.
void add_modernbert_head(ConfigReader& config, ModuleTree& tree, EncoderUse use, const Decoder& d,
                         const std::string& table, bool norm_bias) {
  Module head = head_module("head");
  Linear dense = head_matrix("head.dense", d.hidden, d.hidden);
  dense.bias = config.flag("classifier_bias", false);
  add_linear(head, dense);
  add_norm(head, "head.norm", d.hidden, Role::final_norm, norm_bias);
  if (use != EncoderUse::guessing) {
    const Quantity classes = use == EncoderUse::choices ? Quantity(1) : label_count(config);
    add_linear(head, head_matrix("classifier", d.hidden, classes));
  } else {
    if (config.flag("decoder_bias", true)) {
      TensorSpec bias = parameter("decoder.bias", {d.vocabulary}, Role::output_head, Part::output);
      bias.bias = true;
      head.tensors.push_back(std::move(bias));
    }
    TensorSpec again = parameter("decoder.weight", {d.vocabulary, d.hidden}, Role::output_head, Part::output);
    if (d.tied) again.storage = Storage::tied, again.same_as = table;
    head.tensors.push_back(std::move(again));
  }
  tree.modules.push_back(std::move(head));
}

// Norms before, no biases unless told, gate and up in one matrix, rotations; the first layer has no norm before attention.
void describe_modernbert(ConfigReader& config, ModuleTree& tree) {
  const EncoderUse use = encoder_use(config);
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 50368, .hidden = 768, .intermediate = 1152, .layers = 22, .heads = 12, .tied = true});
  const bool norm_bias = config.flag("norm_bias", false);
  const std::string prefix = use == EncoderUse::alone ? "" : "model.";
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
  if (use == EncoderUse::alone)
    tree.aliases = {{"", "model."}};
  else
    add_modernbert_head(config, tree, use, d, prefix + "embeddings.tok_embeddings.weight", norm_bias);
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
constexpr std::string_view kEurobertArchitectures[] = {"EuroBertModel", "EuroBertForMaskedLM",
                                                       "EuroBertForSequenceClassification",
                                                       "EuroBertForTokenClassification"},
                           kEurobertTypes[] = {"eurobert"};

}  // namespace

const Family kModernBert = {"modernbert",     "ModernBERT", kModernBertArchitectures,
                            kModernBertTypes, {},           describe_modernbert};
const Family kEurobert = {"eurobert",     "EuroBERT", kEurobertArchitectures,
                          kEurobertTypes, {},         describe_eurobert};

}  // namespace assay::families
