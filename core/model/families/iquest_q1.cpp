// IQuest Q1: windows in three layers of four, a learnt key beside those of the text (whose value is zero), stacked experts of
// which none is shared, norms of what attention gives; the first layer, which has an MLP, norms what that gives, too. Source:
// SGLang 0.5.23's iquest_q1.py and its configuration class; no total is published.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/blocks.h"
#include "core/model/families/all_more.h"

namespace assay::families {
namespace {

using namespace blocks;

using LayerTypes = std::vector<std::string>;

// What the first layers attend to, then a pattern so many times, then the last ones; layer_types says nothing here.
LayerTypes read_types(ConfigReader& config, const Quantity& layers) {
  const std::string full = "full_attention", window = "sliding_attention";
  if (!config.flag("use_hybrid_layers", true) || !config.flag("use_sliding_window", true))
    return LayerTypes(layers.value(), full);
  LayerTypes types = config.texts("first_layers_types").value_or(LayerTypes{full});
  const LayerTypes block =
      config.texts("hybrid_layers_types_block").value_or(LayerTypes{full, window, window, window});
  const LayerTypes last = config.texts("last_layers_types").value_or(LayerTypes{full, full, full});
  const std::uint64_t times = config.number("num_hybrid_layers_block", 21);
  config.require(times <= layers.value(), "num_hybrid_layers_block is larger than num_hidden_layers");
  for (std::uint64_t i = 0; i < times; ++i) types.insert(types.end(), block.begin(), block.end());
  types.insert(types.end(), last.begin(), last.end());
  config.require(
      types.size() == layers.value(),
      fmt::format("the types of layers are {}, num_hidden_layers is {}", types.size(), layers.value()));
  for (const std::string& type : types)
    config.require(type == full || type == window, "a layer of type \"" + type + "\" is not described");
  return types;
}

Module q1_attention(ConfigReader& config, const HeadAttention& a) {
  Module module = attention(a);
  if (config.flag("enable_sink_attention", true))
    module.tensors.push_back(parameter("sink_k", {a.kv_heads, a.head_dim}, Role::sinks, Part::attention));
  return module;
}

Module q1_mixture(const StackedExperts& stacks) {
  Module router{"", "router", {}, {}, {}};
  add_router(router, "router", stacks.hidden, stacks.experts.count);
  Module module{"mlp", "mixture of experts", {}, {}, {}};
  module.children = {std::move(router), stacked_experts(stacks)};
  return module;
}

void describe_iquest_q1(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 160000,
                            .hidden = 3072,
                            .intermediate = 1536,
                            .layers = 88,
                            .heads = 48,
                            .kv_heads = 8,
                            .head_dim = 128});
  HeadAttention a = d.attention();
  a.qk_norm = QkNorm::per_head;
  StackedExperts stacks;
  stacks.hidden = d.hidden, stacks.width = d.intermediate;
  stacks.experts = read_experts(config, tree, "num_experts", 256, "num_experts_per_tok", 8);
  stacks.gate_up = "fc", stacks.down = "proj";
  GatedMlp mlp = d.mlp();
  mlp.intermediate = config.size("dense_intermediate_size", 12288);
  const auto dense = config.numbers("mlp_only_layers").value_or(std::vector<std::uint64_t>{0});
  const auto is_dense = [&](std::uint64_t i) {
    return std::find(dense.begin(), dense.end(), i) != dense.end();
  };
  const LayerTypes types = read_types(config, d.layers);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(i == 0 ? "first layer" : "layers") +
               (is_dense(i) ? " with an MLP" : " with experts");
      },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "attention_norm", d.hidden, Role::input_norm);
        add_norm(layer, "attn_out_norm", d.hidden, Role::post_attention_norm);
        add_norm(layer, "feed_forward_norm", d.hidden, Role::pre_feedforward_norm);
        if (i == 0) add_norm(layer, "ffn_out_norm", d.hidden, Role::post_feedforward_norm);
        layer.children = {q1_attention(config, a), is_dense(i) ? gated_mlp(mlp) : q1_mixture(stacks)};
      });
  add_frame(tree, d, groups);
  const auto windowed =
      layers_where(d.layers, [&](std::uint64_t i) { return types[i] == "sliding_attention"; });
  add_geometry(tree, a, d.layers, windowed, config.size("sliding_window", 4096).value());
  if (config.number("num_mtp_layers", 0) > 0) {
    tree.not_counted.push_back(
        {"layers for prediction (mtp_layers): their tensors are not described", std::nullopt});
  }
}

constexpr std::string_view kIquestQ1Architectures[] = {"IQuestQ1ForCausalLM"},
                           kIquestQ1Types[] = {"iquest_q1"};

}  // namespace

const Family kIquestQ1 = {"iquest_q1",    "IQuest Q1", kIquestQ1Architectures,
                          kIquestQ1Types, {},          describe_iquest_q1};

}  // namespace assay::families
