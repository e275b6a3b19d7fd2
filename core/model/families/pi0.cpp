// π0: a PaliGemma that looks and reads, and a second, narrower Gemma of as many layers that attends to what the first has made and
// says how a robot moves. The second is told as a tower, with what leads into it and out. Names are those of the releases, whose
// tables of words stand under the names of heads. Source: transformers 5.23 (pi0, and how it renames what it loads).
#include "core/model/families/all_watchers.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// GemmaConfig.
constexpr DecoderDefaults kGemmaSizes = {.vocabulary = 256000,
                                         .hidden = 3072,
                                         .intermediate = 24576,
                                         .layers = 28,
                                         .heads = 16,
                                         .kv_heads = 16,
                                         .head_dim = 256,
                                         .tied = true};

constexpr const char *kSees = "paligemma_with_expert.paligemma.",
                     *kActs = "paligemma_with_expert.gemma_expert.";

void describe_language(ConfigReader& text, ModuleTree& tree) {
  const std::string path = std::string(kSees) + "model.language_model.", layer_path = path + "layers.{layer}";
  const LlamaKin kin = {.sizes = kGemmaSizes,
                        .layer_path = layer_path,
                        .frame = {.embedding = std::string(kSees) + "lm_head", .final_norm = path + "norm"}};
  Decoder d = read_decoder(text, tree, kin.sizes);
  describe_kin(text, tree, kin, d);
  tree.modules.pop_back();  // none guesses words
  tree.tied_embeddings = false;
}

Module action_layers(ConfigReader& config, const Decoder& d) {
  const bool bias = config.flag("attention_bias", false);
  const Quantity width = d.heads * d.head_dim, kv_width = d.kv_heads * d.head_dim;
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  Tower(layer, Part::projector)
      .norm("input_layernorm", d.hidden, false)
      .norm("post_attention_layernorm", d.hidden, false)
      .matrix("self_attn.q_proj", d.hidden, width, bias)
      .matrix("self_attn.k_proj", d.hidden, kv_width, bias)
      .matrix("self_attn.v_proj", d.hidden, kv_width, bias)
      .matrix("self_attn.o_proj", width, d.hidden, bias)
      .matrix("mlp.gate_proj", d.hidden, d.intermediate, false)
      .matrix("mlp.up_proj", d.hidden, d.intermediate, false)
      .matrix("mlp.down_proj", d.intermediate, d.hidden, false);
  return layer;
}

// The state, noise and the time enter as vectors beside the words.
Module action_projections(ConfigReader& config, const Quantity& hidden) {
  const Quantity moves = config.size("max_action_dim", 32), twice = Quantity(2) * hidden;
  Module module{"", "of states and actions", {}, {}, {}};
  Tower(module, Part::projector)
      .matrix("action_in_proj", moves, hidden, true)
      .matrix("state_proj", config.size("max_state_dim", 32), hidden, true)
      .matrix("action_time_mlp_in", twice, hidden, true)
      .matrix("action_time_mlp_out", hidden, hidden, true)
      .matrix("action_out_proj", hidden, moves, true);
  return module;
}

void add_action_expert(ConfigReader& config, ModuleTree& tree) {
  TowerConfig dit(config, tree, "dit_config");
  config.require(static_cast<bool>(dit), "dit_config is missing");
  ModuleTree alone;
  Decoder d = read_decoder(*dit, alone, kGemmaSizes);
  d.vocabulary = {"vocab_size", tree.vocabulary};  // whatever its own config says
  Module expert{kActs, "action expert", {}, {}, {}};
  expert.path.pop_back();
  Tower(expert, Part::projector)
      .tensor("lm_head.weight", {d.vocabulary, d.hidden})
      .norm("model.norm", d.hidden, false);
  expert.children = {action_layers(*dit, d)};
  add_tower(tree, std::move(expert));
  add_tower(tree, action_projections(config, d.hidden));
}

void describe_pi0(ConfigReader& config, ModuleTree& tree) {
  TowerConfig whole(config, tree, "vlm_config");
  config.require(static_cast<bool>(whole), "vlm_config is missing");
  TowerConfig text(*whole, tree, "text_config"), vision(*whole, tree, "vision_config");
  config.require(text && vision, "vlm_config has no text_config or no vision_config");
  config.require(text->text("model_type", "gemma") == "gemma", "vlm_config.text_config is not of Gemma");
  describe_language(*text, tree);
  const Quantity seen = vision->size("hidden_size", 768);
  config.require(add_encoder(*vision, tree, std::string(kSees) + "model.vision_tower", "siglip_vision_model"),
                 "vlm_config.vision_config is of no known encoder");
  Module projector{std::string(kSees) + "model.multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector).matrix("linear", seen, whole->size("projection_dim", 2048), true);
  add_tower(tree, std::move(projector));
  add_action_expert(config, tree);
}

constexpr std::string_view kPi0Architectures[] = {"PI0ForConditionalGeneration"}, kPi0Types[] = {"pi0"};

}  // namespace

const Family kPi0 = {"pi0", "π0", kPi0Architectures, kPi0Types, {}, describe_pi0};

}  // namespace assay::families
