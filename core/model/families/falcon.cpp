// Falcon 7B, 40B, 180B and their kin: q, k, v in one matrix; one or two LayerNorms a layer, as attention and
// MLP run in parallel or one after the other.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/kin_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

Decoder read_falcon_sizes(ConfigReader& config, ModuleTree& tree, bool new_architecture) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 65024);
  d.hidden = config.size("hidden_size|n_embed|n_embd", 4544);
  d.layers = read_layers(config, "num_hidden_layers|n_layer", 32);
  d.heads = config.size("num_attention_heads|n_head", 71);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  if (new_architecture)
    d.kv_heads = config.size("num_kv_heads|n_head_kv|num_key_value_heads", d.heads);
  else
    d.kv_heads = config.flag("multi_query", true) ? Quantity(1) : d.heads;
  config.require_divides(d.kv_heads, d.heads);
  d.intermediate = config.size("ffn_hidden_size|intermediate_size",
                               Quantity("4 × hidden_size", (Quantity(4) * d.hidden).value()));
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  return d;
}

// FalconDecoderLayer: which LayerNorms there are.
void add_norms(ConfigReader& config, Module& layer, const Quantity& hidden, bool new_architecture) {
  const bool parallel = config.flag("parallel_attn", true);
  const std::uint64_t norms = config.number("num_ln_in_parallel_attn", new_architecture ? 2 : 1);
  if (parallel && norms == 2) {
    add_norm(layer, "ln_attn", hidden, Role::input_norm, true);
    add_norm(layer, "ln_mlp", hidden, Role::pre_feedforward_norm, true);
    return;
  }
  add_norm(layer, "input_layernorm", hidden, Role::input_norm, true);
  if (!parallel) add_norm(layer, "post_attention_layernorm", hidden, Role::pre_feedforward_norm, true);
}

void describe_falcon(ConfigReader& config, ModuleTree& tree) {
  // The first release of the 40B ("RefinedWeb") predates the key: its own code knew no other layer.
  const bool new_architecture =
      config.flag("new_decoder_architecture", config.config().model_type() == "RefinedWeb");
  const Decoder d = read_falcon_sizes(config, tree, new_architecture);
  const bool bias = config.flag("bias", false);
  HeadAttention a = d.attention();
  a.path = "self_attention";
  a.fused = "query_key_value";
  a.interleaved = d.kv_heads.value() > 1;
  a.o = "dense";
  a.qkv_bias = a.output_bias = bias;
  PlainMlp mlp{d.hidden, d.intermediate};
  mlp.up = "dense_h_to_4h";
  mlp.down = "dense_4h_to_h";
  mlp.bias = bias;
  Module layer = layers("transformer.h.{layer}", "layers", all_layers(d.layers));
  add_norms(config, layer, d.hidden, new_architecture);
  layer.children = {attention(a), plain_mlp(mlp)};
  add_frame(tree, d, {layer},
            {.embedding = "transformer.word_embeddings",
             .final_norm = "transformer.ln_f",
             .head = "lm_head",
             .norm_bias = true});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kFalconArchitectures[] = {"FalconForCausalLM", "RWForCausalLM"};
constexpr std::string_view kFalconTypes[] = {"falcon", "RefinedWeb", "RefinedWebModel"};
constexpr std::string_view kFalconGguf[] = {"falcon"};

}  // namespace

const Family kFalcon = {"falcon",    "Falcon",        kFalconArchitectures, kFalconTypes,
                        kFalconGguf, describe_falcon, forward_falcon};

}  // namespace assay::families
