#include "core/model/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace assay::blocks {
namespace {

// The cut of a fused matrix's rows: each member is dealt out by itself.
std::vector<PartitionedPart> qkv_members(const HeadAttention& a) {
  const std::uint64_t q = (a.heads * a.head_dim).value(), kv = (a.kv_heads * a.head_dim).value();
  return {
      {Role::q, q, a.heads.value()}, {Role::k, kv, a.kv_heads.value()}, {Role::v, kv, a.kv_heads.value()}};
}

void add_qk_norms(Module& module, const HeadAttention& a) {
  if (a.qk_norm == QkNorm::none) return;
  const bool full = a.qk_norm == QkNorm::full_width;
  add_norm(module, a.q_norm, full ? a.heads * a.head_dim : a.head_dim, Role::q_norm, false, Part::attention);
  if (a.has_k)
    add_norm(module, a.k_norm, full ? a.kv_heads * a.head_dim : a.head_dim, Role::k_norm, false,
             Part::attention);
}

}  // namespace

void add_linear(Module& module, const Linear& l) {
  TensorSpec weight;
  weight.name = l.name + ".weight";
  weight.elements = l.in * l.out;
  weight.shape = {l.out.value(), l.in.value()};
  if (l.input_major) std::swap(weight.shape[0], weight.shape[1]);
  weight.role = l.role;
  weight.part = l.part;
  weight.quantizable = l.quantizable;
  weight.input_major = l.input_major;
  weight.parallel.partition = l.partition;
  if (l.partition != Partition::replicated) {
    const std::uint64_t size = l.partition == Partition::rows ? l.in.value() : l.out.value();
    weight.parallel.dimension = (l.partition == Partition::rows) != l.input_major ? 1 : 0;
    weight.parallel.members = l.members;
    weight.parallel.interleaved = l.interleaved;
    if (l.members.empty()) weight.parallel.members = {{l.role, size, l.units == 0 ? size : l.units}};
  }
  if (l.bias) {
    TensorSpec bias = parameter(l.name + ".bias", {l.out}, l.role, l.part);
    bias.bias = true;
    // Of a row-cut matrix every rank holds the whole sum's bias, and one of them adds it.
    if (l.partition == Partition::columns || l.partition == Partition::vocabulary) {
      bias.parallel = weight.parallel;
      bias.parallel.dimension = 0;
    }
    module.tensors.push_back(std::move(weight));
    module.tensors.push_back(std::move(bias));
  } else {
    module.tensors.push_back(std::move(weight));
  }
}

void add_norm(Module& module, const std::string& name, const Quantity& width, Role role, bool bias,
              Part part) {
  module.tensors.push_back(parameter(name.empty() ? "weight" : name + ".weight", {width}, role, part));
  if (!bias) return;
  module.tensors.push_back(parameter(name.empty() ? "bias" : name + ".bias", {width}, role, part));
  module.tensors.back().bias = true;
}

TensorSpec parameter(std::string name, const std::vector<Quantity>& shape, Role role, Part part) {
  TensorSpec spec;
  spec.name = std::move(name);
  spec.role = role;
  spec.part = part;
  spec.elements = 1;
  for (const Quantity& dimension : shape) {
    spec.shape.push_back(dimension.value());
    spec.elements = spec.elements * dimension;
  }
  return spec;
}

void add_buffer(Module& module, std::string name, std::vector<std::uint64_t> shape) {
  const std::vector<Quantity> quantities(shape.begin(), shape.end());
  TensorSpec spec = parameter(std::move(name), quantities, Role::buffer, Part::buffer);
  spec.storage = Storage::buffer;
  module.tensors.push_back(std::move(spec));
}

Module attention(const HeadAttention& a) {
  Module module{a.path, "attention", {}, {}, {}};
  const Quantity q_width = a.heads * a.head_dim, kv_width = a.kv_heads * a.head_dim;
  const Quantity v_dim = a.v_head_dim.value_or(a.head_dim);
  const auto project = [&](const std::string& name, const Quantity& out, Role role, std::uint64_t units,
                           std::vector<PartitionedPart> members) {
    add_linear(module, {.name = name,
                        .in = a.hidden,
                        .out = out,
                        .role = role,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = units,
                        .members = std::move(members),
                        .bias = a.qkv_bias,
                        .input_major = a.input_major,
                        .interleaved = a.interleaved});
  };
  if (!a.fused.empty()) {
    const bool same = a.heads.value() == a.kv_heads.value();
    const Quantity width = same ? Quantity(3) * q_width : (a.heads + Quantity(2) * a.kv_heads) * a.head_dim;
    project(a.fused, width, Role::qkv, 0, qkv_members(a));
  } else {
    project(a.q, a.gated_q ? Quantity(2) * q_width : q_width, Role::q, a.heads.value(), {});
    if (a.has_k) project(a.k, kv_width, Role::k, a.kv_heads.value(), {});
    if (a.has_v) project(a.v, a.kv_heads * v_dim, Role::v, a.kv_heads.value(), {});
  }
  if (!a.gate.empty()) {
    add_linear(module, {.name = a.gate,
                        .in = a.hidden,
                        .out = a.wide_gate ? a.heads * v_dim : a.heads,
                        .role = Role::attention_gate,
                        .part = Part::attention,
                        .partition = Partition::columns,
                        .units = a.heads.value(),
                        .bias = a.qkv_bias && !a.wide_gate});
  }
  add_linear(module, {.name = a.o,
                      .in = a.heads * v_dim,
                      .out = a.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = a.heads.value(),
                      .bias = a.output_bias,
                      .input_major = a.input_major});
  add_qk_norms(module, a);
  if (a.sinks) {
    TensorSpec sinks = parameter(a.sinks_name, {a.heads}, Role::sinks, Part::attention);
    sinks.parallel = {Partition::columns, 0, {{Role::sinks, a.heads.value(), a.heads.value()}}};
    module.tensors.push_back(std::move(sinks));
  }
  return module;
}

AttentionGeometry geometry(const HeadAttention& a, std::vector<std::uint64_t> layers, std::uint64_t window) {
  AttentionGeometry g;
  g.layers = std::move(layers);
  g.heads = a.heads.value();
  g.kv_heads = a.kv_heads.value();
  g.qk_head_dim = a.head_dim.value();
  g.v_head_dim = a.v_head_dim.value_or(a.head_dim).value();
  g.window = window;
  return g;
}

Module attention(const LatentAttention& a) {
  const Quantity qk_dim = a.nope_dim + a.rope_dim;
  Module q{"", "queries", {}, {}, {}};
  if (a.q_rank) {
    add_linear(q, {.name = "q_a_proj",
                   .in = a.hidden,
                   .out = *a.q_rank,
                   .role = Role::q_a,
                   .part = Part::attention,
                   .bias = a.bias});
    add_norm(q, "q_a_layernorm", *a.q_rank, Role::q_a_norm, false, Part::attention);
  }
  add_linear(q, {.name = a.q_rank ? "q_b_proj" : "q_proj",
                 .in = a.q_rank.value_or(a.hidden),
                 .out = a.heads * qk_dim,
                 .role = a.q_rank ? Role::q_b : Role::q,
                 .part = Part::attention,
                 .partition = Partition::columns,
                 .units = a.heads.value()});
  Module kv{"", "keys and values", {}, {}, {}};
  add_linear(kv, {.name = "kv_a_proj_with_mqa",
                  .in = a.hidden,
                  .out = a.kv_rank + a.rope_dim,
                  .role = Role::kv_a,
                  .part = Part::attention,
                  .bias = a.bias});
  add_norm(kv, "kv_a_layernorm", a.kv_rank, Role::kv_a_norm, false, Part::attention);
  add_linear(kv, {.name = "kv_b_proj",
                  .in = a.kv_rank,
                  .out = a.heads * (a.nope_dim + a.v_dim),
                  .role = Role::kv_b,
                  .part = Part::attention,
                  .partition = Partition::columns,
                  .units = a.heads.value()});
  Module o{"", "output projection", {}, {}, {}};
  if (!a.gate.empty())
    add_linear(o, {.name = a.gate,
                   .in = a.hidden,
                   .out = a.heads * a.v_dim,
                   .role = Role::attention_gate,
                   .part = Part::attention,
                   .partition = Partition::columns,
                   .units = a.heads.value()});
  add_linear(o, {.name = "o_proj",
                 .in = a.heads * a.v_dim,
                 .out = a.hidden,
                 .role = Role::attention_output,
                 .part = Part::attention,
                 .partition = Partition::rows,
                 .units = a.heads.value(),
                 .bias = a.bias});
  Module module{"self_attn", "attention (MLA)", {}, {}, {}};
  module.children = {std::move(q), std::move(kv), std::move(o)};
  return module;
}

AttentionGeometry geometry(const LatentAttention& a, std::vector<std::uint64_t> layers) {
  AttentionGeometry g;
  g.kind = AttentionGeometry::Kind::latent;
  g.layers = std::move(layers);
  g.heads = g.kv_heads = a.heads.value();
  g.qk_head_dim = (a.nope_dim + a.rope_dim).value();
  g.v_head_dim = a.v_dim.value();
  g.rope_head_dim = a.rope_dim.value();
  g.q_lora_rank = a.q_rank ? a.q_rank->value() : 0;
  g.kv_lora_rank = a.kv_rank.value();
  return g;
}

Module gated_mlp(const GatedMlp& m) {
  Module module{m.path, std::string(title(m.part)), {}, {}, {}};
  const std::uint64_t width = m.intermediate.value();
  const auto into = [&](const std::string& name, const Quantity& out, Role role,
                        std::vector<PartitionedPart> members) {
    add_linear(module, {.name = name,
                        .in = m.hidden,
                        .out = out,
                        .role = role,
                        .part = m.part,
                        .partition = Partition::columns,
                        .members = std::move(members),
                        .bias = m.bias});
  };
  if (!m.fused.empty()) {
    into(m.fused, Quantity(2) * m.intermediate, Role::mlp_gate_up,
         {{Role::mlp_gate, width, width}, {Role::mlp_up, width, width}});
  } else {
    if (!m.gate.empty()) into(m.gate, m.intermediate, Role::mlp_gate, {});
    into(m.up, m.intermediate, Role::mlp_up, {});
  }
  add_linear(module, {.name = m.down,
                      .in = m.intermediate,
                      .out = m.hidden,
                      .role = Role::mlp_down,
                      .part = m.part,
                      .partition = Partition::rows,
                      .bias = m.bias});
  return module;
}

Module plain_mlp(const PlainMlp& m) {
  Module module{m.path, std::string(title(Part::dense_mlp)), {}, {}, {}};
  add_linear(module, {.name = m.up,
                      .in = m.hidden,
                      .out = m.intermediate,
                      .role = Role::mlp_up,
                      .part = Part::dense_mlp,
                      .partition = Partition::columns,
                      .bias = m.bias,
                      .input_major = m.input_major});
  add_linear(module, {.name = m.down,
                      .in = m.intermediate,
                      .out = m.hidden,
                      .role = Role::mlp_down,
                      .part = Part::dense_mlp,
                      .partition = Partition::rows,
                      .bias = m.bias,
                      .input_major = m.input_major});
  return module;
}

Module embedding(std::string path, const Quantity& vocabulary, const Quantity& hidden) {
  Module module{std::move(path), "embedding", {}, {}, {}};
  TensorSpec table = parameter("weight", {vocabulary, hidden}, Role::token_embedding, Part::embedding);
  table.parallel = {
      Partition::vocabulary, 0, {{Role::token_embedding, vocabulary.value(), vocabulary.value()}}};
  module.tensors.push_back(std::move(table));
  return module;
}

Module output_head(std::string path, const Quantity& vocabulary, const Quantity& hidden, bool tied,
                   const std::string& embedding_name, bool bias) {
  Module holder{"", "output head", {}, {}, {}};
  add_linear(holder, {.name = std::move(path),
                      .in = hidden,
                      .out = vocabulary,
                      .role = Role::output_head,
                      .part = Part::output,
                      .partition = Partition::vocabulary,
                      .bias = bias,
                      .quantizable = false});
  if (tied) {
    holder.tensors[0].storage = Storage::tied;
    holder.tensors[0].same_as = embedding_name;
  }
  return holder;
}

Module norm(std::string path, const Quantity& width, Role role, bool bias) {
  Module module{std::move(path), "norm", {}, {}, {}};
  if (role == Role::final_norm) module.title = "final norm";
  add_norm(module, "", width, role, bias);
  return module;
}

Frame frame_under(const std::string& prefix, std::string head) {
  return {.embedding = prefix + "embed_tokens", .final_norm = prefix + "norm", .head = std::move(head)};
}

void add_frame(ModuleTree& tree, const Decoder& d, std::vector<Module> layers, const Frame& frame) {
  tree.modules.push_back(embedding(frame.embedding, d.vocabulary, d.hidden));
  for (Module& group : layers) {
    if (!group.repeat.indices.empty()) tree.modules.push_back(std::move(group));
  }
  tree.modules.push_back(norm(frame.final_norm, d.hidden, Role::final_norm, frame.norm_bias));
  tree.modules.push_back(
      output_head(frame.head, d.vocabulary, d.hidden, d.tied, frame.embedding + ".weight", frame.head_bias));
}

Module mtp_own(const Quantity& hidden, const MtpOwn& names) {
  Module own{"", "projection and norms", {}, {}, {}};
  add_norm(own, names.embedding_norm, hidden, Role::mtp_embedding_norm, false, Part::mtp);
  add_norm(own, names.hidden_norm, hidden, Role::mtp_hidden_norm, false, Part::mtp);
  add_linear(own, {.name = names.projection,
                   .in = Quantity(2) * hidden,
                   .out = hidden,
                   .role = Role::mtp_projection,
                   .part = Part::mtp,
                   .quantizable = false});
  if (!names.final_norm.empty()) add_norm(own, names.final_norm, hidden, Role::final_norm, false, Part::mtp);
  return own;
}

TensorSpec stored_again(std::string name, const Decoder& d, Role role, Part part, std::string original) {
  TensorSpec spec = parameter(std::move(name), {d.vocabulary, d.hidden}, role, part);
  spec.storage = Storage::duplicate;
  spec.same_as = std::move(original);
  spec.parallel = {Partition::vocabulary, 0, {{role, d.vocabulary.value(), d.vocabulary.value()}}};
  return spec;
}

void add_mtp_layers(ModuleTree& tree, const Decoder& d, AttentionGeometry g, std::vector<Module> blocks) {
  if (g.layers.empty()) return;
  Module layer = layers("model.layers.{layer}", "multi-token prediction", g.layers);
  add_pre_norms(layer, d.hidden);
  layer.children = std::move(blocks);
  layer.children.push_back(mtp_own(d.hidden, {.final_norm = "final_layernorm"}));
  tree.mtp.push_back(std::move(layer));
  tree.mtp_attention.push_back(std::move(g));
}

void add_mtp_under_fc(ModuleTree& tree, const Decoder& d, AttentionGeometry g, std::uint64_t count,
                      std::vector<Module> blocks) {
  if (count == 0) return;
  Module layer = layers("layers.{layer}", "layers", all_layers(Quantity(count)));
  add_pre_norms(layer, d.hidden);
  layer.children = std::move(blocks);
  Module mtp{"mtp", "multi-token prediction", {}, {}, {}};
  mtp.children = {mtp_own(d.hidden, {"pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "norm"}),
                  std::move(layer)};
  tree.mtp.push_back(std::move(mtp));
  g.layers = layers_after(d.layers, count);
  tree.mtp_attention.push_back(std::move(g));
}

void add_mtp(ModuleTree& tree, const Decoder& d, Module layer, const std::string& embedding_name,
             const std::string& head_name) {
  Module own = mtp_own(d.hidden, {});
  own.tensors.push_back(
      stored_again("embed_tokens.weight", d, Role::token_embedding, Part::embedding, embedding_name));
  own.tensors.push_back(
      stored_again("shared_head.head.weight", d, Role::output_head, Part::output, head_name));
  layer.title = "multi-token prediction";
  layer.children.push_back(std::move(own));
  tree.mtp.push_back(std::move(layer));
}

void add_pre_norms(Module& layer, const Quantity& hidden, bool bias) {
  add_norm(layer, "input_layernorm", hidden, Role::input_norm, bias);
  add_norm(layer, "post_attention_layernorm", hidden, Role::pre_feedforward_norm, bias);
}

Module layers(std::string path, std::string title, std::vector<std::uint64_t> indices) {
  Module module{std::move(path), std::move(title), {}, {}, {}};
  const std::uint64_t count = indices.size();
  module.repeat = {Repeat::Over::layers, std::move(indices), Quantity("layers", count), count};
  return module;
}

std::vector<Module> group_layers(const std::string& path, const Quantity& count,
                                 const std::function<std::string(std::uint64_t)>& title_of,
                                 const std::function<void(Module&, std::uint64_t)>& fill) {
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> kinds;
  for (std::uint64_t layer = 0; layer < count.value(); ++layer) {
    std::string title = title_of(layer);
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == title; });
    if (kind == kinds.end())
      kind = kinds.emplace(kinds.end(), std::move(title), std::vector<std::uint64_t>{});
    kind->second.push_back(layer);
  }
  std::vector<Module> groups;
  for (auto& [title, indices] : kinds) {
    const std::uint64_t first = indices.front();
    groups.push_back(layers(path, title, std::move(indices)));
    fill(groups.back(), first);
  }
  return groups;
}

std::vector<std::uint64_t> all_layers(const Quantity& count) {
  std::vector<std::uint64_t> indices(count.value());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<std::uint64_t> layers_where(const Quantity& count,
                                        const std::function<bool(std::uint64_t)>& holds) {
  std::vector<std::uint64_t> indices;
  for (std::uint64_t i = 0; i < count.value(); ++i) {
    if (holds(i)) indices.push_back(i);
  }
  return indices;
}

}  // namespace assay::blocks
