// Encoders of text and of proteins of 2026 whose layers are a Llama's, seen from both sides: UltraBERT, some of whose layers look
// at a window, and ESM C, which reads proteins. They cache nothing. Source: transformers 5.24, models/ultrabert and esmc; UltraBERT
// under the names of its releases, as transformers reads them.
#include "core/model/families/all_kin.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// The body under `prefix`, of which a model saved alone has none.
Decoder describe_body(ConfigReader& config, ModuleTree& tree, LlamaKin kin, const std::string& prefix) {
  const bool alone = encoder_use(config) == EncoderUse::alone;
  const std::string before = alone ? "" : prefix, path = before + "layers.{layer}";
  kin.layer_path = path;
  kin.frame = {.embedding = before + "embed_tokens", .final_norm = before + "norm"};
  kin.mlp_bias_keys = "mlp_bias";
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  tree.attention.clear();
  tree.modules.pop_back();  // the head of one that writes
  tree.tied_embeddings = false;
  if (alone) tree.aliases = {{"", prefix}};
  return d;
}

Linear bare(std::string name, const Quantity& in, const Quantity& out) {
  Linear matrix = head_matrix(std::move(name), in, out);
  matrix.bias = false;
  return matrix;
}

// What guesses words goes through fewer dimensions first.
void describe_ultrabert(ConfigReader& config, ModuleTree& tree) {
  const LlamaKin kin = {
      .sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32}};
  const bool tied = config.tied_embeddings(false);
  const Decoder d = describe_body(config, tree, kin, "ultrabert.");
  const EncoderUse use = encoder_use(config);
  Module head = head_module("head");
  switch (use) {
    case EncoderUse::alone: return;
    case EncoderUse::guessing: {
      const Quantity between = config.size("prediction_head_size", 768);
      add_linear(head, bare("head.linear1", d.hidden, between));
      add_linear(head, bare("head.linear2", between, d.hidden));
      add_linear(head, bare("cls", d.hidden, d.vocabulary));
      if (tied) {
        tree.tied_embeddings = true;
        head.tensors.back().storage = Storage::tied;
        head.tensors.back().same_as = "ultrabert.embed_tokens.weight";
      }
      break;
    }
    case EncoderUse::answers: add_linear(head, head_matrix("qa_outputs", d.hidden, 2)); break;
    default: add_linear(head, head_matrix("classifier", d.hidden, label_count(config)));
  }
  tree.modules.push_back(std::move(head));
}

// Norms with biases before the blocks, without behind queries, keys and the last layer.
void describe_esmc(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 64, .hidden = 2560, .intermediate = 6912, .layers = 80, .heads = 40},
      .norm_bias = true,
      .no_final_norm = true};
  kin.heads.qk_norm = QkNorm::full_width;
  const Decoder d = describe_body(config, tree, kin, "esmc.");
  config.require(d.kv_heads.value() == d.heads.value(),
                 "num_key_value_heads is not num_attention_heads: ESM C has as many of both");
  const EncoderUse use = encoder_use(config);
  const std::string prefix = use == EncoderUse::alone ? "" : "esmc.";
  tree.modules.push_back(norm(prefix + "norm", d.hidden, Role::final_norm));
  Module head = head_module("head");
  switch (use) {
    case EncoderUse::alone: return;
    case EncoderUse::guessing:
      add_linear(head, head_matrix("lm_head.dense", d.hidden, d.hidden));
      add_norm(head, "lm_head.layer_norm", d.hidden, Role::final_norm, true);
      add_linear(head, head_matrix("lm_head.decoder", d.hidden, d.vocabulary));
      break;
    case EncoderUse::sequences:
      add_linear(head, head_matrix("classifier.dense", d.hidden, d.hidden));
      add_linear(head, head_matrix("classifier.out_proj", d.hidden, label_count(config)));
      break;
    default: add_linear(head, head_matrix("score", d.hidden, label_count(config)));
  }
  tree.modules.push_back(std::move(head));
}

constexpr std::string_view kUltrabertArchitectures[] = {"UltrabertModel", "UltrabertForMaskedLM",
                                                        "UltrabertForSequenceClassification",
                                                        "UltrabertForTokenClassification",
                                                        "UltrabertForQuestionAnswering"},
                           kUltrabertTypes[] = {"ultrabert"},
                           kEsmcArchitectures[] = {"EsmcModel", "EsmcForMaskedLM",
                                                   "EsmcForSequenceClassification",
                                                   "EsmcForTokenClassification"},
                           kEsmcTypes[] = {"esmc"};

}  // namespace

const Family kUltrabert = {"ultrabert",     "UltraBERT", kUltrabertArchitectures,
                           kUltrabertTypes, {},          describe_ultrabert};
const Family kEsmc = {"esmc", "ESM C", kEsmcArchitectures, kEsmcTypes, {}, describe_esmc};

}  // namespace assay::families
