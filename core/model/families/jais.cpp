// JAIS 1: GPT-2's names and its matrices stored [in, out], with SwiGLU, and with ALiBi in place of a table of positions.
// Source: inceptionai's modeling_jais.py as vLLM 0.10's jais.py reads its checkpoints.
#include "core/model/families/all_hub.h"
#include "core/model/families/hub_forward.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// c_fc(x) · silu(c_fc2(x)); of other activations c_fc2 is left off.
Module jais_mlp(const Decoder& d, bool swiglu) {
  PlainMlp plain{d.hidden, d.intermediate};
  plain.input_major = true;
  Module mlp = plain_mlp(plain);
  if (swiglu)
    add_linear(mlp, {.name = "c_fc2",
                     .in = d.hidden,
                     .out = d.intermediate,
                     .role = Role::mlp_gate,
                     .part = Part::dense_mlp,
                     .partition = Partition::columns,
                     .bias = true,
                     .input_major = true});
  return mlp;
}

void describe_jais(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 50257);
  d.hidden = config.size("n_embd|hidden_size", 768);
  d.layers = read_layers(config, "n_layer|num_hidden_layers", 12);
  d.heads = d.kv_heads = config.size("n_head|num_attention_heads", 12);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  d.intermediate = config.size("n_inner|intermediate_size", Quantity(4) * d.hidden);
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  HeadAttention a = d.attention();
  a.path = "attn";
  a.fused = "c_attn", a.o = "c_proj";
  a.qkv_bias = a.output_bias = a.input_major = true;
  Module layer = layers("transformer.h.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "ln_1", d.hidden, Role::input_norm, true);
  add_norm(layer, "ln_2", d.hidden, Role::pre_feedforward_norm, true);
  layer.children = {attention(a), jais_mlp(d, config.text("activation_function", "gelu_new") == "swiglu")};
  add_frame(tree, d, {layer},
            {.embedding = "transformer.wte", .final_norm = "transformer.ln_f", .norm_bias = true});
  if (config.text("position_embedding_type", "learned") == "learned") {
    add_positions(tree, "transformer.wpe", config.size("n_positions|max_position_embeddings", 1024),
                  d.hidden);
  } else {
    Module slopes{"transformer.relative_pe", "slopes of ALiBi", {}, {}, {}};
    add_buffer(slopes, "slopes", {d.heads.value(), 1});
    tree.modules.insert(tree.modules.begin() + 1, std::move(slopes));
  }
  tree.aliases.push_back({"transformer.", ""});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kJaisArchitectures[] = {"JAISLMHeadModel"}, kJaisTypes[] = {"jais"};

}  // namespace

const Family kJais = {"jais", "JAIS", kJaisArchitectures, kJaisTypes, {}, describe_jais, forward_jais};

}  // namespace assay::families
