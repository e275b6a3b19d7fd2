// Hymba: in every layer heads that attend and a Mamba read the same projection, and what they give, normed, is averaged. Some
// layers take keys and values of the layer before; a sequence begins with vectors that were learnt. Source: the code beside the
// weights of nvidia/Hymba-1.5B-Base, of whose configuration class no defaults are known, so that a config must tell all sizes.
#include <nlohmann/json.hpp>
#include <set>

#include "core/model/families/all_more.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// The layers that take keys and values of another: all but the first of each group.
std::set<std::uint64_t> read_takers(ConfigReader& config, const Quantity& layers) {
  std::set<std::uint64_t> takers;
  const ParsedJson& keys = config.config().text();
  const auto groups = keys.find("kv_reuse_group");
  if (groups == keys.end() || groups->is_null()) {
    const double every = config.real("kv_reuse_every_i_layer", -1, -1, 1e6);
    config.require(every <= 0, "kv_reuse_every_i_layer without kv_reuse_group is not described");
    return takers;
  }
  config.require(groups->is_array(), "kv_reuse_group is no list");
  for (const ParsedJson& group : *groups) {
    config.require(group.is_array() && !group.empty(), "kv_reuse_group holds what is no list of layers");
    for (std::size_t i = 0; i < group.size(); ++i) {
      const bool known = group[i].is_number_unsigned() && group[i].get<std::uint64_t>() < layers.value();
      config.require(known, "kv_reuse_group names a layer that there is not");
      if (i > 0) takers.insert(group[i].get<std::uint64_t>());
    }
  }
  return takers;
}

Mamba1 read_scan(ConfigReader& config, const Decoder& d) {
  Mamba1 m;
  m.hidden = d.hidden;
  m.inner = Quantity("mamba_expand × hidden_size", (config.size("mamba_expand") * d.hidden).value());
  m.state = config.size("mamba_d_state");
  m.rank = config.size("mamba_dt_rank");
  m.kernel = config.size("mamba_d_conv");
  m.conv_bias = config.flag("mamba_conv_bias", true);
  m.bias = config.flag("mamba_proj_bias", false);
  m.norms = config.flag("mamba_inner_layernorms", true);
  return m;
}

void add_scan_numbers(Module& module, const Mamba1& m) {
  const auto add = [&](std::string name, const std::vector<Quantity>& shape, Role role) {
    module.tensors.push_back(parameter(std::move(name), shape, role, Part::attention));
  };
  add("conv1d.weight", {m.inner, 1, m.kernel}, Role::convolution);
  if (m.conv_bias) add("conv1d.bias", {m.inner}, Role::convolution);
  add("A_log.0", {m.inner, m.state}, Role::decay);
  add("D.0", {m.inner}, Role::skip);
}

// in_proj makes what the scan reads and what gates it, queries, and, where the layer has its own, keys and values: as many
// of a key head as of a query head, and values mamba_expand times as wide.
Module hybrid(const Decoder& d, const Mamba1& m, bool takes) {
  const Quantity scanned = Quantity(2) * m.inner;
  const Quantity keys = d.kv_heads * d.head_dim,
                 values = d.kv_heads * Quantity(m.inner.value() / d.heads.value());
  Module module{"mamba", takes ? "heads and Mamba, keys of another layer" : "heads and Mamba", {}, {}, {}};
  add_linear(module, {.name = "in_proj",
                      .in = d.hidden,
                      .out = takes ? scanned + d.hidden : scanned + d.hidden + keys + values,
                      .role = Role::recurrent_in,
                      .part = Part::attention,
                      .bias = m.bias});
  add_scan_numbers(module, m);
  add_linear(module, {.name = "x_proj.0",
                      .in = m.inner,
                      .out = m.rank + Quantity(2) * m.state,
                      .role = Role::recurrent_beta,
                      .part = Part::attention});
  add_linear(module, {.name = "dt_proj.0",
                      .in = m.rank,
                      .out = m.inner,
                      .role = Role::recurrent_decay,
                      .part = Part::attention,
                      .bias = true});
  for (const char* name : {"pre_avg_layernorm1", "pre_avg_layernorm2"})
    add_norm(module, name, m.inner, Role::recurrent_norm, false, Part::attention);
  if (m.norms) {
    add_norm(module, "dt_layernorm", m.rank, Role::recurrent_norm, false, Part::attention);
    for (const char* name : {"B_layernorm", "C_layernorm"})
      add_norm(module, name, m.state, Role::recurrent_norm, false, Part::attention);
  }
  add_linear(module, {.name = "out_proj",
                      .in = m.inner,
                      .out = d.hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .bias = m.bias});
  return module;
}

void add_attending(ConfigReader& config, ModuleTree& tree, const Decoder& d, const Mamba1& m,
                   const std::set<std::uint64_t>& takers) {
  const auto whole = config.numbers("global_attn_idx").value_or(std::vector<std::uint64_t>{});
  const auto window = config.optional_number("sliding_window");
  HeadAttention a = d.attention();
  a.v_head_dim = Quantity(m.inner.value() / d.heads.value());
  for (const bool windowed : {false, true}) {
    for (const bool takes : {false, true}) {
      const auto those = layers_where(d.layers, [&](std::uint64_t i) {
        const bool has_window = window && std::find(whole.begin(), whole.end(), i) == whole.end();
        return has_window == windowed && takers.contains(i) == takes;
      });
      if (those.empty()) continue;
      tree.attention.push_back(geometry(a, those, windowed ? *window : 0));
      tree.attention.back().cached = !takes;
    }
  }
}

void describe_hymba(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size");
  d.hidden = config.size("hidden_size");
  d.intermediate = config.size("intermediate_size");
  config.size("num_hidden_layers");  // required: read_layers would take a default
  d.layers = read_layers(config, "num_hidden_layers", 1);
  d.heads = config.size("num_attention_heads");
  d.kv_heads = config.size("num_key_value_heads");
  d.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads");
  d.tied = config.tied_embeddings(false);
  note_sizes(tree, d);
  config.require(config.text("kq_norm", "none") == "none",
                 "kq_norm: norms of queries and keys are not described");
  const Mamba1 m = read_scan(config, d);
  config.require_divides(d.heads, m.inner);
  config.require(d.kv_heads.value() <= d.heads.value(),
                 "num_key_value_heads is larger than num_attention_heads");
  const std::set<std::uint64_t> takers = read_takers(config, d.layers);
  GatedMlp mlp = d.mlp();
  mlp.path = "moe.experts.0";  // of one expert always
  if (config.text("mlp_hidden_act", "silu") != "silu") mlp.gate = "";
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return takers.contains(i) ? "layers with keys of another" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
        add_norm(layer, "pre_moe_layernorm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {hybrid(d, m, takers.contains(i)), gated_mlp(mlp)};
      });
  Frame frame;
  frame.final_norm = "model.final_layernorm";
  add_frame(tree, d, groups, frame);
  if (const std::uint64_t begin = config.number("num_memory_tokens", 0); begin > 0) {
    Module table{"model", "vectors that every sequence begins with", {}, {}, {}};
    table.tensors.push_back(parameter("memory_tokens", {Quantity("num_memory_tokens", begin), d.hidden},
                                      Role::other, Part::embedding));
    tree.modules.insert(tree.modules.begin() + 1, std::move(table));
  }
  add_attending(config, tree, d, m, takers);
  tree.recurrent.push_back(geometry(m, all_layers(d.layers)));
}

constexpr std::string_view kHymbaArchitectures[] = {"HymbaForCausalLM"}, kHymbaTypes[] = {"hymba"};

}  // namespace

const Family kHymba = {"hymba", "Hymba", kHymbaArchitectures, kHymbaTypes, {}, describe_hymba};

}  // namespace assay::families
