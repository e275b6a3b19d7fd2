// Encoders of text whose places are angles, and what else their authors changed of BERT: Nomic's, of which version 2 has experts,
// and Alibaba's GTE ("new", and Snowflake's Arctic-embed 2 after it). JinaBERT has linear biases in place of angles.
// Sources: transformers 5.24 (nomic_bert, gte); vLLM 0.33's loader for Nomic's experts; Alibaba's and Jina's own code.
#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// The names of GPT-2's keys that Nomic's own configs have.
EncoderKin nomic_kin() {
  EncoderKin kin{.prefix = "nomic_bert.", .positions = 0, .norm_of_tables = "emb_ln"};
  kin.sizes.vocabulary = 30528;
  kin.hidden_key = "hidden_size|n_embd", kin.wide_key = "intermediate_size|n_inner";
  kin.layers_key = "num_hidden_layers|n_layer", kin.heads_key = "num_attention_heads|n_head";
  kin.heads.pools_alone = false;
  kin.heads.guessing.norm = "cls.predictions.transform.layer_norm";
  return kin;
}

// What its own code can do and its published models do not.
void require_plain_nomic(ConfigReader& config) {
  const auto refuse = [&](bool set, const char* key) {
    config.require(!set, std::string(key) + " is set: Nomic's BERT has been described without");
  };
  for (const char* key : {"prenorm", "parallel_block", "use_rms_norm", "causal"})
    refuse(config.flag(key, false), key);
  config.require(!config.has("n_embd") || config.real("rotary_emb_fraction", 0) > 0,
                 "rotary_emb_fraction is 0: Nomic's BERT has been described without a table of places");
}

// Stacks of all experts' rows, one behind the other, stored alike for both matrices; one bias for what they give together.
Module nomic_experts(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  const Experts experts = read_experts(config, tree, "num_experts", 8, "moe_top_k", 2);
  Module mlp{"mlp", "experts", {}, {}, {}};
  add_router(mlp, "router.layer", d.hidden, experts.count);
  for (const auto& [name, role] :
       {std::pair{"experts.mlp.w1", Role::mlp_up}, std::pair{"experts.mlp.w2", Role::mlp_down}}) {
    TensorSpec stack = parameter(name, {experts.count * d.intermediate, d.hidden}, role, Part::routed_expert);
    stack.stacked = experts.count.value(), stack.stacked_active = experts.active;
    stack.quantizable = true;
    mlp.tensors.push_back(std::move(stack));
  }
  TensorSpec bias = parameter("experts.bias", {d.hidden}, Role::mlp_down, Part::dense_mlp);
  bias.bias = true;
  mlp.tensors.push_back(std::move(bias));
  return mlp;
}

struct NomicBiases {
  bool attention, up, down;
};

Module nomic_mlp(ConfigReader& config, const Decoder& d, const NomicBiases& bias) {
  const std::string act = config.text("activation_function", "swiglu");
  Module mlp =
      act.ends_with("glu")
          ? gated_mlp({d.hidden, d.intermediate, "mlp", Part::dense_mlp, true, "fc12", "fc11", "fc2"})
          : plain_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .up = "fc1", .down = "fc2"});
  std::erase_if(mlp.tensors, [&](const TensorSpec& spec) {
    return spec.bias && !(spec.role == Role::mlp_down ? bias.down : bias.up);
  });
  return mlp;
}

void describe_nomic(ConfigReader& config, ModuleTree& tree) {
  require_plain_nomic(config);
  const EncoderKin kin = nomic_kin();
  const Decoder d = read_encoder(config, tree, kin);
  const bool own = config.has("n_embd");  // transformers' class has no biases
  const NomicBiases bias{config.flag("qkv_proj_bias", own), config.flag("mlp_fc1_bias", own),
                         config.flag("mlp_fc2_bias", own)};
  const std::uint64_t every = config.number("moe_every_n_layers", 0);
  const std::string prefix = encoder_use(config) == EncoderUse::alone ? "" : kin.prefix;
  add_encoder_tables(config, tree, d, kin, prefix);
  HeadAttention a = d.attention();
  a.path = "attn", a.fused = "Wqkv", a.o = "out_proj", a.qkv_bias = a.output_bias = bias.attention;
  const auto has_experts = [&](std::uint64_t i) { return every > 0 && i % every == 1 % every; };
  for (Module& group : group_layers(
           prefix + "encoder.layers.{layer}", d.layers,
           [&](std::uint64_t i) { return has_experts(i) ? "layers with experts" : "layers"; },
           [&](Module&layer, std::uint64_t i) {
             add_norm(layer, "norm1", d.hidden, Role::post_attention_norm, true);
             add_norm(layer, "norm2", d.hidden, Role::post_feedforward_norm, true);
             layer.children = {attention(a),
                               has_experts(i) ? nomic_experts(config, tree, d) : nomic_mlp(config, d, bias)};
           }))
    tree.modules.push_back(std::move(group));
  add_encoder_rest(config, tree, d, kin, prefix);
}

// Its own code's class has other sizes than that of transformers: what is published under it must say them.
void describe_gte(ConfigReader& config, ModuleTree& tree) {
  const std::string& architecture = config.config().architecture();
  const bool own = architecture.starts_with("New") || architecture.starts_with("GteNew") ||
                   config.config().model_type() == "new";
  EncoderKin kin{.prefix = own ? "new." : "gte.",
                 .other_prefix = own ? "" : "new.",
                 .positions = 0,
                 .types = 1,
                 .types_may_be_none = own};
  kin.sizes.vocabulary = 250048;
  if (own) {
    for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"})
      config.size(key);
    if (config.text("position_embedding_type", "rope") == "absolute") kin.positions = 8192;
    config.require(kin.positions == 0 || config.has("max_position_embeddings"),
                   "max_position_embeddings is missing");
    config.require(config.text("layer_norm_type", "layer_norm") == "layer_norm",
                   "layer_norm_type is not layer_norm");
    config.require(config.flag("pack_qkv", true), "pack_qkv is false: it is not described");
  }
  kin.attend.fused = "qkv_proj", kin.attend.o = "o_proj";
  kin.attention_norm = "attn_ln", kin.mlp_norm = "mlp_ln";
  kin.gate_up = "mlp.up_gate_proj", kin.down = "mlp.down_proj";
  kin.heads.pools_alone = false;
  kin.heads.guessing = {"lm_head.dense", "lm_head.norm", "lm_head.decoder", "lm_head.decoder.bias"};
  describe_encoder(config, tree, kin);
}

constexpr std::string_view kNomicArchitectures[] = {"NomicBertModel", "NomicBertForMaskedLM",
                                                    "NomicBertForSequenceClassification",
                                                    "NomicBertForTokenClassification"},
                           kNomicTypes[] = {"nomic_bert"};
constexpr std::string_view kGteArchitectures[] = {"GteModel",
                                                  "GteForMaskedLM",
                                                  "GteForSequenceClassification",
                                                  "GteForTokenClassification",
                                                  "NewModel",
                                                  "NewForMaskedLM",
                                                  "NewForSequenceClassification",
                                                  "NewForTokenClassification",
                                                  "GteNewModel",
                                                  "GteNewForSequenceClassification"},
                           kGteTypes[] = {"gte", "new"};

}  // namespace

const Family kNomicBert = {"nomic_bert", "Nomic BERT", kNomicArchitectures, kNomicTypes, {}, describe_nomic};
const Family kGte = {"gte", "GTE, Arctic-embed 2", kGteArchitectures, kGteTypes, {}, describe_gte};

}  // namespace assay::families
