// K2 Horizon: dense, or with experts in most layers, whose attention then has experts of values, too (MoVA). Sources: vLLM
// 0.32's k2_horizon.py, and the defaults of the checkpoints' configuration_k2_horizon.py.
#include "core/model/blocks.h"
#include "core/model/families/all_mixtures.h"
#include "core/model/families/own_code_forward.h"
#include "core/model/families/sparse_layers.h"

namespace assay::families {
namespace {

using namespace blocks;

// v is the sum of what some of these make of a token, each under a gate.
void add_value_experts(Module& attend, const HeadAttention& a, const Experts& values, bool router_bias) {
  Module router{"", "router of values", {}, {}, {}};
  add_router(router, "v_router", a.hidden, values.count, router_bias);
  for (TensorSpec& spec : router.tensors) spec.part = Part::attention;  // beside the one of the MLP's experts
  Module experts{"v_experts.{expert}", "experts of values", {}, {}, {}};
  std::vector<std::uint64_t> indices(values.count.value());
  for (std::uint64_t i = 0; i < indices.size(); ++i) indices[i] = i;
  experts.repeat = {Repeat::Over::experts, std::move(indices), values.count, values.active};
  add_linear(experts, {.name = "",
                       .in = a.hidden,
                       .out = a.kv_heads * a.head_dim,
                       .role = Role::v,
                       .part = Part::attention,
                       .partition = Partition::columns,
                       .units = a.kv_heads.value()});
  experts.tensors.back().name = "weight";
  attend.children.push_back(std::move(router));
  attend.children.push_back(std::move(experts));
}

Experts read_value_experts(ConfigReader& config) {
  const std::uint64_t count = config.number("mova_num_experts", 0);
  const std::uint64_t active = config.number("mova_num_experts_per_tok", 0);
  config.require(active <= count && (count == 0 || active > 0),
                 "mova_num_experts_per_tok does not fit mova_num_experts");
  return {Quantity("mova_num_experts", count), active};
}

HeadAttention read_heads(ConfigReader& config, const Decoder& d) {
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  if (config.flag("query_key_norm", true)) a.qk_norm = QkNorm::full_width;
  if (!config.text("attention_gate_func", "").empty()) a.gate = "gate_proj", a.wide_gate = true;
  return a;
}

void describe_k2_horizon(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151936,
                                  .hidden = 2048,
                                  .intermediate = 6144,
                                  .layers = 24,
                                  .heads = 32,
                                  .kv_heads = 4,
                                  .head_dim = 128});
  const HeadAttention a = read_heads(config, d);
  Mixture m{d.hidden, {}, {}};
  const bool any = config.number("num_experts", 128) > 0;
  const bool router_bias = any && config.flag("moe_gate_bias", false);
  Experts values{Quantity(0)};
  if (any) {
    m.experts = read_experts(config, tree, "num_experts", 128, "num_experts_per_tok", 8);
    m.expert_width = config.size("moe_intermediate_size", 768);
    if (const std::uint64_t shared = config.number("num_shared_experts", 0); shared > 0)
      m.shared_width = Quantity("num_shared_experts", shared) * m.expert_width;
    if (router_bias) m.correction = "gate.bias";
    values = read_value_experts(config);
  }
  const auto has_experts = [any, sparse = qwen_sparse_layers(config)](std::uint64_t i) {
    return any && sparse(i);
  };
  HeadAttention without_values = a;
  without_values.has_v = false;
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return has_experts(i) ? "MoE layers"
                                    : any          ? "dense layers"
                                                   : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        const bool experts = has_experts(i), mova = experts && values.count.value() > 0;
        layer.children = {attention(mova ? without_values : a), experts ? mixture(m) : gated_mlp(d.mlp())};
        if (mova) add_value_experts(layer.children[0], a, values, router_bias);
      });
  add_frame(tree, d, groups);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kK2HorizonArchitectures[] = {"K2HorizonForCausalLM"},
                           kK2HorizonTypes[] = {"k2_horizon"};

}  // namespace

const Family kK2Horizon = {"k2_horizon", "K2 Horizon",        kK2HorizonArchitectures, kK2HorizonTypes,
                           {},           describe_k2_horizon, forward_k2_horizon};

}  // namespace assay::families
