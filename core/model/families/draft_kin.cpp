// Draft models beside EAGLE-3 (draft_models.cpp): EAGLE and EAGLE-2 (arXiv 2401.15077, 2406.16858), layers of the target's kind
// behind one matrix over [embedding, hidden state]; DFlash, layers of a Qwen3 that guess a block of tokens at once from hidden
// states of several of the target's layers; DSpark, which adds a score of each token after the one before it. Embedding and
// head are the target's: a checkpoint may hold them again. Sources: SafeAILab's cnets.py as SGLang 0.5.23's llama_eagle.py and
// qwen2_eagle.py read its releases; vLLM 0.33's qwen3_dflash.py and qwen3_dspark.py.
#include <nlohmann/json.hpp>

#include "core/model/families/all_more.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

Decoder read_draft(ConfigReader& config, ModuleTree& tree) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    config.size(key);
  const Decoder d =
      read_decoder(config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0});
  tree.tied_embeddings = false;
  return d;
}

// What enters, beside what may be stored of the target.
Module entrance(const Decoder& d, const Quantity& in, bool bias) {
  Module enters{"", "what enters", {}, {}, {}};
  for (const char* name : {"embed_tokens.weight", "lm_head.weight"})
    add_buffer(enters, name, {d.vocabulary.value(), d.hidden.value()});
  add_linear(
      enters,
      {.name = "fc", .in = in, .out = d.hidden, .role = Role::other, .part = Part::attention, .bias = bias});
  return enters;
}

// The first layer norms nothing in front of attention, and nothing follows the last.
void describe_eagle(ConfigReader& config, ModuleTree& tree, bool qkv_bias) {
  const Decoder d = read_draft(config, tree);
  HeadAttention a = d.attention();
  a.qkv_bias = qkv_bias || config.flag("attention_bias", false);
  a.output_bias = !qkv_bias && a.qkv_bias;
  tree.modules = {entrance(d, Quantity(2) * d.hidden, config.flag("bias", true))};
  const auto groups = group_layers(
      "layers.{layer}", d.layers, [](std::uint64_t i) { return i == 0 ? "first layer" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        if (i > 0) add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
        add_norm(layer, "post_attention_layernorm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {attention(a), gated_mlp(d.mlp())};
      });
  tree.modules.insert(tree.modules.end(), groups.begin(), groups.end());
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}
void describe_eagle_llama(ConfigReader& config, ModuleTree& tree) {
  describe_eagle(config, tree, false);
}
void describe_eagle_qwen2(ConfigReader& config, ModuleTree& tree) {
  describe_eagle(config, tree, true);
}

// DFlash's own options stand in a section; releases of DSpark have them in either place.
class DraftOptions {
 public:
  explicit DraftOptions(ConfigReader& config)
      : outer_(config), section_(config.config().text_section("dflash_config")) {
    if (section_) own_.emplace(*section_, "dflash_config");
  }
  ConfigReader& having(const char* key) { return own_ && own_->has(key) ? *own_ : outer_; }

 private:
  ConfigReader& outer_;
  std::optional<ModelConfig> section_;
  std::optional<ConfigReader> own_;
};

// Of how many of the target's layers hidden states enter: those listed, else as many as the draft has.
Quantity states_of_target(DraftOptions& options, const Decoder& d) {
  constexpr const char* kKey = "target_layer_ids";
  const auto listed = options.having(kKey).numbers(kKey);
  return {"hidden states of the target", listed && !listed->empty() ? listed->size() : d.layers.value()};
}

Decoder describe_dflash_layers(ConfigReader& config, ModuleTree& tree, DraftOptions& options) {
  const Decoder d = read_draft(config, tree);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  a.sinks = options.having("attention_sink_bias").flag("attention_sink_bias", false) ||
            config.flag("add_swa_attention_sink_bias", false);
  a.sinks_name = "attention_sink_bias";
  const Quantity target = config.optional_size("target_hidden_size").value_or(d.hidden);
  tree.modules = {entrance(d, target * states_of_target(options, d), false)};
  add_norm(tree.modules[0], "hidden_norm", d.hidden, Role::input_norm);
  Module layer = layers("layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  tree.modules.push_back(std::move(layer));
  tree.modules.push_back(norm("norm", d.hidden, Role::final_norm));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  return d;
}

void describe_dflash(ConfigReader& config, ModuleTree& tree) {
  DraftOptions options(config);
  describe_dflash_layers(config, tree, options);
}

// Two narrow tables score a token by the one before it; a head tells how sure the draft is.
void describe_dspark(ConfigReader& config, ModuleTree& tree) {
  config.require(config.config().model_type() == "qwen3",
                 "model_type is not qwen3: DSpark has been described over a Qwen3");
  DraftOptions options(config);
  const Decoder d = describe_dflash_layers(config, tree, options);
  const Quantity draft = config.optional_size("draft_vocab_size").value_or(d.vocabulary),
                 rank = options.having("markov_rank").size("markov_rank");
  Module scores{"markov_head", "score of a token after another", {}, {}, {}};
  scores.tensors = {parameter("markov_w1.weight", {d.vocabulary, rank}, Role::other, Part::output),
                    parameter("markov_w2.weight", {draft, rank}, Role::other, Part::output)};
  tree.modules.push_back(std::move(scores));
  if (draft.value() < d.vocabulary.value()) {
    for (const char* map : {"t2d", "d2t"})
      add_buffer(tree.modules[0], map, {(*map == 't' ? d.vocabulary : draft).value()});
    tree.modules[0].tensors[1].shape[0] = draft.value();  // lm_head's
  }
  if (!options.having("enable_confidence_head").flag("enable_confidence_head", false)) return;
  const bool joined =
      options.having("confidence_head_with_markov").flag("confidence_head_with_markov", false);
  Module sure{"confidence_head", "how sure the draft is", {}, {}, {}};
  add_linear(sure, {.name = "proj",
                    .in = joined ? d.hidden + rank : d.hidden,
                    .out = 1,
                    .role = Role::other,
                    .part = Part::output,
                    .bias = true,
                    .quantizable = false});
  tree.modules.push_back(std::move(sure));
}

constexpr std::string_view kEagleArchitectures[] = {"LlamaForCausalLMEagle", "EagleLlamaForCausalLM"},
                           kEagleQwen2Architectures[] = {"Qwen2ForCausalLMEagle"},
                           kDflashArchitectures[] = {"DFlashDraftModel"},
                           kDsparkArchitectures[] = {"Qwen3DSparkModel", "DSparkDraftModel"};

}  // namespace

const Family kEagle = {"eagle", "EAGLE, EAGLE-2", kEagleArchitectures, {}, {}, describe_eagle_llama};
const Family kEagleQwen2 = {"eagle_qwen2",       "EAGLE, EAGLE-2 of Qwen2", kEagleQwen2Architectures, {}, {},
                            describe_eagle_qwen2};
const Family kDflash = {"dflash", "DFlash", kDflashArchitectures, {}, {}, describe_dflash};
const Family kDspark = {"dspark_qwen3", "DSpark of Qwen3", kDsparkArchitectures, {}, {}, describe_dspark};

}  // namespace assay::families
