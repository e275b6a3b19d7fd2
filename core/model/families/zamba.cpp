// Zamba and Zamba2: a Mamba in every layer, and in some of them in front of it a transformer block that reads the hidden
// state beside the embedding. The blocks are the same weights in many layers: kept once, in the first layer that has
// them, and tied in the others.
#include <fmt/format.h>

#include "core/model/families/all_2026.h"
#include "core/model/families/forward_2026.h"
#include "core/model/families/own_layers_forward.h"
#include "core/model/recurrent_blocks.h"
#include "core/system/json.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Zamba {
  Decoder d;
  Quantity wide = 0;  // of what attention reads
  std::vector<std::uint64_t> hybrid, plain;
  Module mamba;
  std::string shared;  // path of the block
};

Decoder read_zamba_sizes(ConfigReader& config, ModuleTree& tree, std::uint64_t hidden, std::uint64_t layers,
                         std::uint64_t heads) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32000);
  d.hidden = config.size("hidden_size", hidden);
  d.layers = read_layers(config, "num_hidden_layers", layers);
  d.heads = config.size("num_attention_heads", heads);
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  return d;
}

Quantity wide_head(const Decoder& d) {
  return {"2 × hidden_size / num_attention_heads", 2 * d.hidden.value() / d.heads.value()};
}

void split_layers(ConfigReader& config, Zamba& z, const std::function<bool(std::uint64_t)>& otherwise) {
  const auto types = layer_texts(config, "layers_block_type|layer_types", z.d.layers);
  const auto is_hybrid = [&](std::uint64_t i) { return types ? (*types)[i] == "hybrid" : otherwise(i); };
  z.hybrid = layers_where(z.d.layers, is_hybrid);
  z.plain = layers_where(z.d.layers, [&](std::uint64_t i) { return !is_hybrid(i); });
}

HeadAttention zamba_attention(const Zamba& z) {
  return {z.wide, z.d.heads, z.d.kv_heads, z.d.head_dim};
}

// It reads twice the width that it writes.
Module wide_attention(const Zamba& z) {
  Module module = attention(zamba_attention(z));
  module.tensors.pop_back();
  add_linear(module, {.name = "o_proj",
                      .in = z.d.heads * z.d.head_dim,
                      .out = z.d.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = z.d.heads.value()});
  return module;
}

Module shared_block(const Zamba& z, const GatedMlp& mlp) {
  Module block{z.shared, "shared transformer block", {}, {}, {}};
  add_norm(block, "input_layernorm", z.wide, Role::input_norm);
  add_norm(block, "pre_ff_layernorm", z.d.hidden, Role::pre_feedforward_norm);
  block.children = {wide_attention(z), gated_mlp(mlp)};
  return block;
}

void tie_to(Module& module, const std::string& path) {
  const std::string here = module.path.empty() ? path : path + "." + module.path;
  for (TensorSpec& spec : module.tensors) {
    spec.storage = Storage::tied;
    spec.same_as = here + "." + spec.name;
  }
  for (Module& child : module.children) tie_to(child, here);
}

Module hybrid_layer(const Zamba& z, std::string title, std::vector<std::uint64_t> indices, Module block) {
  Module layer = layers("model.layers.{layer}", std::move(title), std::move(indices));
  Module projection{"", "projection", {}, {}, {}};
  add_linear(projection, {.name = "linear",
                          .in = z.d.hidden,
                          .out = z.d.hidden,
                          .role = Role::attention_output,
                          .part = Part::attention});
  Module scan{"mamba_decoder", "state space layer", {}, {}, {}};
  add_norm(scan, "input_layernorm", z.d.hidden, Role::input_norm);
  scan.children = {z.mamba};
  layer.children = {std::move(block), std::move(projection), std::move(scan)};
  return layer;
}

// `count` blocks take turns; own_to_first adds to the block what no other layer has.
void add_zamba(ModuleTree& tree, const Zamba& z, const GatedMlp& mlp, std::uint64_t count,
               const std::function<void(Module& block, std::uint64_t which)>& add_own = {}) {
  std::vector<Module> groups;
  groups.push_back(layers("model.layers.{layer}", "Mamba layers", z.plain));
  add_norm(groups[0], "input_layernorm", z.d.hidden, Role::input_norm);
  groups[0].children = {z.mamba};
  for (std::uint64_t which = 0; which < std::min<std::uint64_t>(count, z.hybrid.size()); ++which) {
    const std::string number = count > 1 ? fmt::format(" {}", which) : "";
    const std::uint64_t first = z.hybrid[which];
    std::vector<std::uint64_t> again;
    for (std::uint64_t i = which + count; i < z.hybrid.size(); i += count) again.push_back(z.hybrid[i]);
    const Module block = shared_block(z, mlp);
    Module own = block, tied = block;
    if (add_own) add_own(own, which);
    tie_to(tied, fmt::format("model.layers.{}", first));
    groups.push_back(hybrid_layer(z, "layer with shared block" + number, {first}, std::move(own)));
    groups.push_back(hybrid_layer(z, "layers with shared block" + number + " again", again, std::move(tied)));
  }
  Frame frame;
  frame.final_norm = "model.final_layernorm";
  add_frame(tree, z.d, groups, frame);
  if (!z.hybrid.empty()) tree.attention.push_back(geometry(zamba_attention(z), z.hybrid));
}

// Mamba's channels in groups, each with matrices of its own behind the convolution.
Module grouped_mamba(const Mamba1& m, const Quantity& groups, const Quantity& width) {
  Module module = mamba1(m);
  std::erase_if(module.tensors, [](const TensorSpec& spec) {
    return spec.name.starts_with("x_proj") || spec.name.starts_with("dt_proj") || spec.name == "A_log" ||
           spec.name == "D";
  });
  const auto add = [&](const char* name, const std::vector<Quantity>& shape, Role role, bool bias = false) {
    module.tensors.push_back(parameter(name, shape, role, Part::attention));
    module.tensors.back().bias = bias;
  };
  add("x_proj_weight", {groups, m.rank + Quantity(2) * m.state, width}, Role::recurrent_beta);
  add("dt_proj_weight", {groups, width, m.rank}, Role::recurrent_decay);
  add("dt_proj_bias", {groups, width}, Role::recurrent_decay, true);
  add("A_log", {groups, width, m.state}, Role::decay);
  add("D", {groups, width}, Role::skip);
  return module;
}

Quantity time_step_rank(ConfigReader& config, const Decoder& d) {
  const Quantity automatic("hidden_size / 16", (d.hidden.value() + 15) / 16);
  const auto given = config.config().text().find("mamba_dt_rank");
  if (given != config.config().text().end() && given->is_string()) return automatic;
  return config.size("mamba_dt_rank", automatic);
}

void describe_zamba(ConfigReader& config, ModuleTree& tree) {
  Zamba z;
  z.d = read_zamba_sizes(config, tree, 3712, 76, 16);
  z.d.kv_heads = config.size("num_key_value_heads", 16);
  config.require_divides(z.d.kv_heads, z.d.heads);
  z.d.head_dim = config.size("attention_head_dim|head_dim", wide_head(z.d));
  z.wide = config.size("attention_hidden_size", Quantity("2 × hidden_size", 2 * z.d.hidden.value()));
  const std::uint64_t period = config.size("attn_layer_period", 6).value(),
                      offset = config.number("attn_layer_offset", 4);
  split_layers(config, z, [=](std::uint64_t i) { return i == 2 || (i > 2 && (i - 3) % period == offset); });
  Mamba1 m;
  m.hidden = z.d.hidden;
  m.inner = Quantity("mamba_expand × hidden_size", (config.size("mamba_expand", 2) * z.d.hidden).value());
  m.state = config.size("mamba_d_state", 16);
  m.rank = time_step_rank(config, z.d);
  m.kernel = config.size("mamba_d_conv", 4);
  m.bias = config.flag("mamba_proj_bias", false);
  m.conv_bias = config.flag("mamba_conv_bias", true);
  m.path = "mamba";
  const Quantity groups = config.size("n_mamba_heads", 2);
  z.mamba = grouped_mamba(m, groups, config.quotient(m.inner, groups, "mamba_head_dim"));
  z.shared = "shared_transf";
  GatedMlp mlp{z.d.hidden, config.size("intermediate_size", 14848), "feed_forward"};
  add_zamba(tree, z, mlp, 1);
  tree.recurrent.push_back(geometry(m, all_layers(z.d.layers)));
}

// A matrix of low rank, added to a shared one in one layer only.
void add_adapter(Module& module, const std::string& name, const Quantity& in, const Quantity& rank,
                 const Quantity& out, Part part, Role role) {
  add_linear(module, {.name = name + ".0", .in = in, .out = rank, .role = role, .part = part});
  add_linear(module, {.name = name + ".1", .in = rank, .out = out, .role = role, .part = part});
}

Mamba2 read_zamba2_scan(ConfigReader& config, const Decoder& d) {
  Mamba2 m;
  m.hidden = d.hidden;
  m.heads = config.size("n_mamba_heads", 8);
  const Quantity inner("mamba_expand × hidden_size", (config.size("mamba_expand", 2) * d.hidden).value());
  m.head_dim = config.quotient(inner, m.heads, "mamba_headdim");
  m.groups = config.size("mamba_ngroups", 1);
  m.state = config.size("mamba_d_state", 64);
  m.kernel = config.size("mamba_d_conv", 4);
  m.bias = config.flag("add_bias_linear", false);
  m.path = "mamba";
  return m;
}

void describe_zamba2(ConfigReader& config, ModuleTree& tree) {
  Zamba z;
  z.d = read_zamba_sizes(config, tree, 2560, 54, 32);
  z.d.kv_heads = config.size("num_key_value_heads", z.d.heads);
  config.require_divides(z.d.kv_heads, z.d.heads);
  z.d.head_dim = wide_head(z.d);
  z.wide = Quantity("2 × hidden_size", 2 * z.d.hidden.value());
  config.require(config.has("layers_block_type|layer_types") || z.d.layers.value() == 54,
                 "layers_block_type is missing, and the class lists 54 layers");
  split_layers(config, z,
               [](std::uint64_t i) { return (i > 0 && i <= 42 && i % 6 == 0) || i == 47 || i == 51; });
  const Mamba2 m = read_zamba2_scan(config, z.d);
  z.mamba = mamba2(m);
  z.shared = "shared_transformer";
  GatedMlp mlp{z.d.hidden,
               config.size("intermediate_size", Quantity("4 × hidden_size", 4 * z.d.hidden.value())),
               "feed_forward"};
  mlp.bias = m.bias;
  mlp.fused = "gate_up_proj";
  const std::uint64_t count = config.size("num_mem_blocks", 1).value();
  const bool in_attention = config.flag("use_shared_attention_adapter", false);
  const Quantity rank = config.size("adapter_rank", 128);
  add_zamba(tree, z, mlp, count, [&](Module& block, std::uint64_t which) {
    Module &attend = block.children[0], &feed = block.children[1];
    for (std::uint64_t i = which; i < z.hybrid.size(); i += count) {
      add_adapter(feed, fmt::format("gate_up_proj_adapter_list.{}", i), z.d.hidden, rank,
                  Quantity(2) * mlp.intermediate, Part::dense_mlp, Role::mlp_gate_up);
      if (!in_attention) continue;
      for (const auto& [letter, role] : {std::pair{"q", Role::q}, {"k", Role::k}, {"v", Role::v}})
        add_adapter(attend, fmt::format("linear_{}_adapter_list.{}", letter, i), z.wide, rank, z.wide,
                    Part::attention, role);
    }
  });
  tree.recurrent.push_back(geometry(m, all_layers(z.d.layers)));
}

constexpr std::string_view kZambaArchitectures[] = {"ZambaForCausalLM"}, kZambaTypes[] = {"zamba"};
constexpr std::string_view kZamba2Architectures[] = {"Zamba2ForCausalLM"}, kZamba2Types[] = {"zamba2"};

}  // namespace

const Family kZamba = {"zamba", "Zamba", kZambaArchitectures, kZambaTypes, {}, describe_zamba, forward_zamba};
const Family kZamba2 = {"zamba2", "Zamba2",        kZamba2Architectures, kZamba2Types,
                        {},       describe_zamba2, forward_zamba2};

}  // namespace assay::families
