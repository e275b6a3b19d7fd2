// GPT-2: learned positions, LayerNorms, biases everywhere; its matrices are stored [in, out] (Conv1D).
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"

namespace assay::families {
namespace {

using namespace blocks;

Decoder read_gpt2_sizes(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 50257);
  d.hidden = config.size("n_embd|hidden_size", 768);
  d.layers = read_layers(config, "n_layer|num_hidden_layers", 12);
  d.heads = config.size("n_head|num_attention_heads", 12);
  d.kv_heads = d.heads;
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  d.intermediate =
      config.size("n_inner|intermediate_size", Quantity("4 × n_embd", (Quantity(4) * d.hidden).value()));
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  return d;
}

// To what another model has made, of the same width: keys and values in one matrix.
Module gpt2_attention_across(const Decoder& d) {
  Module across{"crossattention", "attention to what was read", {}, {}, {}};
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
  return across;
}

void describe_gpt2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_gpt2_sizes(config, tree);
  const Quantity positions = config.size("n_positions|max_position_embeddings", 1024);
  HeadAttention a = d.attention();
  a.path = "attn";
  a.fused = "c_attn";
  a.o = "c_proj";
  a.qkv_bias = a.output_bias = a.input_major = true;
  PlainMlp mlp{d.hidden, d.intermediate};
  mlp.input_major = true;
  Module layer = layers("transformer.h.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "ln_1", d.hidden, Role::input_norm, true);
  add_norm(layer, "ln_2", d.hidden, Role::pre_feedforward_norm, true);
  layer.children = {attention(a), plain_mlp(mlp)};
  if (config.has("add_cross_attention") && config.flag("add_cross_attention", false)) {
    add_norm(layer, "ln_cross_attn", d.hidden, Role::input_norm, true);
    layer.children.push_back(gpt2_attention_across(d));
  }
  // Early checkpoints hold the causal mask of every layer, and the value it masks with.
  const std::uint64_t n = positions.value();
  for (Module& part : layer.children) {
    if (part.path == "mlp") continue;
    add_buffer(part, "bias", {1, 1, n, n});
    add_buffer(part, "masked_bias", {});
  }
  add_frame(tree, d, {layer},
            {.embedding = "transformer.wte",
             .final_norm = "transformer.ln_f",
             .head = "lm_head",
             .norm_bias = true});
  Module table{"transformer.wpe", "position embedding", {}, {}, {}};
  table.tensors.push_back(
      parameter("weight", {positions, d.hidden}, Role::position_embedding, Part::embedding));
  tree.modules.insert(tree.modules.begin() + 1, std::move(table));
  tree.aliases.push_back({"transformer.", ""});  // openai-community/gpt2 was saved without the head's prefix
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// scale_attn_weights: 1/√width of a head, or 1; scale_attn_by_inverse_layer_idx: 1/(layer + 1) of that.
Hyperparameters read_gpt2(ConfigReader& config, const ModuleTree&) {
  Hyperparameters h;
  h.epsilon = config.real("layer_norm_epsilon", 1e-5, 0, 1);
  h.activation_key = "activation_function";
  h.activation = config.text(h.activation_key, "gelu_new");
  h.context = read_context(config, 1024);
  if (!config.flag("scale_attn_weights", true)) h.attention_scale = 1;
  h.scaled_by_layer = config.flag("scale_attn_by_inverse_layer_idx", false);
  return h;
}

constexpr std::string_view kGpt2Architectures[] = {"GPT2LMHeadModel"};
constexpr std::string_view kGpt2Types[] = {"gpt2"};

}  // namespace

const Family kGpt2 = {"gpt2", "GPT-2", kGpt2Architectures, kGpt2Types, kGpt2Types, describe_gpt2, read_gpt2};

}  // namespace assay::families
