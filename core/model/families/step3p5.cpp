// Step 3.5 and 3.7: windows in three layers of four with more heads of their own, a gate for each head's output, experts
// stacked in three tensors beside a shared one, three layers for prediction with a head each; 3.7 sees. Step 5 (vLLM 0.33,
// vllm/models/step5): the same with an indexer in layers that see all, and layers for prediction as their number says.
#include <algorithm>

#include "core/model/families/all.h"
#include "core/model/families/all_more.h"
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
StepHeads read_step_heads(ConfigReader& config, const Decoder& d, bool gated) {
  StepHeads k;
  k.full = d.attention();
  k.full.qk_norm = QkNorm::per_head;
  if (gated) k.full.gate = "g_proj";
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
std::function<bool(std::uint64_t)> step_sparse_layers(ConfigReader& config, const Quantity& count,
                                                      std::uint64_t dense_first) {
  if (const auto types = layer_texts(config, "mlp_layer_types", count, true))
    return [types](std::uint64_t i) { return (*types)[i] == "sparse"; };
  std::vector<std::uint64_t> named;
  if (config.is_list("moe_layers_enum|moe_layer_list")) {
    named = *config.numbers("moe_layers_enum|moe_layer_list");
  } else if (config.has("moe_layers_enum")) {
    named = step_layers_listed(config);
  } else {
    const std::uint64_t dense = config.number("first_k_dense_replace", dense_first);
    return [dense](std::uint64_t i) { return i >= dense; };
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

// Which layers look at a window, which have experts, and what they are made of.
struct StepLayers {
  std::function<bool(std::uint64_t)> is_windowed, is_sparse;
  Module full, windowed, dense, shared, experts;
  std::string title(std::uint64_t i) const {
    return std::string(is_sparse(i) ? "MoE layers" : "dense layers") +
           (is_windowed(i) ? " with a window" : " that see all");
  }
  void fill(Module& layer, std::uint64_t i) const {
    layer.children = {is_windowed(i) ? windowed : full};
    if (!is_sparse(i)) return layer.children.push_back(dense);
    layer.children.push_back(shared);
    layer.children.push_back(experts);
  }
};

// What a layer for prediction has besides: a projection, norms, and an output head of its own.
Module step_head(const Decoder& d) {
  Module own = mtp_own(d.hidden, {.final_norm = "transformer.shared_head.norm"});
  add_linear(own, {.name = "transformer.shared_head.output",
                   .in = d.hidden,
                   .out = d.vocabulary,
                   .role = Role::output_head,
                   .part = Part::mtp,
                   .partition = Partition::vocabulary,
                   .quantizable = false});
  return own;
}

void note_step_attention(std::vector<AttentionGeometry>& into, const StepHeads& k, const StepLayers& kinds,
                         const std::vector<std::uint64_t>& indices, std::uint64_t window) {
  std::vector<std::uint64_t> full, windowed;
  for (const std::uint64_t i : indices) (kinds.is_windowed(i) ? windowed : full).push_back(i);
  if (!full.empty()) into.push_back(geometry(k.full, full));
  if (!windowed.empty()) into.push_back(geometry(k.windowed, windowed, window));
}

// Behind the last layer, each as the lists of layers say that reach so far.
void add_prediction(ModuleTree& tree, const Decoder& d, const StepHeads& k, const StepLayers& kinds,
                    std::uint64_t count, std::uint64_t window) {
  const auto indices = layers_after(d.layers, count);
  for (const bool windowed : {true, false}) {
    for (const bool sparse : {false, true}) {
      std::vector<std::uint64_t> alike;
      for (const std::uint64_t i : indices) {
        if (kinds.is_windowed(i) == windowed && kinds.is_sparse(i) == sparse) alike.push_back(i);
      }
      if (alike.empty()) continue;
      Module layer = layers("model.layers.{layer}", "multi-token prediction", alike);
      add_pre_norms(layer, d.hidden);
      kinds.fill(layer, alike.front());
      layer.children.push_back(step_head(d));
      tree.mtp.push_back(std::move(layer));
    }
  }
  note_step_attention(tree.mtp_attention, k, kinds, indices, window);
}

// What a class has where the config is silent.
struct StepClass {
  DecoderDefaults sizes;
  std::uint64_t experts, active, width, dense_first;
  bool indexed = false;  // Step 5
};
constexpr std::uint64_t kStep3Shared = 1280;

// A key and a summary of eight tokens beside it are compared with queries of their own, weighed (Step5Attention of vLLM 0.33,
// whose ssmax_s nothing reads).
Module step_indexer(ConfigReader& config, const HeadAttention& a) {
  const auto section = config.config().text_section("sparse_config");
  config.require(section.has_value(), "sparse_config is missing: Step 5 without an indexer is not described");
  ConfigReader sparse(*section, "sparse_config");
  config.require(sparse.flag("enabled", true), "sparse_config.enabled is false: Step 5 has an indexer");
  const Quantity width = sparse.size("proxy_dim", 256), heads = sparse.size("sparse_indexer_num_heads", 16),
                 keys = sparse.size("sparse_indexer_num_k_heads", 1);
  Module module{"", "indexer", {}, {}, {}};
  const auto matrix = [&](std::string name, const Quantity& out, Role role) {
    add_linear(module, {.name = std::move(name),
                        .in = a.hidden,
                        .out = out,
                        .role = role,
                        .part = Part::attention,
                        .quantizable = false});
  };
  matrix("sparse_indexer_q", heads * width, Role::indexer_q);
  matrix("sparse_indexer_k", keys * width, Role::indexer_k);
  matrix("sparse_indexer_z", keys * width, Role::other);
  matrix("sparse_indexer_w", heads, Role::indexer_weights);
  add_norm(module, "sparse_indexer_q_norm", width, Role::other, false, Part::attention);
  add_norm(module, "sparse_indexer_k_norm", width, Role::indexer_k_norm, true, Part::attention);
  module.tensors.push_back(parameter("ssmax_s", {a.heads}, Role::other, Part::attention));
  return module;
}

// Step 5's list reaches over the layers for prediction; without one every other layer has a window.
std::function<bool(std::uint64_t)> step_windows(ConfigReader& config, const Quantity& count,
                                                std::uint64_t mtp, bool indexed) {
  const auto types = layer_texts(config, "layer_types", count, true);
  if (!indexed) {
    const std::uint64_t layers = count.value();
    return [types, layers](std::uint64_t i) {
      return i >= layers || (types && (*types)[i] == "sliding_attention");
    };
  }
  if (!config.has("sliding_window")) return [](std::uint64_t) { return false; };
  if (!types) return [](std::uint64_t i) { return i % 2 == 0; };
  config.require(types->size() >= count.value() + mtp,
                 "layer_types does not reach over the layers for prediction");
  return [types](std::uint64_t i) { return (*types)[i] == "sliding_attention"; };
}

void describe_step_of(ConfigReader& config, ModuleTree& tree, const StepClass& of) {
  Decoder d = read_decoder(config, tree, of.sizes, HeadDim::unused);
  d.kv_heads = config.size("num_attention_groups|num_key_value_heads", 8);
  config.require_divides(d.kv_heads, d.heads);
  d.head_dim = of.indexed && !config.has("head_dim")
                   ? config.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads")
                   : config.size("head_dim", 128);
  StepHeads k = read_step_heads(config, d, !of.indexed || config.flag("use_head_wise_attn_gate", false));
  if (of.indexed) k.windowed.heads = config.size("swa_num_attention_heads", k.windowed.heads);
  const Experts experts =
      read_experts(config, tree, "moe_num_experts|n_routed_experts|num_experts|num_local_experts", of.experts,
                   "moe_top_k|num_experts_per_tok", of.active);
  const Quantity width = config.size("moe_intermediate_size", of.width);
  const Quantity all_chosen = Quantity(experts.active) * width;
  GatedMlp shared{d.hidden,
                  config.size("share_expert_dim|share_expert_dims", of.indexed ? all_chosen : kStep3Shared),
                  "share_expert"};
  shared.part = Part::shared_expert;
  const bool bias = config.flag("use_moe_router_bias", true);
  const std::uint64_t mtp = read_mtp_layers(config, 0);

  const auto listed = step_sparse_layers(config, d.layers, of.dense_first);
  const std::uint64_t own_layers = d.layers.value();
  StepLayers kinds{
      step_windows(config, d.layers, mtp, of.indexed),
      [listed, own_layers, of](std::uint64_t i) { return (of.indexed || i < own_layers) && listed(i); },
      attention(k.full),
      attention(k.windowed),
      gated_mlp(d.mlp()),
      gated_mlp(shared),
      experts_of(d, experts, width, bias)};
  if (of.indexed) kinds.full.children.push_back(step_indexer(config, k.full));
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers, [&](std::uint64_t i) { return kinds.title(i); },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        kinds.fill(layer, i);
      });
  add_frame(tree, d, groups);
  const std::uint64_t window = config.optional_number("sliding_window", 512).value_or(0);
  note_step_attention(tree.attention, k, kinds, all_layers(d.layers), window);
  add_prediction(tree, d, k, kinds, mtp, window);
  add_step_vision(config, tree, d.hidden);
  const bool sees = config.config().architecture().find("3p7") != std::string::npos;
  if (sees && tree.towers.empty())
    tree.not_counted.push_back(
        {"vision tower and projector, which this config does not describe", std::nullopt});
  if (of.indexed)
    tree.not_counted.push_back({"what the indexer caches, a summary for every eight tokens", 0});
}

void describe_step(ConfigReader& config, ModuleTree& tree) {
  describe_step_of(config, tree,
                   {{.vocabulary = 128815, .hidden = 4096, .intermediate = 11264, .layers = 45, .heads = 64},
                    288,
                    8,
                    1280,
                    3});
}
void describe_step5(ConfigReader& config, ModuleTree& tree) {
  describe_step_of(config, tree,
                   {{.vocabulary = 65536, .hidden = 5120, .intermediate = 13312, .layers = 48, .heads = 40},
                    16,
                    4,
                    10240,
                    1,
                    true});
}

constexpr std::string_view kStepArchitectures[] = {"Step3p5ForCausalLM", "Step3p7ForConditionalGeneration",
                                                   "Step3p7FlashForCausalLM", "Step3p7ForCausalLM"};
constexpr std::string_view kStepTypes[] = {"step3p5", "step3p7"};
constexpr std::string_view kStep5Architectures[] = {"Step5ForCausalLM", "Step5ForConditionalGeneration"};
constexpr std::string_view kStep5Types[] = {"step5", "step5_vl"};

}  // namespace

const Family kStep3p5 = {"step3p5", "Step 3.5, 3.7", kStepArchitectures, kStepTypes,
                         {},        describe_step,   forward_step3p5};
const Family kStep5 = {"step5", "Step 5", kStep5Architectures, kStep5Types, {}, describe_step5};

}  // namespace assay::families
