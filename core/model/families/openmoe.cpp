// OpenMoE: a Llama in which every so many layers has experts and an MLP beside them. SwiGLU there halves what the gate makes, so
// that gates are twice as wide as what they meet. Source: modeling_openmoe.py of ColossalAI, that published the weights.
#include "core/model/blocks.h"
#include "core/model/families/all_more.h"

namespace assay::families {
namespace {

using namespace blocks;

// Gate (two halves, one of which scales the other), up, down.
Module wide_gated_mlp(const Decoder& d, std::string path) {
  Module module{std::move(path), std::string(title(Part::dense_mlp)), {}, {}, {}};
  const auto add = [&](std::string name, const Quantity& in, const Quantity& out, Role role,
                       Partition partition) {
    add_linear(module, {.name = std::move(name),
                        .in = in,
                        .out = out,
                        .role = role,
                        .part = Part::dense_mlp,
                        .partition = partition});
  };
  const Quantity& wide = d.intermediate;
  add("gate_proj", d.hidden, Quantity(2) * wide, Role::mlp_gate, Partition::columns);
  add("up_proj", d.hidden, wide, Role::mlp_up, Partition::columns);
  add("down_proj", wide, d.hidden, Role::mlp_down, Partition::rows);
  return module;
}

Module wide_gated_experts(const Decoder& d, const Experts& experts) {
  Module module{"experts", std::string(title(Part::routed_expert)), {}, {}, {}};
  const auto add = [&](std::string name, const Quantity& in, const Quantity& out, Role role) {
    TensorSpec spec = parameter(std::move(name), {experts.count, in, out}, role, Part::routed_expert);
    spec.quantizable = spec.input_major = true;
    spec.stacked = experts.count.value(), spec.stacked_active = experts.active;
    module.tensors.push_back(std::move(spec));
  };
  const Quantity& wide = d.intermediate;
  add("wi_gate", d.hidden, Quantity(2) * wide, Role::mlp_gate);
  add("wi_up", d.hidden, wide, Role::mlp_up);
  add("wo", wide, d.hidden, Role::mlp_down);
  return module;
}

void describe_openmoe(ConfigReader& config, ModuleTree& tree) {
  config.require(config.text("hidden_act", "silu") == "swiglu" && config.flag("mlp_gated|gated", true),
                 "hidden_act is not swiglu, or mlp_gated is false: no published OpenMoE is so");
  config.size("num_experts");  // required: the class that it extends has none
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  const Experts experts = read_experts(config, tree, "num_experts", 1, "router_topk|topk", 2);
  const std::uint64_t every = config.size("moe_layer_interval").value();
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return (i + 1) % every == 0 ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(d.attention())};
        if ((i + 1) % every != 0) return layer.children.push_back(wide_gated_mlp(d, "mlp"));
        add_norm(layer, "pre_extra_mlp_layernorm", d.hidden, Role::pre_feedforward_norm);
        Module moe{"mlp", "mixture of experts", {}, {}, {}};
        TensorSpec scores = parameter("gate_weight", {experts.count, d.hidden}, Role::router, Part::router);
        moe.tensors.push_back(std::move(scores));
        moe.children = {wide_gated_experts(d, experts)};
        layer.children.push_back(std::move(moe));
        layer.children.push_back(wide_gated_mlp(d, "extra_mlp"));
      });
  add_frame(tree, d, groups);
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
}

constexpr std::string_view kOpenmoeArchitectures[] = {"OpenMoeForCausalLM"};

}  // namespace

const Family kOpenmoe = {"openmoe", "OpenMoE", kOpenmoeArchitectures, {}, {}, describe_openmoe};

}  // namespace assay::families
