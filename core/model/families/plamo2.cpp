// PLaMo 2: Mamba with a decay a head, whose B, C and time steps are normed, and attention with norms head by head, in turn;
// norms around both halves of a layer. Source: pfnet's modeling_plamo.py as vLLM 0.25's plamo2.py reads its checkpoints. The
// published code attends to a window in all layers but those of full_attention_idx, vLLM to all there is: the cache is told
// without a window, which is the most it can be.
#include <algorithm>

#include "core/model/families/all_hub.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

struct PlamoScan {
  Quantity hidden, heads, head_dim, state, rank, kernel;
  Quantity inner() const { return heads * head_dim; }
};

Module plamo_scan(const PlamoScan& s) {
  Module module{"mixer", "state space (PLaMo 2)", {}, {}, {}};
  const std::uint64_t inner = s.inner().value(), h = s.heads.value();
  const auto by_head = [&](TensorSpec spec, std::size_t dimension, Role role, std::uint64_t size) {
    spec.parallel = {Partition::columns, dimension, {{role, size, h}}};
    module.tensors.push_back(std::move(spec));
  };
  add_linear(module, {.name = "in_proj",
                      .in = s.hidden,
                      .out = Quantity(2) * s.inner(),
                      .role = Role::recurrent_in,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .members = {{Role::recurrent_gate, inner, h}, {Role::v, inner, h}},
                      .interleaved = true});
  by_head(parameter("conv1d.weight", {s.inner(), 1, s.kernel}, Role::convolution, Part::attention), 0,
          Role::convolution, inner);
  add_linear(module, {.name = "bcdt_proj",
                      .in = s.inner(),
                      .out = s.rank + Quantity(2) * s.state,
                      .role = Role::recurrent_beta,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = h});
  add_linear(module, {.name = "dt_proj",
                      .in = s.rank,
                      .out = s.heads,
                      .role = Role::recurrent_decay,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = h});
  by_head(parameter("A_log", {s.heads}, Role::decay, Part::attention), 0, Role::decay, h);
  by_head(parameter("D", {s.heads}, Role::skip, Part::attention), 0, Role::skip, h);
  by_head(parameter("dt_bias", {s.heads}, Role::time_bias, Part::attention), 0, Role::time_bias, h);
  for (const auto& [name, width] :
       {std::pair("dt_norm_weight", s.rank), {"B_norm_weight", s.state}, {"C_norm_weight", s.state}})
    module.tensors.push_back(parameter(name, {width}, Role::recurrent_norm, Part::attention));
  add_linear(module, {.name = "out_proj",
                      .in = s.inner(),
                      .out = s.hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = h});
  return module;
}

Module plamo_attention(const HeadAttention& a) {
  Module module = attention(a);
  for (const auto& [name, count, role] :
       {std::tuple("q_weight", a.heads, Role::q_norm), {"k_weight", a.kv_heads, Role::k_norm}}) {
    TensorSpec norm = parameter(name, {count, a.head_dim}, role, Part::attention);
    norm.parallel = {Partition::columns, 0, {{role, count.value(), count.value()}}};
    module.tensors.push_back(std::move(norm));
  }
  return module;
}

void describe_plamo2(ConfigReader& config, ModuleTree& tree) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "hidden_size_per_head", "mamba_num_heads", "mamba_d_state", "mamba_d_conv"})
    config.size(key);
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0, .tied = true},
      HeadDim::unused);
  HeadAttention a{d.hidden, d.heads, config.size("num_key_value_heads"), config.size("hidden_size_per_head")};
  config.require_divides(a.kv_heads, a.heads);
  a.path = "mixer", a.fused = "qkv_proj";
  const PlamoScan s{d.hidden,
                    config.size("mamba_num_heads"),
                    a.head_dim,
                    config.size("mamba_d_state"),
                    Quantity("hidden_size / 16", std::max<std::uint64_t>(64, d.hidden.value() / 16)),
                    config.size("mamba_d_conv")};
  const bool scans = config.flag("mamba_enabled", true);
  const std::uint64_t step = config.size("mamba_step", 2).value(), layers = d.layers.value();
  config.require(step > 1, "mamba_step is 1: it says which layers attend, one of so many");
  const auto is_scan = [&](std::uint64_t i) {
    return scans && (layers <= step / 2 ? i + 1 != layers : i % step != step / 2);
  };
  GatedMlp mlp = d.mlp();
  mlp.fused = "gate_up_proj";
  const auto groups = group_layers(
      "model.layers.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_scan(i) ? "Mamba layers" : "attention layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "pre_mixer_norm", d.hidden, Role::input_norm);
        add_norm(layer, "post_mixer_norm", d.hidden, Role::post_attention_norm);
        add_norm(layer, "pre_mlp_norm", d.hidden, Role::pre_feedforward_norm);
        add_norm(layer, "post_mlp_norm", d.hidden, Role::post_feedforward_norm);
        layer.children = {is_scan(i) ? plamo_scan(s) : plamo_attention(a), gated_mlp(mlp)};
      });
  add_frame(tree, d, groups);
  const auto recurrent = layers_where(d.layers, is_scan);
  const auto attending = layers_where(d.layers, [&](std::uint64_t i) { return !is_scan(i); });
  if (!attending.empty()) tree.attention.push_back(geometry(a, attending));
  if (!recurrent.empty())
    tree.recurrent.push_back({.title = "Mamba of PLaMo 2",
                              .layers = recurrent,
                              .heads = s.heads.value(),
                              .conv_values = (s.inner() * Quantity(s.kernel.value() - 1)).value(),
                              .state_values = (s.inner() * s.state).value()});
}

constexpr std::string_view kPlamo2Architectures[] = {"Plamo2ForCausalLM"}, kPlamo2Types[] = {"plamo2"};

}  // namespace

const Family kPlamo2 = {"plamo2", "PLaMo 2", kPlamo2Architectures, kPlamo2Types, {}, describe_plamo2};

}  // namespace assay::families
