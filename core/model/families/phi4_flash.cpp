// Phi-4-mini-flash (SambaY, arXiv 2507.06607): in the first half Mamba and differential attention with a window, in turn; then
// one layer of each whose memory and cache the second half reads: there gates in place of Mamba, and attention without keys
// and values. Source: Microsoft's modeling_phi4flash.py as vLLM 0.10's phi4flash.py reads its checkpoint.
#include "core/model/families/all_hub.h"
#include "core/model/families/llama_kin.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Of a layer that reads another's keys and values Wqkv has the queries alone.
Module flash_attention(const HeadAttention& a, bool cross) {
  Module module{"attn", cross ? "attention to another layer's keys" : "differential attention", {}, {}, {}};
  const std::uint64_t q = (a.heads * a.head_dim).value(), kv = (a.kv_heads * a.head_dim).value();
  std::vector<PartitionedPart> members = {{Role::q, q, a.heads.value()}};
  if (!cross) {
    members.push_back({Role::k, kv, a.kv_heads.value()});
    members.push_back({Role::v, kv, a.kv_heads.value()});
  }
  add_linear(module, {.name = "Wqkv",
                      .in = a.hidden,
                      .out = (cross ? a.heads : a.heads + Quantity(2) * a.kv_heads) * a.head_dim,
                      .role = cross ? Role::q : Role::qkv,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .members = std::move(members),
                      .bias = true});
  add_linear(module, {.name = "out_proj",
                      .in = a.heads * a.head_dim,
                      .out = a.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = a.heads.value(),
                      .bias = true});
  Module inner{"inner_cross_attn", "what is subtracted", {}, {}, {}};
  for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
    inner.tensors.push_back(parameter(name, {a.head_dim}, Role::attention_gate, Part::attention));
  add_norm(inner, "subln", Quantity(2) * a.head_dim, Role::attention_gate, false, Part::attention);
  module.children.push_back(std::move(inner));
  return module;
}

// out_proj(memory · silu(in_proj(x))): the memory is what the last Mamba scanned.
Module memory_gate(const Quantity& hidden, const Quantity& inner) {
  Module module{"attn", "gate on the memory", {}, {}, {}};
  add_linear(module, {.name = "in_proj",
                      .in = hidden,
                      .out = inner,
                      .role = Role::recurrent_gate,
                      .part = Part::attention,
                      .partition = Partition::columns});
  add_linear(module, {.name = "out_proj",
                      .in = inner,
                      .out = hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows});
  return module;
}

void describe_phi4_flash(ConfigReader& config, ModuleTree& tree) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "num_key_value_heads"})
    config.size(key);
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0, .tied = true});
  config.require(
      d.tied && !config.flag("lm_head_bias", false) && !config.flag("mlp_bias", false),
      "the head is not tied, or lm_head_bias or mlp_bias is true: Phi-4-mini-flash has been described "
      "without");
  const std::uint64_t every = config.number("mb_per_layer", 2), half = d.layers.value() / 2;
  Mamba1 m;
  m.hidden = d.hidden;
  m.inner = Quantity("mamba_expand × hidden_size", (config.size("mamba_expand", 2) * d.hidden).value());
  m.state = config.size("mamba_d_state", 16);
  m.rank = Quantity("hidden_size / 16", (d.hidden.value() + 15) / 16);
  m.kernel = config.size("mamba_d_conv", 4);
  m.bias = config.flag("mamba_proj_bias", false), m.conv_bias = config.flag("mamba_conv_bias", true);
  m.path = "attn";
  const HeadAttention a = d.attention();
  const auto scans = [&](std::uint64_t i) { return every > 0 && i % every == 0; };
  const auto crosses = [&](std::uint64_t i) { return i >= half + 2; };
  GatedMlp mlp = d.mlp();
  mlp.fused = "fc1", mlp.down = "fc2";
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        if (scans(i)) return crosses(i) ? "gated layers" : "Mamba layers";
        return crosses(i) ? "cross-attention layers" : "attention layers";
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden, true);
        if (scans(i))
          layer.children = {crosses(i) ? memory_gate(d.hidden, m.inner) : mamba1(m), gated_mlp(mlp)};
        else
          layer.children = {flash_attention(a, crosses(i)), gated_mlp(mlp)};
      });
  add_frame(tree, d, groups, {.final_norm = "model.final_layernorm", .norm_bias = true});

  const auto memory = layers_where(d.layers, [&](std::uint64_t i) { return scans(i) && !crosses(i); });
  if (!memory.empty()) tree.recurrent.push_back(geometry(m, memory));
  const auto attends = [&](std::uint64_t i) { return !scans(i); };
  const auto narrow = layers_where(d.layers, [&](std::uint64_t i) { return attends(i) && i < half; });
  const auto whole =
      layers_where(d.layers, [&](std::uint64_t i) { return attends(i) && i >= half && !crosses(i); });
  const auto others = layers_where(d.layers, [&](std::uint64_t i) { return attends(i) && crosses(i); });
  if (!narrow.empty())
    tree.attention.push_back(geometry(a, narrow, config.optional_number("sliding_window", 512).value_or(0)));
  if (!whole.empty()) tree.attention.push_back(geometry(a, whole));
  if (others.empty()) return;
  tree.attention.push_back(geometry(a, others));
  tree.attention.back().cached = false;
}

constexpr std::string_view kFlashArchitectures[] = {"Phi4FlashForCausalLM"}, kFlashTypes[] = {"phi4flash"};

}  // namespace

const Family kPhi4Flash = {"phi4flash", "Phi-4-mini-flash", kFlashArchitectures, kFlashTypes,
                           {},          describe_phi4_flash};

}  // namespace assay::families
