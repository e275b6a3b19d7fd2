// Mixtures of experts (core/model/blocks.h): routers, experts one by one or in stacks, shared ones, latents around them.
#include <utility>

#include "core/model/blocks.h"

namespace assay::blocks {

Module routed_experts(const GatedMlp& one, const Quantity& count, std::uint64_t active, std::string path) {
  GatedMlp expert = one;
  expert.path = std::move(path);
  expert.part = Part::routed_expert;
  Module module = gated_mlp(expert);
  module.repeat = {Repeat::Over::experts, all_layers(count), count, active};
  return module;
}

void add_router(Module& module, const std::string& name, const Quantity& hidden, const Quantity& experts,
                bool bias) {
  add_linear(module, {.name = name,
                      .in = hidden,
                      .out = experts,
                      .role = Role::router,
                      .part = Part::router,
                      .bias = bias,
                      .quantizable = false});
}

Module stacked_experts(const StackedExperts& s) {
  Module module{s.path, std::string(title(Part::routed_expert)), {}, {}, {}};
  const std::uint64_t w = s.width.value();
  const auto add = [&](const std::string& name, const Quantity& out, const Quantity& in, Role role,
                       Partition partition, std::vector<PartitionedPart> members) {
    TensorSpec spec = s.input_major ? parameter(name, {s.experts.count, in, out}, role, Part::routed_expert)
                                    : parameter(name, {s.experts.count, out, in}, role, Part::routed_expert);
    spec.quantizable = true;
    spec.input_major = s.input_major, spec.either_way = s.either_way;
    spec.stacked = s.experts.count.value();
    spec.stacked_active = s.experts.active;
    const bool rows = partition == Partition::rows;
    spec.parallel = {partition, rows != s.input_major ? 2U : 1U, std::move(members)};
    module.tensors.push_back(std::move(spec));
  };
  const std::vector<PartitionedPart> gate = {{Role::mlp_gate, w, w}}, up = {{Role::mlp_up, w, w}};
  if (s.gate.empty()) {
    add(s.gate_up, Quantity(2) * s.width, s.hidden, Role::mlp_gate_up, Partition::columns, {gate[0], up[0]});
  } else {
    add(s.gate, s.width, s.hidden, Role::mlp_gate, Partition::columns, gate);
    add(s.up, s.width, s.hidden, Role::mlp_up, Partition::columns, up);
  }
  add(s.down, s.hidden, s.width, Role::mlp_down, Partition::rows, {{Role::mlp_down, w, w}});
  return module;
}

namespace {

Module shared_expert(const Mixture& m) {
  GatedMlp shared{m.hidden, *m.shared_width};
  shared.bias = m.shared_bias;
  shared.gate = m.gate, shared.up = m.up, shared.down = m.down;
  if (m.shared_names)
    shared.gate = (*m.shared_names)[0], shared.up = (*m.shared_names)[1], shared.down = (*m.shared_names)[2];
  shared.path = m.shared_path;
  shared.part = Part::shared_expert;
  return gated_mlp(shared);
}

Module shared_gate(const Mixture& m) {
  Module gate{"", "shared expert's gate", {}, {}, {}};
  add_linear(gate, {.name = m.shared_path + "_gate",
                    .in = m.hidden,
                    .out = 1,
                    .role = Role::shared_expert_gate,
                    .part = Part::shared_expert,
                    .quantizable = false});
  return gate;
}

// Every token passes these two, whichever experts it visits.
Module latent_projections(const Mixture& m) {
  Module module{"", "into the experts' space and back", {}, {}, {}};
  add_linear(module, {.name = m.latent_down,
                      .in = m.hidden,
                      .out = *m.latent,
                      .role = Role::latent_down,
                      .part = Part::shared_expert,
                      .bias = m.latent_bias});
  if (!m.latent_norm.empty())
    add_norm(module, m.latent_norm, *m.latent, Role::latent_norm, false, Part::shared_expert);
  add_linear(module, {.name = m.latent_up,
                      .in = *m.latent,
                      .out = m.hidden,
                      .role = Role::latent_up,
                      .part = Part::shared_expert,
                      .bias = m.latent_bias});
  return module;
}

}  // namespace

Module mixture(const Mixture& m) {
  Module module{m.path, "mixture of experts", {}, {}, {}};
  Module router{"", std::string(title(Part::router)), {}, {}, {}};
  add_router(router, m.router, m.hidden, m.experts.count);
  if (!m.correction.empty()) {
    const std::vector<Quantity> shape = m.correction_is_row ? std::vector<Quantity>{1, m.experts.count}
                                                            : std::vector<Quantity>{m.experts.count};
    router.tensors.push_back(parameter(m.correction, shape, Role::router_correction, Part::router));
    router.tensors.back().bias = true;
  }
  module.children.push_back(std::move(router));
  if (m.shared_width) module.children.push_back(shared_expert(m));
  if (m.shared_width && m.shared_gate) module.children.push_back(shared_gate(m));
  if (m.latent) module.children.push_back(latent_projections(m));
  const Quantity inside = m.latent.value_or(m.hidden);
  if (m.stacks != Mixture::Stacks::none) {
    const bool either_way = m.stacks == Mixture::Stacks::either_way;
    module.children.push_back(
        stacked_experts({.hidden = inside,
                         .width = m.expert_width,
                         .experts = m.experts,
                         .input_major = either_way || m.stacks == Mixture::Stacks::input_major,
                         .either_way = either_way,
                         .path = m.stacks_path,
                         .gate_up = m.stacked_gate_up,
                         .down = m.stacked_down}));
    return module;
  }
  GatedMlp expert{inside, m.expert_width};
  expert.gate = m.gate, expert.up = m.up, expert.down = m.down;
  module.children.push_back(routed_experts(expert, m.experts.count, m.experts.active));
  return module;
}

}  // namespace assay::blocks
