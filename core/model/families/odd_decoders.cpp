// Decoders whose code is not transformers' today, or that it keeps beside all others: Grok 1 as HPC-AI Tech converted it, RuGPT-3
// XL, OLMo under the code that trained it, CPM-Ant. Sources: HPC-AI's modeling_grok1.py and RuGPT-3 XL's modeling_rugpt3xl.py,
// which stand beside the weights, allenai/OLMo (olmo/model.py), transformers 5.24.
#include "core/model/families/all_kin.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/stated_sizes.h"

namespace assay::families {
namespace {

using namespace blocks;

// "name.scale", which is how Grok's norms hold their weights.
void add_grok_norm(Module& module, const std::string& name, const Quantity& width, Role role) {
  module.tensors.push_back(parameter(name + ".scale", {width}, role, Part::norm));
}

void describe_grok1_model(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 131072,
                                  .hidden = 6144,
                                  .intermediate = 32768,
                                  .layers = 64,
                                  .heads = 48,
                                  .kv_heads = 8,
                                  .tied = true},
                                 HeadDim::unused);
  HeadAttention a = d.attention();
  a.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads");
  a.path = "attn";
  Mixture m{d.hidden, read_experts(config, tree, "num_experts", 8, "num_experts_per_tok", 2), d.intermediate};
  m.path = "moe_block", m.gate = "linear", m.up = "linear_v", m.down = "linear_1";
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_grok_norm(layer, "pre_attn_norm", d.hidden, Role::input_norm);
  add_grok_norm(layer, "post_attn_norm", d.hidden, Role::post_attention_norm);
  add_grok_norm(layer, "pre_moe_norm", d.hidden, Role::pre_feedforward_norm);
  add_grok_norm(layer, "post_moe_norm", d.hidden, Role::post_feedforward_norm);
  layer.children = {attention(a), mixture(m)};
  add_frame(tree, d, {layer});
  for (Module& module : tree.modules) {
    if (module.path == "model.norm") module.tensors.front().name = "scale";
  }
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// Blocks of 2020 under a Llama's names; half of them see a part of what is before, which no weight tells.
void describe_rugpt3xl(ConfigReader& config, ModuleTree& tree) {
  require_stated(config);
  const Decoder d = read_decoder(config, tree, kStatedSizes);
  const Quantity positions = config.size("max_position_embeddings");
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = true;
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden, true);
  layer.children = {
      attention(a),
      plain_mlp({.hidden = d.hidden, .intermediate = d.intermediate, .up = "up_proj", .down = "down_proj"})};
  add_frame(tree, d, {layer}, {.norm_bias = true});
  add_positions(tree, "model.embed_positions", positions, d.hidden);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// OLMo's training code. Norms may have no weights, or no biases.
struct OlmoNorms {
  bool weights, bias;
  void add(Module& module, const std::string& name, const Quantity& width, Role role) const {
    if (weights) add_norm(module, name, width, role, bias);
  }
};

HeadAttention olmo_attention(const Decoder& d, bool bias) {
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = bias;
  a.path = "", a.fused = "att_proj", a.o = "attn_out";
  return a;
}

void describe_hf_olmo(ConfigReader& config, ModuleTree& tree) {
  config.require(config.text("block_type", "sequential") == "sequential",
                 "block_type is not sequential: OLMo's other blocks are not described");
  config.require(config.size("block_group_size", 1).value() == 1, "block_group_size is not 1");
  const Quantity words = config.size("vocab_size", 50257);
  Decoder d;
  d.vocabulary = config.is_null("embedding_size") ? words : config.size("embedding_size", 50304);
  d.hidden = config.size("d_model", 768);
  d.layers = read_layers(config, "n_layers", 12);
  d.heads = config.size("n_heads", 12);
  d.head_dim = config.quotient(d.hidden, d.heads, "d_model / n_heads");
  d.kv_heads = config.has("n_kv_heads")                      ? config.size("n_kv_heads")
               : config.flag("multi_query_attention", false) ? Quantity(1)
                                                             : d.heads;
  config.require_divides(d.kv_heads, d.heads);
  const Quantity wide = config.size(
      "mlp_hidden_size", Quantity("mlp_ratio × d_model", (config.size("mlp_ratio", 4) * d.hidden).value()));
  const bool gated = config.text("activation_type", "swiglu") == "swiglu";
  d.intermediate = gated ? config.quotient(wide, 2, "mlp_hidden_size / 2") : wide;
  d.tied = config.flag("weight_tying", true);
  note_sizes(tree, d);
  const bool bias = config.flag("include_bias", true);
  const OlmoNorms norms{config.flag("layer_norm_with_affine", true),
                        config.flag("bias_for_layer_norm", bias)},
      of_heads{config.flag("attention_layer_norm_with_affine", true), norms.bias};
  const HeadAttention a = olmo_attention(d, bias);
  Module layer = layers("model.transformer.blocks.{layer}", "layers", all_layers(d.layers));
  Module attend = attention(a);
  if (config.flag("attention_layer_norm", false)) {
    of_heads.add(attend, "k_norm", d.kv_heads * d.head_dim, Role::k_norm);
    of_heads.add(attend, "q_norm", d.hidden, Role::q_norm);
  }
  norms.add(layer, "attn_norm", d.hidden, Role::input_norm);
  norms.add(layer, "ff_norm", d.hidden, Role::pre_feedforward_norm);
  Module mlp = gated ? gated_mlp({.hidden = d.hidden,
                                  .intermediate = d.intermediate,
                                  .path = "",
                                  .bias = bias,
                                  .down = "ff_out",
                                  .fused = "ff_proj"})
                     : plain_mlp({.hidden = d.hidden,
                                  .intermediate = d.intermediate,
                                  .path = "",
                                  .bias = bias,
                                  .up = "ff_proj",
                                  .down = "ff_out"});
  layer.children = {std::move(attend), std::move(mlp)};
  add_frame(tree, d, {layer},
            {.embedding = "model.transformer.wte",
             .final_norm = "model.transformer.ln_f",
             .head = "model.transformer.ff_out",
             .norm_bias = norms.bias,
             .head_bias = bias && !d.tied});
  if (!norms.weights) std::erase_if(tree.modules, [](const Module& m) { return m.path.ends_with("ln_f"); });
  Module more{"model.transformer", "norm of the embedding", {}, {}, {}};
  if (config.flag("embedding_layer_norm", false)) norms.add(more, "emb_norm", d.hidden, Role::embedding_norm);
  if (!more.tensors.empty()) tree.modules.insert(tree.modules.begin() + 1, std::move(more));
  if (!config.flag("alibi", false) && !config.flag("rope", false))
    add_positions(tree, "model.transformer.wpe", config.size("max_sequence_length", 1024), d.hidden);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// CPM-Ant: learnt prompts stand in the table of words behind them, and scores get a value for each pair of segments and each
// distance.
void describe_cpmant(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 30720);
  d.hidden = config.size("hidden_size", 4096);
  d.intermediate = config.size("dim_ff", 10240);
  d.layers = read_layers(config, "num_hidden_layers", 48);
  d.heads = d.kv_heads = config.size("num_attention_heads", 32);
  d.head_dim = config.size("dim_head", 128);
  d.tied = false;
  note_sizes(tree, d);
  const Quantity prompts = config.size("prompt_types", 32) * config.size("prompt_length", 32),
                 segments = config.size("segment_types", 32),
                 distances = config.size("position_bias_num_buckets", 512);
  HeadAttention a = d.attention();
  a.path = "self_att.self_attention";
  a.q = "project_q", a.k = "project_k", a.v = "project_v", a.o = "attention_out";
  Module layer = layers("cpmant.encoder.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "self_att.layernorm_before_attention", d.hidden, Role::input_norm);
  add_norm(layer, "ffn.layernorm_before_ffn", d.hidden, Role::pre_feedforward_norm);
  layer.children = {attention(a), gated_mlp({.hidden = d.hidden,
                                             .intermediate = d.intermediate,
                                             .path = "ffn.ffn",
                                             .gate = "w_in.w_0",
                                             .up = "w_in.w_1",
                                             .down = "w_out"})};
  add_frame(tree, d, {layer},
            {.embedding = "cpmant.input_embedding", .final_norm = "cpmant.encoder.output_layernorm"});
  tree.modules.front() = embedding("cpmant.input_embedding", d.vocabulary + prompts, d.hidden);
  Module tables{"cpmant", "segments and distances", {}, {}, {}};
  tables.tensors = {
      parameter("segment_embedding.weight", {segments, d.hidden}, Role::position_embedding, Part::embedding),
      parameter("position_bias.relative_attention_bias", {segments * segments + distances, d.heads},
                Role::position_embedding, Part::attention)};
  tree.modules.insert(tree.modules.begin() + 1, std::move(tables));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kGrok1Architectures[] = {"Grok1ModelForCausalLM"},
                           kRugptArchitectures[] = {"RuGPT3XLForCausalLM"}, kRugptTypes[] = {"rugpt3xl"},
                           kHfOlmoArchitectures[] = {"OLMoForCausalLM"}, kHfOlmoTypes[] = {"hf_olmo"},
                           kCpmantArchitectures[] = {"CpmAntForCausalLM"}, kCpmantTypes[] = {"cpmant"};

}  // namespace

const Family kGrok1Model = {"grok1_model",       "Grok 1 (converted)", kGrok1Architectures, {}, {},
                            describe_grok1_model};
const Family kRugpt3xl = {"rugpt3xl", "RuGPT-3 XL", kRugptArchitectures, kRugptTypes, {}, describe_rugpt3xl};
const Family kHfOlmo = {"hf_olmo", "OLMo (own code)", kHfOlmoArchitectures, kHfOlmoTypes,
                        {},        describe_hf_olmo};
const Family kCpmant = {"cpmant", "CPM-Ant", kCpmantArchitectures, kCpmantTypes, {}, describe_cpmant};

}  // namespace assay::families
