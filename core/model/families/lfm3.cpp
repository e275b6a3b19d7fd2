// LFM3: LFM2's short convolutions beside attention with windows, with norms of what a block gives and a gate a head.
#include "core/model/families/all_2026.h"
#include "core/model/families/forward_2026.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

enum class Lfm3Layer { convolution, window, full };

std::function<Lfm3Layer(std::uint64_t)> lfm3_kinds(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "layer_types", count))
    return [types](std::uint64_t i) {
      const std::string& type = (*types)[i];
      return type == "conv"                ? Lfm3Layer::convolution
             : type == "sliding_attention" ? Lfm3Layer::window
                                           : Lfm3Layer::full;
    };
  return [](std::uint64_t i) {
    return i % 4 == 2 ? Lfm3Layer::full : i % 4 == 0 && i > 0 ? Lfm3Layer::window : Lfm3Layer::convolution;
  };
}

// The gates have no bias where the other matrices have one.
Module lfm3_attention(const HeadAttention& a, bool gated) {
  Module module = attention(a);
  if (gated)
    add_linear(module, {.name = "gate_proj",
                        .in = a.hidden,
                        .out = a.heads,
                        .role = Role::attention_gate,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = a.heads.value()});
  return module;
}

void describe_lfm3(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 128000,
                                  .hidden = 2048,
                                  .intermediate = 7680,
                                  .layers = 24,
                                  .heads = 16,
                                  .kv_heads = 4,
                                  .head_dim = 128,
                                  .tied = true});
  HeadAttention a = d.attention();
  a.qk_norm = QkNorm::per_head;
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const ShortConvolution conv{d.hidden, config.size("conv_L_cache", 7), config.flag("conv_bias", false)};
  GatedMlp mlp{d.hidden, d.intermediate, "feed_forward"};
  mlp.gate = "w1", mlp.up = "w3", mlp.down = "w2";
  const bool norms_behind = config.flag("use_sandwich_norm", true),
             gated = config.flag("use_attention_gate", true);
  const auto kind_of = lfm3_kinds(config, d.layers);
  const auto convolves = [&](std::uint64_t i) { return kind_of(i) == Lfm3Layer::convolution; };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return convolves(i) ? "convolution layers" : "attention layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "operator_norm", d.hidden, Role::input_norm);
        if (norms_behind) add_norm(layer, "post_operator_norm", d.hidden, Role::post_attention_norm);
        add_norm(layer, "ffn_norm", d.hidden, Role::pre_feedforward_norm);
        if (norms_behind) add_norm(layer, "post_ffn_norm", d.hidden, Role::post_feedforward_norm);
        layer.children = {convolves(i) ? short_convolution(conv) : lfm3_attention(a, gated), gated_mlp(mlp)};
      });
  Frame frame;
  frame.final_norm = "model.embedding_norm";
  add_frame(tree, d, groups, frame);
  const auto of = [&](Lfm3Layer kind) {
    return layers_where(d.layers, [&](std::uint64_t i) { return kind_of(i) == kind; });
  };
  const std::uint64_t window = config.optional_number("sliding_window", 256).value_or(0);
  const auto full = of(Lfm3Layer::full), narrow = of(Lfm3Layer::window), none = of(Lfm3Layer::convolution);
  if (!full.empty()) tree.attention.push_back(geometry(a, full));
  if (!narrow.empty()) tree.attention.push_back(geometry(a, narrow, window));
  if (!none.empty()) tree.recurrent.push_back(geometry(conv, none));
}

constexpr std::string_view kLfm3Architectures[] = {"Lfm3ForCausalLM"}, kLfm3Types[] = {"lfm3"};

}  // namespace

const Family kLfm3 = {"lfm3", "LFM3", kLfm3Architectures, kLfm3Types, {}, describe_lfm3, forward_lfm3};

}  // namespace assay::families
