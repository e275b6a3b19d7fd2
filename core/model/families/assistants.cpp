// Models that guess what another will say, and are published beside it (transformers calls them assistants): Gemma 4's, layers that
// read the cache of the model they are for; Muse Glimmer's, a DFlash. Source: transformers 5.24 (gemma4_assistant,
// gemma4_unified_assistant, muse_glimmer_assistant).
#include "core/model/families/all_more.h"
#include "core/model/families/gemma4.h"

namespace assay::families {
namespace {

using namespace blocks;

// From the other model's hidden states and back; and where tokens are ordered by kin, the middle of each kin.
void add_projections(ConfigReader& config, ModuleTree& tree, const Quantity& hidden) {
  const ModelConfig outer = config.config().document_only();
  ConfigReader whole(outer, tree.family);
  const Quantity backbone = whole.size("backbone_hidden_size", 1536);
  Module between{"", "from the model it is for, and back", {}, {}, {}};
  const auto add = [&](const char* name, const Quantity& in, const Quantity& out) {
    add_linear(between, {.name = name, .in = in, .out = out, .role = Role::other, .part = Part::attention});
  };
  add("pre_projection", Quantity(2) * backbone, hidden);
  add("post_projection", hidden, backbone);
  if (whole.flag("use_ordered_embeddings", false)) {
    const Quantity count = whole.size("num_centroids", 2048);
    const Quantity vocabulary("vocab_size", tree.vocabulary);
    whole.require_divides(count, vocabulary);
    add_buffer(between, "masked_embedding.token_ordering", {vocabulary.value()});
    add_linear(between, {.name = "masked_embedding.centroids",
                         .in = hidden,
                         .out = count,
                         .role = Role::other,
                         .part = Part::output});
  }
  tree.modules.push_back(std::move(between));
}

void describe_gemma4_assistant(ConfigReader& config, ModuleTree& tree) {
  describe_gemma4_kin(config, tree,
                      {.per_layer = 0, .window = 512, .add_towers = add_projections, .assistant = true});
}
void describe_gemma4_unified_assistant(ConfigReader& config, ModuleTree& tree) {
  describe_gemma4_kin(config, tree,
                      {.per_layer = 0, .window = 1024, .add_towers = add_projections, .assistant = true});
}

// Tokens come in and go out by the tables of the model it is for.
void describe_muse_assistant(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.hidden = config.size("hidden_size", 6656), d.intermediate = config.size("intermediate_size", 19968);
  d.layers = read_layers(config, "num_hidden_layers", 5), d.heads = config.size("num_attention_heads", 32);
  d.kv_heads = config.size("num_key_value_heads", 8), d.head_dim = config.size("head_dim", 128);
  config.require_divides(d.kv_heads, d.heads);
  d.tied = false;
  tree.hidden_size = d.hidden.value(), tree.layers = d.layers.value();
  const auto seen = config.numbers("target_layer_ids");
  const Quantity states("hidden states of the target", seen && !seen->empty() ? seen->size() : 5);
  Module enters{"encoder", "what enters", {}, {}, {}};
  add_linear(
      enters,
      {.name = "fc", .in = states * d.hidden, .out = d.hidden, .role = Role::other, .part = Part::attention});
  add_norm(enters, "output_norm_enc", d.hidden, Role::input_norm);
  HeadAttention a = d.attention();
  a.qk_norm = QkNorm::per_head;
  Module layer = layers("layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  tree.modules = {std::move(enters), std::move(layer), norm("norm", d.hidden, Role::final_norm)};
  const auto narrow = windowed_layers(config, d.layers, [](std::uint64_t) { return true; });
  add_geometry(tree, a, d.layers, narrow, config.size("sliding_window", 2048).value());
}

constexpr std::string_view kGemma4Assistants[] = {"Gemma4AssistantForCausalLM"},
                           kGemma4AssistantTypes[] = {"gemma4_assistant"},
                           kUnifiedAssistants[] = {"Gemma4UnifiedAssistantForCausalLM"},
                           kUnifiedAssistantTypes[] = {"gemma4_unified_assistant"},
                           kMuseAssistants[] = {"MuseGlimmerAssistantModel",
                                                "MuseGlimmerAssistantForCausalLM"},
                           kMuseAssistantTypes[] = {"muse_glimmer_assistant"};

}  // namespace

const Family kGemma4Assistant = {
    "gemma4_assistant",       "Gemma 4's assistant", kGemma4Assistants, kGemma4AssistantTypes, {},
    describe_gemma4_assistant};
const Family kGemma4UnifiedAssistant = {"gemma4_unified_assistant",
                                        "Gemma 4 12B's assistant",
                                        kUnifiedAssistants,
                                        kUnifiedAssistantTypes,
                                        {},
                                        describe_gemma4_unified_assistant};
const Family kMuseGlimmerAssistant = {
    "muse_glimmer_assistant", "Muse Glimmer's assistant", kMuseAssistants, kMuseAssistantTypes, {},
    describe_muse_assistant};

}  // namespace assay::families
