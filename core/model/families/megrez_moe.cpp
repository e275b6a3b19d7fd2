// Megrez2-3x7B-A3B: layers of experts in groups (arXiv 2507.17728). The first layer of a group holds the routed experts; the
// others send their tokens there too, each by a router and beside shared experts of its own. Checkpoints hold the experts
// once. Source: Infinigence's megrez_moe.py for vLLM and for SGLang, whose loaders take no copies.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all_more.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

Mixture read_megrez_mixture(ConfigReader& config, ModuleTree& tree, const Quantity& hidden) {
  Mixture m{hidden, read_experts(config, tree, "n_routed_experts", 0, "num_experts_per_tok", 0),
            config.size("moe_intermediate_size")};
  if (config.text("topk_method", "noaux_tc") == "noaux_tc") m.correction = "gate.e_score_correction_bias";
  const std::uint64_t shared = config.optional_number("n_shared_experts").value_or(0);
  if (shared != 0) m.shared_width = Quantity("n_shared_experts", shared) * m.expert_width;
  return m;
}

void describe_megrez(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "n_routed_experts", "num_experts_per_tok"})
    config.size(key);
  config.require(config.number("moe_layer_freq", 1) == 1,
                 "moe_layer_freq is not 1: Megrez has been described with experts in every layer behind the "
                 "dense ones");
  const Decoder d =
      read_decoder(config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias|bias", false);
  const Mixture m = read_megrez_mixture(config, tree, d.hidden);
  const std::uint64_t dense = config.number("first_k_dense_replace", 0),
                      together = config.size("experts_shared_frequency").value();

  // How many layers send tokens to the experts of this one; 0: it has none of its own.
  const auto visits = [&](std::uint64_t i) {
    return (i - dense) % together == 0 ? std::min(together, d.layers.value() - i) : 0;
  };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) -> std::string {
        if (i < dense) return "dense layers";
        if (visits(i) == 0) return "MoE layers that visit an earlier layer's experts";
        return fmt::format("MoE layers whose experts {} visit",
                           visits(i) == 1 ? "they" : fmt::format("{} layers", visits(i)));
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(a)};
        if (i < dense) {
          layer.children.push_back(gated_mlp(d.mlp()));
          return;
        }
        // A token may visit other experts in each of the layers; what they have in common no count can know.
        Mixture own = m;
        own.experts.active = std::min(m.experts.count.value(), m.experts.active * visits(i));
        layer.children.push_back(mixture(own));
        if (visits(i) == 0) layer.children.back().children.pop_back();  // the routed experts
      });
  add_frame(tree, d, groups);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kMegrezArchitectures[] = {"MegrezMoeForCausalLM"}, kMegrezTypes[] = {"megrez_moe"};

}  // namespace

const Family kMegrezMoe = {"megrez_moe", "Megrez 2", kMegrezArchitectures, kMegrezTypes, {}, describe_megrez};

}  // namespace assay::families
