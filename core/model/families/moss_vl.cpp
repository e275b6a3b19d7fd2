// MOSS-VL: a Qwen3 some of whose layers attend to what is seen instead of the text, as Llama 3.2 Vision's do, behind Qwen3-VL's encoder,
// of whose deep layers and last one a single merger makes one vector. Source: SGLang 0.5.23's moss_vl.py. Its configuration class is
// not at hand: a config says all.
#include <algorithm>

#include "core/model/families/all_more.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_moss_vl(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "num_key_value_heads"})
    config.size(key);
  const auto crossing = config.numbers("cross_attention_layers");
  config.require(crossing && config.has("attention_bias"),
                 "cross_attention_layers or attention_bias is missing");
  const Decoder d =
      read_decoder(config, tree, {.vocabulary = 1, .hidden = 1, .intermediate = 1, .layers = 1, .heads = 1});
  HeadAttention a = d.attention();
  a.qk_norm = QkNorm::per_head;
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  HeadAttention across = a;
  across.path = "cross_attn";
  const auto crosses = [&](std::uint64_t i) {
    return std::find(crossing->begin(), crossing->end(), i) != crossing->end();
  };
  const std::string before = "model.language_model.";
  const auto groups = group_layers(
      before + "layers.{layer}", d.layers,
      [&](std::uint64_t i) { return crosses(i) ? "layers that attend to images" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        if (crosses(i)) {
          for (const char* gate : {"cross_attn_attn_gate", "cross_attn_mlp_gate"})
            layer.tensors.push_back(parameter(gate, {1}, Role::layer_scale, Part::norm));
        }
        layer.children = {attention(crosses(i) ? across : a), gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups, frame_under(before));
  for (const bool images : {false, true}) {
    const auto where = layers_where(d.layers, [&](std::uint64_t i) { return crosses(i) == images; });
    if (where.empty()) continue;
    AttentionGeometry g = geometry(a, where);
    g.cached = !images;
    tree.attention.push_back(std::move(g));
  }
  add_moss_vision(config, tree);
}

constexpr std::string_view kMossVlArchitectures[] = {"MossVLForConditionalGeneration"};

}  // namespace

const Family kMossVl = {"moss_vl", "MOSS-VL", kMossVlArchitectures, {}, {}, describe_moss_vl};

}  // namespace assay::families
