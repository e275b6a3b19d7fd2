// Draft models beside EAGLE-3 (draft_models.cpp): EAGLE and EAGLE-2 (arXiv 2401.15077, 2406.16858), layers of the target's kind
// behind one matrix over [embedding, hidden state]; DFlash, layers of a Qwen3 that guess a block of tokens at once from hidden
// states of several of the target's layers; DSpark, which adds a score of each token after the one before it. Embedding and
// head are the target's: a checkpoint may hold them again. Sources: SafeAILab's cnets.py as SGLang 0.5.23's llama_eagle.py and
// qwen2_eagle.py read its releases; vLLM 0.33's qwen3_dflash.py and qwen3_dspark.py.
#include <functional>
#include <nlohmann/json.hpp>

#include "core/model/families/all_more.h"
#include "core/model/families/draft_config.h"
#include "core/model/families/draft_kin.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {

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

Module draft_entrance(const Decoder& d, const Quantity& in, bool bias) {
  Module enters{"", "what enters", {}, {}, {}};
  for (const char* name : {"embed_tokens.weight", "lm_head.weight"})
    add_buffer(enters, name, {d.vocabulary.value(), d.hidden.value()});
  add_linear(
      enters,
      {.name = "fc", .in = in, .out = d.hidden, .role = Role::other, .part = Part::attention, .bias = bias});
  return enters;
}

namespace {

// The first layer norms nothing in front of attention, and nothing follows the last.
void describe_eagle(ConfigReader& config, ModuleTree& tree, bool qkv_bias) {
  const Decoder d = read_draft(config, tree);
  HeadAttention a = d.attention();
  a.qkv_bias = qkv_bias || config.flag("attention_bias", false);
  a.output_bias = !qkv_bias && a.qkv_bias;
  tree.modules = {draft_entrance(d, Quantity(2) * d.hidden, config.flag("bias", true))};
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

// A head over a part of the target's words, and which those are.
void add_own_words(ConfigReader& config, Module& enters, const Decoder& d) {
  const Quantity draft = config.size("draft_vocab_size", d.vocabulary);
  if (draft.value() >= d.vocabulary.value()) return;
  add_buffer(enters, "t2d", {d.vocabulary.value()});
  add_buffer(enters, "d2t", {draft.value()});
  enters.tensors[1].shape[0] = draft.value();  // lm_head's
}

// `more`: what a layer has beside.
Decoder describe_dflash_layers(ConfigReader& config, ModuleTree& tree, DraftOptions& options,
                               const std::function<std::vector<Module>(const Decoder&)>& more = {}) {
  const Decoder d = read_draft(config, tree);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  a.sinks = options.having("attention_sink_bias").flag("attention_sink_bias", false) ||
            config.flag("add_swa_attention_sink_bias", false);
  a.sinks_name = "attention_sink_bias";
  const Quantity target = config.optional_size("target_hidden_size").value_or(d.hidden);
  tree.modules = {draft_entrance(d, target * states_of_target(options, d), false)};
  add_norm(tree.modules[0], "hidden_norm", d.hidden, Role::input_norm);
  Module layer = layers("layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  if (more) {
    for (Module& module : more(d)) layer.children.push_back(std::move(module));
  }
  tree.modules.push_back(std::move(layer));
  tree.modules.push_back(norm("norm", d.hidden, Role::final_norm));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_own_words(config, tree.modules[0], d);
  return d;
}

void describe_dflash(ConfigReader& outer, ModuleTree& tree) {
  const ModelConfig flat = flat_draft(outer.config());
  ConfigReader config(flat, tree.family);
  DraftOptions options(config);
  describe_dflash_layers(config, tree, options);
}

// Kernels over a block's tokens, one before and one behind what they surround, made of each token for groups of channels.
Module local_convolution(const std::string& path, const Decoder& d, const Quantity& taps,
                         const Quantity& groups) {
  Module module{path, "mixes a block's tokens", {}, {}, {}};
  module.tensors = {parameter("base_kernel", {2, taps, d.hidden}, Role::other, Part::attention)};
  add_linear(module, {.name = "kernel_projection",
                      .in = d.hidden,
                      .out = Quantity(2) * taps * groups,
                      .role = Role::other,
                      .part = Part::attention});
  return module;
}

void describe_dflash2(ConfigReader& outer, ModuleTree& tree) {
  const ModelConfig flat = flat_draft(outer.config());
  ConfigReader config(flat, tree.family);
  DraftOptions options(config);
  const auto option = [&](const char* key, std::uint64_t usual) {
    return options.having(key).size(key, usual);
  };
  const Quantity taps = option("conv_kernel_size", 2), rank = option("selector_rank", 256);
  const Decoder d = describe_dflash_layers(config, tree, options, [&](const Decoder& of) {
    const Quantity groups = config.quotient(of.hidden, option("conv_group_size", 16), "groups of channels");
    return std::vector<Module>{local_convolution("attention_conv", of, taps, groups),
                               local_convolution("mlp_conv", of, taps, groups)};
  });
  Module chooses{"candidate_selector", "chooses among candidates", {}, {}, {}};
  for (const char* table : {"predecessor_codebook", "successor_codebook"})
    chooses.tensors.push_back(parameter(table, {d.vocabulary, rank}, Role::other, Part::output));
  add_linear(
      chooses,
      {.name = "hidden_projection", .in = d.hidden, .out = rank, .role = Role::other, .part = Part::output});
  tree.modules.push_back(std::move(chooses));
}

// A block's tokens in few dimensions: joined with what the draft saw, mixed over the block, and scored again.
void describe_xpress(ConfigReader& outer, ModuleTree& tree) {
  const ModelConfig flat = flat_draft(outer.config());
  ConfigReader config(flat, tree.family);
  DraftOptions options(config);
  const Decoder d = describe_dflash_layers(config, tree, options);
  const Quantity rank = config.size("xpress_rank", 256), block = config.size("block_size", 8),
                 wide = config.size("xpress_mlp_ratio", 2) * rank,
                 draft = config.size("draft_vocab_size", d.vocabulary);
  Module mends{"refiner_head", "mends a block", {}, {}, {}};
  mends.tensors = {parameter("token_embed.weight", {d.vocabulary, rank}, Role::other, Part::output),
                   parameter("mix_l", {rank, block, block}, Role::other, Part::output)};
  const auto add = [&](const char* name, const Quantity& in, const Quantity& out) {
    add_linear(mends, {.name = name, .in = in, .out = out, .role = Role::other, .part = Part::output});
  };
  add("down_h", d.hidden, rank), add("down_g", d.hidden, rank), add("in_proj", Quantity(3) * rank, rank);
  add("mlp_gate", rank, wide), add("mlp_up", rank, wide), add("mlp_down", wide, rank);
  add("readout", rank, draft);
  tree.modules.push_back(std::move(mends));
}

}  // namespace

Module scores_of_next(ConfigReader& rules, const Decoder& d, const Quantity& draft, const Quantity& rank) {
  Module scores{"markov_head", "score of a token after another", {}, {}, {}};
  scores.tensors = {parameter("markov_w1.weight", {d.vocabulary, rank}, Role::other, Part::output),
                    parameter("markov_w2.weight", {draft, rank}, Role::other, Part::output)};
  const std::string kind = rules.text("markov_head_type", "vanilla");
  rules.require(kind == "vanilla" || kind == "gated" || kind == "rnn",
                "markov_head_type is none of vanilla, gated and rnn");
  if (kind == "vanilla") return scores;
  const bool gated = kind == "gated";
  add_linear(scores, {.name = gated ? "gate_proj" : "joint_proj",
                      .in = gated ? d.hidden + rank : Quantity(2) * rank + d.hidden,
                      .out = gated ? rank : Quantity(3) * rank,
                      .role = Role::other,
                      .part = Part::output,
                      .bias = true});
  return scores;
}

Module draft_sureness(const Quantity& width) {
  Module sure{"confidence_head", "how sure the draft is", {}, {}, {}};
  add_linear(sure, {.name = "proj",
                    .in = width,
                    .out = 1,
                    .role = Role::other,
                    .part = Part::output,
                    .bias = true,
                    .quantizable = false});
  return sure;
}

namespace {

// Drafts of other models whose layers are a Qwen3's, too (SGLang 0.5.23, lfm2_dspark.py and dspark.py).
bool has_layers_of_qwen3(const ModelConfig& config) {
  return config.model_type() == "qwen3" || config.architecture() == "Lfm2DSparkDraftModel" ||
         config.architecture() == "LingDSparkModel";
}

void describe_dspark(ConfigReader& outer, ModuleTree& tree) {
  const ModelConfig flat = flat_draft(outer.config());
  ConfigReader config(flat, tree.family);
  config.require(has_layers_of_qwen3(flat),
                 "model_type is not qwen3: DSpark has been described over a Qwen3");
  DraftOptions options(config);
  const Decoder d = describe_dflash_layers(config, tree, options);
  const Quantity draft = config.size("draft_vocab_size", d.vocabulary);
  const bool nested = &flat.document() != &outer.config().document();
  ConfigReader& ranks = options.having("markov_rank");
  const std::uint64_t width = nested ? ranks.number("markov_rank", 256) : ranks.size("markov_rank").value();
  const Quantity rank("markov_rank", width);
  if (width > 0) tree.modules.push_back(scores_of_next(options.having("markov_head_type"), d, draft, rank));
  if (!options.having("enable_confidence_head").flag("enable_confidence_head", nested)) return;
  const bool joined =
      width > 0 && options.having("confidence_head_with_markov").flag("confidence_head_with_markov", nested);
  tree.modules.push_back(draft_sureness(joined ? d.hidden + rank : d.hidden));
}

constexpr std::string_view kEagleArchitectures[] = {"LlamaForCausalLMEagle", "EagleLlamaForCausalLM"},
                           kEagleQwen2Architectures[] = {"Qwen2ForCausalLMEagle"},
                           kDflashArchitectures[] = {"DFlashDraftModel", "DFlashSpeculator"},
                           kDflash2Architectures[] = {"DFlash2DraftModel", "DFlash2Speculator"},
                           kXpressArchitectures[] = {"XPressDraftModel", "XPressSpeculator"},
                           kDsparkArchitectures[] = {"Qwen3DSparkModel",     "Qwen3OmniDSparkModel",
                                                     "DSparkDraftModel",     "DSparkSpeculator",
                                                     "Lfm2DSparkDraftModel", "LingDSparkModel"};

}  // namespace

const Family kEagle = {"eagle", "EAGLE, EAGLE-2", kEagleArchitectures, {}, {}, describe_eagle_llama};
const Family kEagleQwen2 = {"eagle_qwen2",       "EAGLE, EAGLE-2 of Qwen2", kEagleQwen2Architectures, {}, {},
                            describe_eagle_qwen2};
const Family kDflash = {"dflash", "DFlash", kDflashArchitectures, {}, {}, describe_dflash};
const Family kDflash2 = {"dflash2", "DFlash 2", kDflash2Architectures, {}, {}, describe_dflash2};
const Family kXpress = {"xpress", "XPress", kXpressArchitectures, {}, {}, describe_xpress};
const Family kDspark = {"dspark_qwen3", "DSpark of Qwen3", kDsparkArchitectures, {}, {}, describe_dspark};

}  // namespace assay::families
