// Mixtures with an attention of their own: Aria's text, JetMoe (experts of queries, too), ZAYA1 (attention in a narrow
// space behind convolutions, an expert that does nothing).
#include "core/model/families/all_2026.h"
#include "core/model/families/forward_2026.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/own_layers_forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_aria_text(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 0, .layers = 32, .heads = 32},
      .experts = ExpertKin{.count_keys = "moe_num_experts",
                           .count = 8,
                           .active_keys = "moe_topk",
                           .active = 2,
                           .width_keys = "intermediate_size",
                           .width = 4096,
                           .shared_keys = "moe_num_shared_experts",
                           .shared = 2}};
  Mixture& names = kin.experts->names;
  names.router = "router";
  names.shared_bias = config.flag("mlp_bias", false);
  names.stacks = Mixture::Stacks::input_major;
  names.stacked_gate_up = "fc1.weight", names.stacked_down = "fc2.weight";
  describe_kin(config, tree, kin);
}

// A token's experts each project it to a query a key head, and project what its heads give back.
Module attention_of_experts(const HeadAttention& a, const Experts& e) {
  Module module{"self_attention", "attention with experts", {}, {}, {}};
  const Quantity width = a.kv_heads * a.head_dim;
  const std::uint64_t w = width.value(), h = a.kv_heads.value();
  add_linear(module, {.name = "kv_proj",
                      .in = a.hidden,
                      .out = Quantity(2) * width,
                      .role = Role::qkv,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .members = {{Role::k, w, h}, {Role::v, w, h}}});
  Module experts{"experts", "experts of queries", {}, {}, {}};
  add_router(experts, "router.layer", a.hidden, e.count);
  experts.tensors.back().part = Part::attention;
  experts.tensors.push_back(parameter("bias", {a.hidden}, Role::attention_output, Part::attention));
  experts.tensors.back().bias = true;
  for (const bool in : {true, false}) {
    TensorSpec spec = parameter(in ? "input_linear.weight" : "output_linear.weight",
                                {e.count, in ? width : a.hidden, in ? a.hidden : width},
                                in ? Role::q : Role::attention_output, Part::attention);
    spec.quantizable = true;
    spec.stacked = e.count.value();
    spec.stacked_active = e.active;
    spec.parallel = {in ? Partition::columns : Partition::rows, in ? 1U : 2U, {{spec.role, w, h}}};
    experts.tensors.push_back(std::move(spec));
  }
  module.children = {std::move(experts)};
  return module;
}

void describe_jetmoe(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32000);
  d.hidden = config.size("hidden_size", 2048);
  d.intermediate = config.size("intermediate_size", 5632);
  d.layers = read_layers(config, "num_hidden_layers|num_layers", 12);
  d.kv_heads = config.size("num_key_value_heads", 16);
  d.head_dim = config.size("kv_channels|head_dim", 128);
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  Mixture m{d.hidden, read_experts(config, tree, "num_local_experts", 8, "num_experts_per_tok", 2),
            d.intermediate};
  d.heads = Quantity("num_key_value_heads × num_experts_per_tok", d.kv_heads.value() * m.experts.active);
  m.router = "router.layer";
  m.stacks = Mixture::Stacks::output_major;
  m.stacks_path = "";
  m.stacked_gate_up = "input_linear.weight", m.stacked_down = "output_linear.weight";
  Module mlp = mixture(m);
  mlp.tensors.push_back(parameter("bias", {d.hidden}, Role::other, Part::routed_expert));
  mlp.tensors.back().bias = true;
  Module layer = layers("model.layers.{layer}", "MoE layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention_of_experts(d.attention(), m.experts), std::move(mlp)};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
}

// Half of the values are the last token's; queries and keys pass two convolutions, the second within heads.
Module convolved_attention(const HeadAttention& a, const Quantity& depthwise, const Quantity& grouped) {
  Module module{"self_attn", "attention behind convolutions", {}, {}, {}};
  const Quantity q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim, channels = q + kv;
  const Quantity half("num_key_value_heads × head_dim / 2", kv.value() / 2);
  Module into{"qkv_proj", "queries, keys and values", {}, {}, {}};
  for (const auto& [name, out, role] : {std::tuple{"q_proj", q, Role::q},
                                        {"k_proj", kv, Role::k},
                                        {"v_proj_current", half, Role::recurrent_in},
                                        {"v_proj_delayed", half, Role::recurrent_in}})
    add_linear(into, {.name = name,
                      .in = a.hidden,
                      .out = out,
                      .role = role,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .bias = a.qkv_bias});
  const auto convolution = [&](const std::string& name, const Quantity& in, const Quantity& kernel) {
    into.tensors.push_back(
        parameter(name + ".weight", {channels, in, kernel}, Role::convolution, Part::attention));
    into.tensors.push_back(parameter(name + ".bias", {channels}, Role::convolution, Part::attention));
    into.tensors.back().bias = true;
  };
  convolution("conv_qk_depthwise", 1, depthwise);
  convolution("conv_qk_grouped", a.head_dim, grouped);
  module.tensors.push_back(parameter("qk_norm.temp", {a.kv_heads}, Role::k_norm, Part::attention));
  add_linear(module, {.name = "o_proj",
                      .in = q,
                      .out = a.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = a.heads.value(),
                      .bias = a.output_bias});
  module.children = {std::move(into)};
  return module;
}

// A small MLP that reads the last layer's router, too; one class more than experts does nothing.
Module zaya_router(const Quantity& hidden, const Quantity& width, const Quantity& experts, bool first) {
  Module router{"gate", std::string(title(Part::router)), {}, {}, {}};
  const Quantity classes = experts + Quantity(1);
  add_router(router, "down_proj", hidden, width, true);
  add_norm(router, "router_mlp.norm", width, Role::router_scale, false, Part::router);
  add_router(router, "router_mlp.fc1", width, width, true);
  add_router(router, "router_mlp.fc2", width, width, true);
  add_router(router, "router_mlp.out_proj", width, classes);
  if (!first)
    router.tensors.push_back(parameter("router_states_scale", {width}, Role::router_scale, Part::router));
  router.tensors.push_back(parameter("balancing_biases", {classes}, Role::router_correction, Part::router));
  router.tensors.back().bias = true;
  return router;
}

void add_scaled_residuals(Module& layer, const Quantity& hidden) {
  for (const char* place : {"post_attention_residual_scale.", "post_mlp_residual_scale."}) {
    for (const char* what : {"hidden_states_", "residual_"}) {
      for (const bool bias : {false, true}) {
        layer.tensors.push_back(parameter(std::string(place) + what + (bias ? "bias" : "scale"), {hidden},
                                          Role::layer_scale, Part::norm));
        layer.tensors.back().bias = bias;
      }
    }
  }
}

void describe_zaya(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 262272,
                                  .hidden = 2048,
                                  .intermediate = 0,
                                  .layers = 40,
                                  .heads = 8,
                                  .kv_heads = 2,
                                  .head_dim = 128,
                                  .tied = true});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const Quantity depthwise = config.size("cca_time0", 2), grouped = config.size("cca_time1", 2),
                 router = config.size("router_hidden_size", 256);
  const Experts e = read_experts(config, tree, "num_experts", 16, "num_experts_per_tok", 1);
  const StackedExperts stacks{d.hidden, config.size("moe_intermediate_size", 2048), e};
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [](std::uint64_t i) { return i == 0 ? "first MoE layer" : "MoE layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        add_scaled_residuals(layer, d.hidden);
        Module mlp{"mlp", "mixture of experts", {}, {}, {}};
        mlp.children = {zaya_router(d.hidden, router, e.count, i == 0), stacked_experts(stacks)};
        layer.children = {convolved_attention(a, depthwise, grouped), std::move(mlp)};
      });
  Frame frame;
  frame.head_bias = config.flag("lm_head_bias", false);
  add_frame(tree, d, groups, frame);
  Module start{"model", "scale of the embedding", {}, {}, {}};
  for (const bool bias : {false, true}) {
    start.tensors.push_back(parameter(bias ? "input_hidden_states_bias" : "input_hidden_states_scale",
                                      {d.hidden}, Role::layer_scale, Part::norm));
    start.tensors.back().bias = bias;
  }
  tree.modules.insert(tree.modules.begin() + 1, std::move(start));
  const auto types = layer_texts(config, "layer_types", d.layers);
  const auto windowed =
      layers_where(d.layers, [&](std::uint64_t i) { return types && (*types)[i] == "hybrid_sliding"; });
  const std::uint64_t window = config.optional_number("sliding_window").value_or(0);
  add_geometry(tree, a, d.layers, window > 0 ? windowed : std::vector<std::uint64_t>{}, window);
  // The last inputs of both convolutions, and of the delayed half of the values.
  const Quantity channels = (a.heads + a.kv_heads) * a.head_dim;
  tree.recurrent.push_back({.title = "convolutions of queries and keys",
                            .layers = all_layers(d.layers),
                            .heads = a.kv_heads.value(),
                            .conv_values = channels.value() * (depthwise.value() + grouped.value() - 2) +
                                           (a.kv_heads * a.head_dim).value() / 2});
}

constexpr std::string_view kAriaArchitectures[] = {"AriaTextForCausalLM"}, kAriaTypes[] = {"aria_text"};
constexpr std::string_view kJetmoeArchitectures[] = {"JetMoeForCausalLM"}, kJetmoeTypes[] = {"jetmoe"};
constexpr std::string_view kZayaArchitectures[] = {"ZayaForCausalLM"}, kZayaTypes[] = {"zaya"};

}  // namespace

const Family kAriaText = {"aria_text", "Aria (text)",      kAriaArchitectures, kAriaTypes,
                          {},          describe_aria_text, forward_aria_text};
const Family kJetmoe = {"jetmoe", "JetMoe",        kJetmoeArchitectures, kJetmoeTypes,
                        {},       describe_jetmoe, forward_jetmoe};
const Family kZaya = {"zaya", "ZAYA1", kZayaArchitectures, kZayaTypes, {}, describe_zaya, forward_zaya};

}  // namespace assay::families
