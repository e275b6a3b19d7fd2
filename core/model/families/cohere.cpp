// Command-R and Aya (Cohere): attention and MLP run in parallel behind one LayerNorm without bias; tied
// embeddings. Cohere2 (Command-R7B, Command-A) looks at a window in three layers of four.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/kin_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr DecoderDefaults kDefaults = {
    .vocabulary = 256000, .hidden = 8192, .intermediate = 22528, .layers = 40, .heads = 64, .tied = true};

void add_layers(ModuleTree& tree, const Decoder& d, Module attend) {
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
  layer.children = {std::move(attend), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer});
}

void describe_cohere(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree, kDefaults);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  Module attend = attention(a);
  const auto add_head_norm = [&](const char* name, const Quantity& heads, Role role) {
    attend.tensors.push_back(parameter(name, {heads, d.head_dim}, role, Part::attention));
    attend.tensors.back().parallel = {Partition::columns, 0, {{role, heads.value(), heads.value()}}};
  };
  if (config.flag("use_qk_norm", false)) {  // Command-R+: every head has a norm of its own
    add_head_norm("q_norm.weight", d.heads, Role::q_norm);
    add_head_norm("k_norm.weight", d.kv_heads, Role::k_norm);
  }
  add_layers(tree, d, std::move(attend));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

void describe_cohere2(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree, kDefaults);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  add_layers(tree, d, attention(a));
  const auto window = config.optional_number("sliding_window", 4096);
  const auto otherwise = all_but_every(config, "sliding_window_pattern", 4);
  const auto windowed =
      windowed_layers(config, d.layers, [&](std::uint64_t i) { return window.has_value() && otherwise(i); });
  add_geometry(tree, a, d.layers, windowed, window.value_or(0));
}

constexpr std::string_view kCohereArchitectures[] = {"CohereForCausalLM"};
constexpr std::string_view kCohereTypes[] = {"cohere"};
constexpr std::string_view kCohereGguf[] = {"command-r"};
constexpr std::string_view kCohere2Architectures[] = {"Cohere2ForCausalLM"};
constexpr std::string_view kCohere2Types[] = {"cohere2"};

}  // namespace

const Family kCohere = {"cohere",    "Command-R, Aya", kCohereArchitectures, kCohereTypes,
                        kCohereGguf, describe_cohere,  forward_cohere};
const Family kCohere2 = {"cohere2",     "Command-R7B, Command-A", kCohere2Architectures, kCohere2Types,
                         kCohere2Types, describe_cohere2,         forward_cohere2};

}  // namespace assay::families
