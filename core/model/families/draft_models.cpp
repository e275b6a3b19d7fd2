// Draft models of speculative decoding that are published as checkpoints of their own: EAGLE-3 (arXiv 2503.01840), one layer of
// a Llama whose q, k and v read the embedding beside what the target's layers have left, and a head over part of the
// vocabulary. Source: SafeAILab's and SpecForge's releases as vLLM 0.33's llama_eagle3.py reads them.
#include <nlohmann/json.hpp>

#include "core/model/families/all_hub.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// How many of the target's hidden states enter.
std::uint64_t read_states(ConfigReader& config) {
  if (const auto count = config.optional_number("num_aux_hidden_states")) return *count;
  const auto own = config.config().text_section("eagle_config");
  if (!own) return 3;
  ConfigReader eagle(*own, "eagle_config");
  config.require(eagle.flag("use_aux_hidden_state", true) && !eagle.flag("norm_before_fc", false),
                 "eagle_config has use_aux_hidden_state off, or norm_before_fc on: EAGLE-3 has been "
                 "described otherwise");
  const auto layers = eagle.numbers("eagle_aux_hidden_state_layer_ids");
  return layers && !layers->empty() ? layers->size() : 3;
}

void describe_eagle3(ConfigReader& config, ModuleTree& tree) {
  config.require(config.number("num_hidden_layers", 1) == 1,
                 "num_hidden_layers is not 1: an EAGLE-3 of more layers is not described");
  config.require(!config.flag("norm_before_fc", false) && !config.flag("fc_norm", false),
                 "norm_before_fc or fc_norm is true: EAGLE-3 has been described without");
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_attention_heads"})
    config.size(key);
  const Decoder d =
      read_decoder(config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 1, .heads = 0});
  tree.tied_embeddings = false;
  const Quantity target = config.size("target_hidden_size", d.hidden),
                 draft = config.size("draft_vocab_size", d.vocabulary),
                 states("hidden states of the target", read_states(config));
  config.require(states.value() > 0, "num_aux_hidden_states is 0: nothing of the target enters");

  Module enters{"", "what enters", {}, {}, {}};
  add_buffer(enters, "embed_tokens.weight",
             {d.vocabulary.value(), d.hidden.value()});  // the target's, where it is stored
  add_buffer(enters, "t2d", {d.vocabulary.value()});
  add_buffer(enters, "d2t", {draft.value()});
  add_linear(
      enters,
      {.name = "fc", .in = target * states, .out = d.hidden, .role = Role::other, .part = Part::attention});

  HeadAttention a = d.attention();
  a.qkv_bias = config.flag("attention_bias", false);
  Module layer = layers("midlayer", "layer", all_layers(Quantity(1)));
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
  add_norm(layer, "hidden_norm", d.hidden, Role::input_norm);
  add_norm(layer, "post_attention_layernorm", d.hidden, Role::pre_feedforward_norm);
  Module attend = attention(a);
  for (TensorSpec& spec : attend.tensors) {
    if (spec.bias || spec.role == Role::attention_output) continue;
    spec.shape[1] *= 2;
    spec.elements = Quantity(2) * spec.elements;
  }
  layer.children = {std::move(attend), gated_mlp(d.mlp())};
  tree.modules = {std::move(enters), std::move(layer), norm("norm", d.hidden, Role::final_norm),
                  output_head("lm_head", draft, d.hidden, false, "")};
  tree.attention.push_back(geometry(a, {0}));
}

constexpr std::string_view kEagle3Architectures[] = {"LlamaForCausalLMEagle3"};

}  // namespace

const Family kEagle3 = {"eagle3", "EAGLE-3", kEagle3Architectures, {}, {}, describe_eagle3};

}  // namespace assay::families
