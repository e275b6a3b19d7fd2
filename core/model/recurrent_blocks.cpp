#include "core/model/recurrent_blocks.h"

namespace assay::blocks {
namespace {

// A vector with one value, or one run of values, a head.
void add_by_head(Module& module, const std::string& name, const std::vector<Quantity>& shape, Role role,
                 const Quantity& heads) {
  TensorSpec spec = parameter(name, shape, role, Part::attention);
  const std::uint64_t size = spec.elements.value();
  if (shape.size() == 1 && size % heads.value() == 0)
    spec.parallel = {Partition::columns, 0, {{role, size, heads.value()}}};
  module.tensors.push_back(std::move(spec));
}

struct Into {
  std::string name;
  Quantity out;
  Role role;
  std::uint64_t units;
  std::vector<PartitionedPart> members = {};
  bool interleaved = false, quantizable = true, bias = false;
};
void add_into(Module& module, const Quantity& hidden, Into into) {
  add_linear(module, {.name = std::move(into.name),
                      .in = hidden,
                      .out = into.out,
                      .role = into.role,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = into.units,
                      .members = std::move(into.members),
                      .bias = into.bias,
                      .quantizable = into.quantizable,
                      .interleaved = into.interleaved});
}

void add_out(Module& module, const std::string& name, const Quantity& in, const Quantity& hidden,
             const Quantity& heads, bool bias = false) {
  add_linear(module, {.name = name,
                      .in = in,
                      .out = hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = heads.value(),
                      .bias = bias});
}

// One filter a channel: [channels, 1, kernel]. Channels lie as what passes through them, `members`, and are cut as that
// is: in vLLM conv1d is a ColumnParallelLinear, with the loader of in_proj's parts.
void add_convolution(Module& module, const std::string& name, const std::vector<PartitionedPart>& members,
                     const Quantity& channels, const Quantity& kernel, bool bias = false) {
  TensorSpec weight = parameter(name + ".weight", {channels, 1, kernel}, Role::convolution, Part::attention);
  weight.parallel = {Partition::columns, 0, members};
  module.tensors.push_back(std::move(weight));
  if (!bias) return;
  module.tensors.push_back(parameter(name + ".bias", {channels}, Role::convolution, Part::attention));
  module.tensors.back().bias = true;
  module.tensors.back().parallel = {Partition::columns, 0, members};
}

std::uint64_t conv_values(const Quantity& channels, const Quantity& kernel) {
  return (channels * Quantity(kernel.value() - 1)).value();
}

}  // namespace

Module gated_delta_net(const GatedDeltaNet& n) {
  Module module{"linear_attn", "linear attention (Gated DeltaNet)", {}, {}, {}};
  const Quantity keys = n.key_heads * n.key_dim, values = n.value_heads * n.value_dim;
  const std::uint64_t k = keys.value(), v = values.value(), kh = n.key_heads.value(),
                      vh = n.value_heads.value();
  const PartitionedPart q_part = {Role::q, k, kh}, k_part = {Role::k, k, kh}, v_part = {Role::v, v, vh};
  if (n.fused) {
    add_into(module, n.hidden,
             {.name = "in_proj_qkvz",
              .out = Quantity(2) * keys + Quantity(2) * values,
              .role = Role::recurrent_in,
              .units = 0,
              .members = {q_part, k_part, v_part, {Role::recurrent_gate, v, vh}},
              .interleaved = true});
    add_into(module, n.hidden,
             {.name = "in_proj_ba",
              .out = Quantity(2) * n.value_heads,
              .role = Role::recurrent_beta,
              .units = 0,
              .members = {{Role::recurrent_beta, vh, vh}, {Role::recurrent_decay, vh, vh}},
              .interleaved = true,
              .quantizable = false});
  } else {
    add_into(module, n.hidden,
             {.name = "in_proj_qkv",
              .out = Quantity(2) * keys + values,
              .role = Role::recurrent_in,
              .units = 0,
              .members = {q_part, k_part, v_part}});
    add_into(module, n.hidden,
             {.name = "in_proj_z", .out = values, .role = Role::recurrent_gate, .units = vh});
    add_into(module, n.hidden,
             {.name = "in_proj_b",
              .out = n.value_heads,
              .role = Role::recurrent_beta,
              .units = vh,
              .quantizable = false});
    add_into(module, n.hidden,
             {.name = "in_proj_a",
              .out = n.value_heads,
              .role = Role::recurrent_decay,
              .units = vh,
              .quantizable = false});
  }
  add_convolution(module, "conv1d", {q_part, k_part, v_part}, Quantity(2) * keys + values, n.kernel);
  add_by_head(module, "A_log", {n.value_heads}, Role::decay, n.value_heads);
  add_by_head(module, "dt_bias", {n.value_heads}, Role::time_bias, n.value_heads);
  add_norm(module, "norm", n.value_dim, Role::recurrent_norm, false, Part::attention);
  add_out(module, "out_proj", values, n.hidden, n.value_heads);
  return module;
}

RecurrentGeometry geometry(const GatedDeltaNet& n, std::vector<std::uint64_t> layers) {
  const Quantity values = n.value_heads * n.value_dim;
  return {.title = "Gated DeltaNet",
          .layers = std::move(layers),
          .heads = n.key_heads.value(),
          .conv_values = conv_values(Quantity(2) * n.key_heads * n.key_dim + values, n.kernel),
          .state_values = (values * n.key_dim).value()};
}

Module kimi_delta_attention(const KimiDeltaAttention& k) {
  Module module{"self_attn", "linear attention (KDA)", {}, {}, {}};
  const Quantity width = k.heads * k.head_dim;
  const std::uint64_t heads = k.heads.value();
  for (const auto& [letter, role] : {std::pair{"q", Role::q}, {"k", Role::k}, {"v", Role::v}}) {
    add_into(module, k.hidden,
             {.name = std::string(letter) + "_proj", .out = width, .role = role, .units = heads});
    add_convolution(module, std::string(letter) + "_conv1d", {{role, width.value(), heads}}, width, k.kernel);
  }
  const auto low_rank = [&](const std::string& a, const std::string& b, Role role) {
    add_linear(module, {.name = a, .in = k.hidden, .out = k.head_dim, .role = role, .part = Part::attention});
    add_linear(module, {.name = b,
                        .in = k.head_dim,
                        .out = width,
                        .role = role,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = heads});
  };
  if (k.full_rank_decay)
    add_into(module, k.hidden,
             {.name = "f_proj", .out = width, .role = Role::recurrent_decay, .units = heads});
  else
    low_rank("f_a_proj", "f_b_proj", Role::recurrent_decay);
  add_into(
      module, k.hidden,
      {.name = "b_proj", .out = k.heads, .role = Role::recurrent_beta, .units = heads, .quantizable = false});
  if (k.full_rank_gate)
    add_into(module, k.hidden,
             {.name = "g_proj", .out = width, .role = Role::recurrent_gate, .units = heads});
  else
    low_rank("g_a_proj", "g_b_proj", Role::recurrent_gate);
  add_by_head(module, "A_log", k.decay_shape, Role::decay, k.heads);
  add_by_head(module, "dt_bias", {width}, Role::time_bias, k.heads);
  add_norm(module, "o_norm", k.head_dim, Role::recurrent_norm, false, Part::attention);
  add_out(module, "o_proj", width, k.hidden, k.heads);
  return module;
}

RecurrentGeometry geometry(const KimiDeltaAttention& k, std::vector<std::uint64_t> layers) {
  const Quantity width = k.heads * k.head_dim;
  return {.title = "KDA",
          .layers = std::move(layers),
          .heads = k.heads.value(),
          .conv_values = conv_values(Quantity(3) * width, k.kernel),
          .state_values = (width * k.head_dim).value()};
}

Module mamba2(const Mamba2& m) {
  Module module{m.path, "state space (" + m.title + ")", {}, {}, {}};
  const Quantity inner = m.heads * m.head_dim, channels = inner + Quantity(2) * m.groups * m.state;
  const std::uint64_t i = inner.value(), gs = (m.groups * m.state).value(), h = m.heads.value(),
                      g = m.groups.value();
  add_into(module, m.hidden,
           {.name = "in_proj",
            .out = inner + channels + m.heads,
            .role = Role::recurrent_in,
            .units = 0,
            .members = {{Role::recurrent_gate, i, h},
                        {Role::v, i, h},
                        {Role::k, gs, g},
                        {Role::q, gs, g},
                        {Role::time_bias, h, h}},
            .bias = m.bias});
  add_convolution(module, "conv1d", {{Role::v, i, h}, {Role::k, gs, g}, {Role::q, gs, g}}, channels, m.kernel,
                  m.conv_bias);
  add_by_head(module, "A_log", {m.heads}, Role::decay, m.heads);
  add_by_head(module, "D", {m.heads}, Role::skip, m.heads);
  add_by_head(module, "dt_bias", {m.heads}, Role::time_bias, m.heads);
  if (m.norm) add_norm(module, "norm", inner, Role::recurrent_norm, false, Part::attention);
  add_out(module, "out_proj", inner, m.hidden, m.heads, m.output_bias.value_or(m.bias));
  return module;
}

RecurrentGeometry geometry(const Mamba2& m, std::vector<std::uint64_t> layers) {
  const Quantity inner = m.heads * m.head_dim;
  return {.title = m.title,
          .layers = std::move(layers),
          .heads = m.heads.value(),
          .conv_values = conv_values(inner + Quantity(2) * m.groups * m.state, m.kernel),
          .state_values = (inner * m.state).value()};
}

Module mamba1(const Mamba1& m) {
  Module module{m.path, "state space (Mamba)", {}, {}, {}};
  const std::uint64_t inner = m.inner.value();
  add_into(module, m.hidden,
           {.name = "in_proj",
            .out = Quantity(2) * m.inner,
            .role = Role::recurrent_in,
            .units = 0,
            .members = {{Role::v, inner, inner}, {Role::recurrent_gate, inner, inner}},
            .bias = m.bias});
  add_convolution(module, "conv1d", {{Role::v, inner, inner}}, m.inner, m.kernel, m.conv_bias);
  add_linear(module, {.name = "x_proj",
                      .in = m.inner,
                      .out = m.rank + Quantity(2) * m.state,
                      .role = Role::recurrent_beta,
                      .part = Part::attention,
                      .partition = Partition::rows});
  add_linear(module, {.name = "dt_proj",
                      .in = m.rank,
                      .out = m.inner,
                      .role = Role::recurrent_decay,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .bias = true});
  TensorSpec decay = parameter("A_log", {m.inner, m.state}, Role::decay, Part::attention);
  decay.parallel = {Partition::columns, 0, {{Role::decay, inner, inner}}};
  module.tensors.push_back(std::move(decay));
  add_by_head(module, "D", {m.inner}, Role::skip, m.inner);
  if (m.norms) {
    add_norm(module, "dt_layernorm", m.rank, Role::recurrent_norm, false, Part::attention);
    add_norm(module, "b_layernorm", m.state, Role::recurrent_norm, false, Part::attention);
    add_norm(module, "c_layernorm", m.state, Role::recurrent_norm, false, Part::attention);
  }
  add_out(module, "out_proj", m.inner, m.hidden, m.inner, m.bias);
  return module;
}

RecurrentGeometry geometry(const Mamba1& m, std::vector<std::uint64_t> layers) {
  return {.title = "Mamba",
          .layers = std::move(layers),
          .heads = m.inner.value(),
          .conv_values = conv_values(m.inner, m.kernel),
          .state_values = (m.inner * m.state).value()};
}

Module short_convolution(const ShortConvolution& s) {
  Module module{"conv", "short convolution", {}, {}, {}};
  const std::uint64_t h = s.hidden.value();  // B, C and x, each cut by itself
  add_into(module, s.hidden,
           {.name = "in_proj",
            .out = Quantity(3) * s.hidden,
            .role = Role::recurrent_in,
            .units = 0,
            .members = {{Role::recurrent_in, h, h}, {Role::recurrent_in, h, h}, {Role::recurrent_in, h, h}},
            .bias = s.bias});
  add_convolution(module, "conv", {{Role::convolution, h, h}}, s.hidden, s.kernel, s.bias);
  add_out(module, "out_proj", s.hidden, s.hidden, s.hidden, s.bias);
  return module;
}

RecurrentGeometry geometry(const ShortConvolution& s, std::vector<std::uint64_t> layers) {
  return {.title = "short convolution",
          .layers = std::move(layers),
          .heads = s.hidden.value(),
          .conv_values = conv_values(s.hidden, s.kernel),
          .state_values = 0};
}

}  // namespace assay::blocks
