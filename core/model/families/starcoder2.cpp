// StarCoder2: biases everywhere, LayerNorms, and an MLP of two matrices.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/kin_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_starcoder2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 49152,
                                  .hidden = 3072,
                                  .intermediate = 12288,
                                  .layers = 30,
                                  .heads = 24,
                                  .kv_heads = 2,
                                  .tied = true});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("use_bias", true);
  PlainMlp mlp{d.hidden, d.intermediate};
  mlp.bias = a.qkv_bias;
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden, true);
  layer.children = {attention(a), plain_mlp(mlp)};
  Frame frame;
  frame.norm_bias = true;
  add_frame(tree, d, {layer}, frame);
  const auto window = config.optional_number("sliding_window");
  tree.attention.push_back(
      geometry(a, all_layers(d.layers), window.value_or(0)));  // layer_types counts for nothing
}

constexpr std::string_view kStarcoder2Architectures[] = {"Starcoder2ForCausalLM"};
constexpr std::string_view kStarcoder2Types[] = {"starcoder2"};

}  // namespace

const Family kStarcoder2 = {"starcoder2",     "StarCoder2",        kStarcoder2Architectures, kStarcoder2Types,
                            kStarcoder2Types, describe_starcoder2, forward_starcoder2};

}  // namespace assay::families
