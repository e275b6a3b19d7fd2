// Mixtures of 2026 told by what differs from a Llama with experts: Kolibri, Flint, Granite with experts and windows.
#include "core/model/families/all_2026.h"
#include "core/model/families/forward_2026.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sparse_layers.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_kolibri1(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 128000,
                            .hidden = 2560,
                            .intermediate = 0,
                            .layers = 50,
                            .heads = 48,
                            .kv_heads = 4,
                            .head_dim = 128},
                  .bias_keys = "",
                  .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                                       .count = 384,
                                       .active_keys = "num_experts_per_tok",
                                       .active = 6,
                                       .width_keys = "moe_intermediate_size",
                                       .width = 512,
                                       .shared_width_keys = "shared_expert_intermediate_size",
                                       .shared_width = 512},
                  .after_attention = "post_attn_norm",
                  .after_mlp = "post_ffn_norm",
                  .windows = true,
                  .window = 513,
                  .windowed = [](std::uint64_t i) { return (i + 1) % 5 != 0; }};
  kin.heads.qk_norm = QkNorm::per_head;
  describe_kin(config, tree, kin);
  // Its bias for choosing experts is stored apart from the experts.
  for (Module& layer : tree.modules) {
    if (layer.repeat.over != Repeat::Over::layers) continue;
    Module bias{"moe.router", "bias for choosing experts", {}, {}, {}};
    bias.tensors.push_back(parameter("expert_bias", {Quantity("num_experts", tree.experts)},
                                     Role::router_correction, Part::router));
    bias.tensors.back().bias = true;
    layer.children.push_back(std::move(bias));
  }
}

void describe_flint(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 150144,
                            .hidden = 2048,
                            .intermediate = 6144,
                            .layers = 49,
                            .heads = 32,
                            .kv_heads = 4,
                            .head_dim = 128},
                  .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                                       .count = 256,
                                       .active_keys = "num_experts_per_tok",
                                       .active = 6,
                                       .width_keys = "moe_intermediate_size",
                                       .width = 512,
                                       .shared_width_keys = "shared_expert_intermediate_size",
                                       .shared_width = 1024},
                  .windows = true,
                  .window = 513};
  kin.heads.qk_norm = QkNorm::per_head;
  kin.heads.sinks = true;
  kin.heads.sinks_name = "softmax_offset";
  kin.experts->names.shared_path = "shared_expert";
  const Decoder d = read_decoder(config, tree, kin.sizes);
  kin.windowed = [last = d.layers.value() - 1](std::uint64_t i) { return i > 1 && i % 4 != 1 && i != last; };
  describe_kin(config, tree, kin, d, qwen_sparse_layers(config, {0, 1}));
}

// The shared MLP, where there is one, with gate and up in one matrix.
void describe_granitemoe_swa(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
      .experts = ExpertKin{.count_keys = "num_local_experts|num_experts",
                           .count = 8,
                           .active_keys = "num_experts_per_tok",
                           .active = 2,
                           .width_keys = "intermediate_size",
                           .width = 11008},
      .windows = true,
      .window = 128,
      .windowed = [](std::uint64_t i) { return i % 4 != 0; }};
  kin.heads.sinks = true;
  Mixture& names = kin.experts->names;
  names.path = "block_sparse_moe";
  names.router = "router";
  names.stacks = Mixture::Stacks::output_major;
  describe_kin(config, tree, kin);
  const std::uint64_t shared = config.number("shared_intermediate_size", 0);
  if (shared == 0) return;
  const Quantity hidden("hidden_size", tree.hidden_size);
  GatedMlp mlp{hidden, Quantity("shared_intermediate_size", shared), "shared_mlp", Part::shared_expert};
  mlp.fused = "input_linear", mlp.down = "output_linear";
  for (Module& layer : tree.modules) {
    if (layer.repeat.over == Repeat::Over::layers) layer.children.push_back(gated_mlp(mlp));
  }
}

constexpr std::string_view kKolibriArchitectures[] = {"Kolibri1ForCausalLM"}, kKolibriTypes[] = {"kolibri1"};
constexpr std::string_view kFlintArchitectures[] = {"FlintForCausalLM"}, kFlintTypes[] = {"flint"};
constexpr std::string_view kGraniteMoeSwaArchitectures[] = {"GraniteMoeSWAForCausalLM"},
                           kGraniteMoeSwaTypes[] = {"granitemoe_swa"};

}  // namespace

const Family kKolibri1 = {"kolibri1", "Kolibri 1",       kKolibriArchitectures, kKolibriTypes,
                          {},         describe_kolibri1, forward_kolibri1};
const Family kFlint = {"flint", "Flint", kFlintArchitectures, kFlintTypes, {}, describe_flint, forward_flint};
const Family kGraniteMoeSwa = {"granitemoe_swa",
                               "Granite with experts and windows",
                               kGraniteMoeSwaArchitectures,
                               kGraniteMoeSwaTypes,
                               {},
                               describe_granitemoe_swa,
                               forward_granitemoe_swa};

}  // namespace assay::families
