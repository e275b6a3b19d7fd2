// gpt-oss: attention with sinks and biases, a window in every other layer; the experts of a layer are stacked
// in one tensor, [experts, in, out], gate and up rows interleaved.
#include <nlohmann/json.hpp>

#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"

namespace assay::families {
namespace {

using namespace blocks;

Module stacked_gpt_oss_experts(const Quantity& hidden, const Quantity& width, const Experts& experts) {
  Module module{"experts", std::string(title(Part::routed_expert)), {}, {}, {}};
  const std::vector<PartitionedPart> both = {{Role::mlp_gate, width.value(), width.value()},
                                             {Role::mlp_up, width.value(), width.value()}};
  const auto add = [&](const std::string& name, const std::vector<Quantity>& shape, Role role, bool bias,
                       Parallel parallel) {
    TensorSpec spec = parameter(name, shape, role, Part::routed_expert);
    spec.bias = bias;
    spec.quantizable = spec.input_major = !bias;
    spec.stacked = experts.count.value();
    spec.stacked_active = experts.active;
    spec.parallel = std::move(parallel);
    module.tensors.push_back(std::move(spec));
  };
  const Quantity& e = experts.count;
  const Quantity gate_up = Quantity(2) * width;
  add("gate_up_proj", {e, hidden, gate_up}, Role::mlp_gate_up, false, {Partition::columns, 2, both, true});
  add("gate_up_proj_bias", {e, gate_up}, Role::mlp_gate_up, true, {Partition::columns, 1, both, true});
  add("down_proj", {e, width, hidden}, Role::mlp_down, false,
      {Partition::rows, 1, {{Role::mlp_down, width.value(), width.value()}}});
  add("down_proj_bias", {e, hidden}, Role::mlp_down, true, {});
  return module;
}

void describe_gpt_oss(ConfigReader& config, ModuleTree& tree) {
  DecoderDefaults sizes = {.vocabulary = 201088,
                           .hidden = 2880,
                           .intermediate = 2880,
                           .layers = 36,
                           .heads = 64,
                           .kv_heads = 8,
                           .head_dim = 64};
  // What marks private words has the same layers, smaller.
  if (config.config().architecture().starts_with("OpenAIPrivacyFilter"))
    sizes = {.vocabulary = 200064,
             .hidden = 640,
             .intermediate = 640,
             .layers = 8,
             .heads = 14,
             .kv_heads = 2,
             .head_dim = 64};
  const Decoder d = read_decoder(config, tree, sizes);
  const Experts experts = read_experts(config, tree, "num_local_experts|num_experts", 128,
                                       "num_experts_per_tok|experts_per_token", 4);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", true);
  a.sinks = true;

  Module moe{"mlp", "mixture of experts", {}, {}, {}};
  Module router{"", std::string(title(Part::router)), {}, {}, {}};
  add_router(router, "router", d.hidden, experts.count, true);
  moe.children = {std::move(router), stacked_gpt_oss_experts(d.hidden, d.intermediate, experts)};
  Module layer = layers("model.layers.{layer}", "MoE layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), std::move(moe)};
  add_frame(tree, d, {layer});
  const auto window = config.optional_number("sliding_window", 128);
  const auto windowed =
      windowed_layers(config, d.layers, [&](std::uint64_t i) { return window.has_value() && i % 2 == 0; });
  config.require(windowed.empty() || window, "layer_types names windows, and sliding_window is null");
  add_geometry(tree, a, d.layers, windowed, window.value_or(0));
}

// GptOssConfig: without a word of ropes, those of the published models.
void stretch_by_default(const ConfigReader& config, RopeRule& rule) {
  const ParsedJson* older = object_in(config, "rope_scaling");
  const bool given = object_in(config, "rope_parameters") != nullptr || (older != nullptr && !older->empty());
  if (given) return;
  rule.type = RopeRule::Type::yarn;
  rule.factor = 32;
  rule.original_context = 4096;
  rule.truncate = false;
}

Hyperparameters read_gpt_oss(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(
      config, tree, {.epsilon = 1e-5, .rope = {.theta = 150000, .context = 131072}, .activation_key = {}});
  if (is_gguf(config))
    h.ropes.front().truncate = false;  // which no key of GGUF says
  else
    stretch_by_default(config, h.ropes.front());
  h.activation_limit = config.real("swiglu_limit", 7, 1e-3, 1e6);
  return h;
}

constexpr std::string_view kGptOssArchitectures[] = {"GptOssForCausalLM"};
constexpr std::string_view kGptOssTypes[] = {"gpt_oss"};
constexpr std::string_view kGptOssGguf[] = {"gpt-oss"};

}  // namespace

const Family kGptOss = {"gpt_oss",   "gpt-oss",        kGptOssArchitectures, kGptOssTypes,
                        kGptOssGguf, describe_gpt_oss, read_gpt_oss};

}  // namespace assay::families
