// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: a Llama whose q, k, v and whose gate, up are one matrix each.
#include "core/model/families/phi3.h"
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"

namespace assay::families {

using namespace blocks;

void describe_phi3_of(ConfigReader& config, ModuleTree& tree, const DecoderDefaults& defaults) {
  const Decoder d = read_decoder(config, tree, defaults);
  HeadAttention a = d.attention();
  a.fused = "qkv_proj";
  GatedMlp mlp = d.mlp();
  mlp.fused = "gate_up_proj";

  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(mlp)};
  add_frame(tree, d, {layer});
  const auto window = config.optional_number("sliding_window");
  add_geometry(tree, a, d.layers, window ? all_layers(d.layers) : std::vector<std::uint64_t>{},
               window.value_or(0));
}

namespace {

void describe_phi3(ConfigReader& config, ModuleTree& tree) {
  describe_phi3_of(config, tree,
                   {.vocabulary = 32064, .hidden = 3072, .intermediate = 8192, .layers = 32, .heads = 32});
}

Hyperparameters read_phi3(ConfigReader& config, const ModuleTree& tree) {
  constexpr RopeClass kRope = {
      .context = 4096, .original_context = 4096, .partial = true, .longrope_only = true};
  return read_forward(config, tree, {.epsilon = 1e-5, .rope = kRope});
}

constexpr std::string_view kPhi3Architectures[] = {"Phi3ForCausalLM"};
constexpr std::string_view kPhi3Types[] = {"phi3"};

}  // namespace

const Family kPhi3 = {"phi3",     "Phi-3, Phi-4", kPhi3Architectures, kPhi3Types,
                      kPhi3Types, describe_phi3,  read_phi3};

}  // namespace assay::families
