// OLMo-2 and OLMo-3: norms come after attention and MLP, and q and k are normed over their full width. OLMo-3
// looks at a window in three layers of four.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/families/kin_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

HeadAttention add_layers(ConfigReader& config, ModuleTree& tree, Decoder& d) {
  d = read_decoder(config, tree,
                   {.vocabulary = 50304, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::full_width;
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_norm(layer, "post_attention_layernorm", d.hidden, Role::post_attention_norm);
  add_norm(layer, "post_feedforward_layernorm", d.hidden, Role::post_feedforward_norm);
  add_frame(tree, d, {layer});
  return a;
}

void describe_olmo2(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  const HeadAttention a = add_layers(config, tree, d);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

void describe_olmo3(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  const HeadAttention a = add_layers(config, tree, d);
  const auto window = config.optional_number("sliding_window", 4096);
  const auto windowed = windowed_layers(
      config, d.layers, [&](std::uint64_t i) { return window.has_value() && (i + 1) % 4 != 0; });
  add_geometry(tree, a, d.layers, windowed, window.value_or(0));
}

Hyperparameters read_olmo2(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.epsilon = 1e-5});
}

constexpr std::string_view kOlmo2Architectures[] = {"Olmo2ForCausalLM"};
constexpr std::string_view kOlmo2Types[] = {"olmo2"};
constexpr std::string_view kOlmo3Architectures[] = {"Olmo3ForCausalLM"};
constexpr std::string_view kOlmo3Types[] = {"olmo3"};

}  // namespace

const Family kOlmo2 = {"olmo2",     "OLMo-2",       kOlmo2Architectures, kOlmo2Types,
                       kOlmo2Types, describe_olmo2, read_olmo2};
const Family kOlmo3 = {"olmo3", "OLMo-3",       kOlmo3Architectures, kOlmo3Types,
                       {},      describe_olmo3, forward_olmo3};

}  // namespace assay::families
