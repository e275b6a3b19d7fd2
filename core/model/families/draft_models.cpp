// EAGLE-3 (arXiv 2503.01840), a draft model that is published as a checkpoint of its own: a layer whose q, k and v read the
// embedding beside what the target's layers have left, seldom more layers behind it, and a head over part of the vocabulary.
// The layers are a Llama's, a Qwen3's or, with MLPs in place of experts, DeepSeek's. P-EAGLE (arXiv 2602.01469) guesses several tokens at
// once, with a vector for hidden states that are not there yet. Sources: SafeAILab's, SpecForge's and ModelOpt's releases as vLLM
// 0.33's llama_eagle3.py, qwen3_eagle3.py and deepseek_eagle3.py read them; speculators 0.9, models/eagle3 and peagle.
#include <nlohmann/json.hpp>

#include "core/model/families/all_hub.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/draft_config.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

enum class DraftLayers { llama, qwen3, deepseek };

// How the target's hidden states enter.
struct Entrance {
  bool enters = true;                           // else the last one, as it is
  std::uint64_t states = 3;                     // of so many layers
  bool norm_of_all = false, norm_each = false;  // before they are joined into one
};

Entrance read_entrance(ConfigReader& config) {
  Entrance in;
  in.norm_each = config.flag("fc_norm", false);
  in.norm_of_all = config.flag("norm_before_fc", false);
  constexpr const char* kIds = "eagle_aux_hidden_state_layer_ids";
  in.states = entries_of(config.config(), kIds).value_or(3);
  if (const auto own = config.config().text_section("eagle_config")) {
    ConfigReader eagle(*own, "eagle_config");
    in.enters = eagle.flag("use_aux_hidden_state", true);
    in.norm_of_all = eagle.flag("norm_before_fc", in.norm_of_all);
    in.states = entries_of(*own, kIds).value_or(in.states);
  }
  in.states = config.optional_number("num_aux_layers|num_aux_hidden_states").value_or(in.states);
  config.require(in.states > 0, "num_aux_hidden_states is 0: nothing of the target enters");
  return in;
}

Module entrance(ConfigReader& config, const Decoder& d, const Quantity& draft, bool parallel) {
  const Entrance in = read_entrance(config);
  const Quantity target = config.size("target_hidden_size", d.hidden),
                 states("hidden states of the target", in.states);
  Module enters{"", "what enters", {}, {}, {}};
  add_buffer(enters, "embed_tokens.weight",
             {d.vocabulary.value(), d.hidden.value()});  // the target's, where it is stored
  add_buffer(enters, "t2d", {d.vocabulary.value()});
  add_buffer(enters, "d2t", {draft.value()});
  if (!in.enters) return enters;
  if (in.norm_of_all) add_norm(enters, "input_norm", target * states, Role::input_norm);
  for (std::uint64_t i = 0; in.norm_each && i < in.states; ++i)
    add_norm(enters, "fc_norm." + std::to_string(i), target, Role::input_norm);
  add_linear(
      enters,
      {.name = "fc", .in = target * states, .out = d.hidden, .role = Role::other, .part = Part::attention});
  if (parallel)
    enters.tensors.push_back(parameter("mask_hidden", {1, 1, target * states}, Role::other, Part::attention));
  return enters;
}

// What the matrices that read a layer's input read is twice as wide in the first.
void widen_input(Module& attend) {
  for (TensorSpec& spec : attend.tensors) {
    const bool reads_it = spec.role == Role::q || spec.role == Role::k || spec.role == Role::v ||
                          spec.role == Role::q_a || spec.role == Role::kv_a;
    if (spec.bias || !reads_it) continue;
    spec.shape[1] *= 2;
    spec.elements = Quantity(2) * spec.elements;
  }
  for (Module& part : attend.children) widen_input(part);
}

HeadAttention heads_of(ConfigReader& config, const Decoder& d, DraftLayers kind) {
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  if (kind == DraftLayers::qwen3) a.qk_norm = QkNorm::per_head;
  return a;
}

void describe_layers(ConfigReader& config, ModuleTree& tree, const Decoder& d, DraftLayers kind,
                     bool one_path) {
  std::optional<LatentAttention> latent;
  std::optional<HeadAttention> heads;
  if (kind == DraftLayers::deepseek)
    latent = read_latent_attention(config, d, {});
  else
    heads = heads_of(config, d, kind);
  const auto groups = group_layers(
      one_path ? "midlayer" : "layers.{layer}", d.layers,
      [](std::uint64_t i) { return i == 0 ? "first layer" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        Module attend = latent ? attention(*latent) : attention(*heads);
        add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
        if (i == 0) {
          add_norm(layer, "hidden_norm", d.hidden, Role::input_norm);
          widen_input(attend);
        }
        add_norm(layer, "post_attention_layernorm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {std::move(attend), gated_mlp(d.mlp())};
      });
  tree.modules.insert(tree.modules.end(), groups.begin(), groups.end());
  const std::vector<std::uint64_t> all = all_layers(d.layers);
  tree.attention.push_back(latent ? geometry(*latent, all) : geometry(*heads, all));
}

void describe_draft(ConfigReader& outer, ModuleTree& tree, DraftLayers kind) {
  const ModelConfig flat = flat_draft(outer.config());
  ConfigReader config(flat, tree.family);
  const std::string& architecture = flat.architecture();
  const bool nested = &flat.document() != &outer.config().document();
  if (nested && flat.model_type() == "qwen3") kind = DraftLayers::qwen3;
  config.require(!nested || kind != DraftLayers::llama || flat.model_type() == "llama",
                 "transformer_layer_config.model_type is neither llama nor qwen3");
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_attention_heads"})
    config.size(key);
  const Decoder d =
      read_decoder(config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 1, .heads = 0});
  tree.tied_embeddings = false;
  const Quantity draft = config.size("draft_vocab_size", d.vocabulary);
  const bool parallel = architecture.starts_with("PEagle") || architecture.starts_with("Peagle");
  tree.modules = {entrance(config, d, draft, parallel)};
  describe_layers(config, tree, d, kind, !nested && d.layers.value() == 1);
  tree.modules.push_back(norm("norm", d.hidden, Role::final_norm));
  tree.modules.push_back(output_head("lm_head", draft, d.hidden, false, ""));
}

void describe_eagle3(ConfigReader& config, ModuleTree& tree) {
  describe_draft(config, tree, DraftLayers::llama);
}
void describe_eagle3_qwen3(ConfigReader& config, ModuleTree& tree) {
  describe_draft(config, tree, DraftLayers::qwen3);
}
void describe_eagle3_deepseek(ConfigReader& config, ModuleTree& tree) {
  describe_draft(config, tree, DraftLayers::deepseek);
}

constexpr std::string_view kEagle3OfLlama[] = {"LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM",
                                               "Eagle3MiniMaxM2ForCausalLM", "Eagle3Qwen2_5vlForCausalLM",
                                               "Eagle3Qwen3vlForCausalLM", "PeagleLlamaForCausalLM",
                                               // speculators, whose layers may be a Qwen3's
                                               "Eagle3DraftModel", "Eagle3Speculator", "PEagleDraftModel",
                                               "PEagleSpeculator"},
                           kEagle3OfQwen3[] = {"Eagle3Qwen3ForCausalLM", "PeagleQwen3ForCausalLM"},
                           kEagle3OfDeepseek[] = {"Eagle3DeepseekV2ForCausalLM",
                                                  "Eagle3DeepseekV3ForCausalLM"};

}  // namespace

const Family kEagle3 = {"eagle3", "EAGLE-3", kEagle3OfLlama, {}, {}, describe_eagle3};
const Family kEagle3Qwen3 = {"eagle3_qwen3",       "EAGLE-3 of Qwen3", kEagle3OfQwen3, {}, {},
                             describe_eagle3_qwen3};
const Family kEagle3Deepseek = {"eagle3_deepseek",       "EAGLE-3 of DeepSeek", kEagle3OfDeepseek, {}, {},
                                describe_eagle3_deepseek};

}  // namespace assay::families
