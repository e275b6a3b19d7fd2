// Step 3.5 and 3.7: windows in three layers of four with more heads of their own, a gate for each head's output, experts
// stacked in three tensors beside a shared one, three layers for prediction with a head each; 3.7 sees.
#include <algorithm>

#include "core/model/families/all.h"
#include "core/model/families/soft_forward.h"
#include "core/model/families/step3.h"
#include "core/model/families/towers.h"
#include "core/system/text.h"

namespace assay::families {

std::vector<std::uint64_t> step_layers_listed(ConfigReader& config) {
  std::vector<std::uint64_t> named;
  const std::string text = config.text("moe_layers_enum", "");
  for (std::size_t at = 0; at < text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    const auto number = parse_u64(std::string_view(text).substr(at, comma - at));
    config.require(number.has_value(), "moe_layers_enum is no list of numbers");
    named.push_back(*number);
    at = comma + 1;
  }
  return named;
}

namespace {

using namespace blocks;

struct StepHeads {
  HeadAttention full, windowed;
};
StepHeads read_step_heads(ConfigReader& config, const Decoder& d) {
  StepHeads k;
  k.full = d.attention();
  k.full.qk_norm = QkNorm::per_head;
  k.full.gate = "g_proj";
  k.windowed = k.full;
  if (const auto other = config.config().text_section("attention_other_setting")) {
    ConfigReader setting(*other, "attention_other_setting");
    k.windowed.heads = setting.size("num_attention_heads", d.heads);
    k.windowed.kv_heads = setting.size("num_attention_groups|num_key_value_heads", d.kv_heads);
    k.windowed.head_dim = setting.size("head_dim", d.head_dim);
  } else {
    k.windowed.heads = config.size("num_sliding_attention_heads", d.heads);
  }
  config.require_divides(k.windowed.kv_heads, k.windowed.heads);
  return k;
}

// moe_layers_enum: "3,4,5,…", or a list.
std::function<bool(std::uint64_t)> step_sparse_layers(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "mlp_layer_types", count, true))
    return [types](std::uint64_t i) { return (*types)[i] == "sparse"; };
  if (!config.has("moe_layers_enum")) {
    const std::uint64_t dense = config.number("first_k_dense_replace", 3);
    return [dense](std::uint64_t i) { return i >= dense; };
  }
  std::vector<std::uint64_t> named;
  if (config.is_list("moe_layers_enum")) {
    named = *config.numbers("moe_layers_enum");
  } else {
    named = step_layers_listed(config);
  }
  std::sort(named.begin(), named.end());
  return [named](std::uint64_t i) { return std::binary_search(named.begin(), named.end(), i); };
}

Module experts_of(const Decoder& d, const Experts& experts, const Quantity& width, bool router_bias) {
  Module moe{"moe", "mixture of experts", {}, {}, {}};
  Module router{"", std::string(title(Part::router)), {}, {}, {}};
  add_router(router, "gate", d.hidden, experts.count);
  if (router_bias) {
    router.tensors.push_back(
        parameter("router_bias", {experts.count}, Role::router_correction, Part::router));
    router.tensors.back().bias = true;
  }
  StackedExperts stacks{d.hidden, width, experts};
  stacks.path = "";
  stacks.gate = "gate_proj.weight", stacks.up = "up_proj.weight", stacks.down = "down_proj.weight";
  moe.children = {std::move(router), stacked_experts(stacks)};
  return moe;
}

// Behind the last layer: a sliding layer with a dense MLP, projection and norms, and an output head of its own.
void add_prediction(ModuleTree& tree, const Decoder& d, const HeadAttention& a, std::uint64_t count,
                    std::uint64_t window) {
  const auto indices = layers_after(d.layers, count);
  if (indices.empty()) return;
  Module layer = layers("model.layers.{layer}", "multi-token prediction", indices);
  add_pre_norms(layer, d.hidden);
  Module own = mtp_own(d.hidden, {.final_norm = "transformer.shared_head.norm"});
  add_linear(own, {.name = "transformer.shared_head.output",
                   .in = d.hidden,
                   .out = d.vocabulary,
                   .role = Role::output_head,
                   .part = Part::mtp,
                   .partition = Partition::vocabulary,
                   .quantizable = false});
  layer.children = {attention(a), gated_mlp(d.mlp()), std::move(own)};
  tree.mtp.push_back(std::move(layer));
  tree.mtp_attention.push_back(geometry(a, indices, window));
}

void describe_step(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(
      config, tree, {.vocabulary = 128815, .hidden = 4096, .intermediate = 11264, .layers = 45, .heads = 64},
      HeadDim::unused);
  d.kv_heads = config.size("num_attention_groups|num_key_value_heads", 8);
  config.require_divides(d.kv_heads, d.heads);
  d.head_dim = config.size("head_dim", 128);
  const StepHeads k = read_step_heads(config, d);
  const Experts experts =
      read_experts(config, tree, "moe_num_experts|n_routed_experts|num_experts|num_local_experts", 288,
                   "moe_top_k|num_experts_per_tok", 8);
  const Quantity width = config.size("moe_intermediate_size", 1280);
  GatedMlp shared{d.hidden, config.size("share_expert_dim|share_expert_dims", 1280), "share_expert"};
  shared.part = Part::shared_expert;
  const bool bias = config.flag("use_moe_router_bias", true);

  const auto types = layer_texts(config, "layer_types", d.layers, true);
  const auto is_windowed = [&](std::uint64_t i) { return types && (*types)[i] == "sliding_attention"; };
  const auto is_sparse = step_sparse_layers(config, d.layers);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_sparse(i) ? "MoE layers" : "dense layers") +
               (is_windowed(i) ? " with a window" : " that see all");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(is_windowed(i) ? k.windowed : k.full)};
        if (!is_sparse(i)) return layer.children.push_back(gated_mlp(d.mlp()));
        layer.children.push_back(gated_mlp(shared));
        layer.children.push_back(experts_of(d, experts, width, bias));
      });
  add_frame(tree, d, groups);
  const std::uint64_t window = config.optional_number("sliding_window", 512).value_or(0);
  const auto windowed = layers_where(d.layers, is_windowed);
  const auto full = layers_where(d.layers, [&](std::uint64_t i) { return !is_windowed(i); });
  if (!full.empty()) tree.attention.push_back(geometry(k.full, full));
  if (!windowed.empty()) tree.attention.push_back(geometry(k.windowed, windowed, window));
  add_prediction(tree, d, k.windowed, read_mtp_layers(config, 0), window);
  add_step_vision(config, tree, d.hidden);
  const bool sees = config.config().architecture().find("3p7") != std::string::npos;
  if (sees && tree.towers.empty())
    tree.not_counted.push_back(
        {"vision tower and projector, which this config does not describe", std::nullopt});
}

constexpr std::string_view kStepArchitectures[] = {"Step3p5ForCausalLM", "Step3p7ForConditionalGeneration",
                                                   "Step3p7FlashForCausalLM", "Step3p7ForCausalLM"};
constexpr std::string_view kStepTypes[] = {"step3p5", "step3p7"};

}  // namespace

const Family kStep3p5 = {"step3p5", "Step 3.5, 3.7", kStepArchitectures, kStepTypes,
                         {},        describe_step,   forward_step3p5};

}  // namespace assay::families
