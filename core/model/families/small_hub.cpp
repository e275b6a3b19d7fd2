// Small decoders whose code stands beside their weights. MiniMind 3 (github.com/jingyaogong/minimind): a Qwen3 under keys of its
// own. Yuan 2 (github.com/IEIT-Yuan/Yuan-2.0): convolutions over a token and the one before it filter what queries and keys are
// made of, or both are made of one matrix.
#include <cmath>

#include "core/model/families/all_more.h"
#include "core/model/families/hub_forward.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_minimind(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.has("n_routed_experts|n_shared_experts"),
                 "n_routed_experts: MiniMind 2 and older, which norm no queries, are not described");
  const Quantity hidden = config.size("hidden_size", 768);
  const auto wide =
      static_cast<std::uint64_t>(std::ceil(static_cast<double>(hidden.value()) * std::acos(-1.0) / 64)) * 64;
  LlamaKin kin = {.sizes = {.vocabulary = 6400,
                            .hidden = 768,
                            .intermediate = wide,
                            .layers = 8,
                            .heads = 8,
                            .kv_heads = 4,
                            .tied = true},
                  .bias_keys = ""};
  kin.heads.qk_norm = QkNorm::per_head;
  if (config.flag("use_moe", false)) {
    kin.experts = ExpertKin{.count_keys = "num_experts",
                            .count = 4,
                            .active_keys = "num_experts_per_tok",
                            .active = 1,
                            .width_keys = "moe_intermediate_size",
                            .width = config.size("intermediate_size", wide).value()};
  }
  describe_kin(config, tree, kin);
}

// Convolutions of two taps: each joins a token with the one before it.
Module localized_filter(const Quantity& hidden) {
  const Quantity half("hidden_size / 2", hidden.value() / 2);
  Module module{"lf_gate", "localized filtering", {}, {}, {}};
  const auto add = [&](std::string name, const std::vector<Quantity>& shape) {
    module.tensors.push_back(parameter(std::move(name), shape, Role::convolution, Part::attention));
  };
  add("conv1.weight", {half, hidden, 2, 1});
  add("conv1.bias", {half});
  add("conv2.weight", {hidden, half, 2, 1});
  add("conv2.bias", {hidden});
  add_norm(module, "output_layernorm", hidden, Role::other, false, Part::attention);
  return module;
}

// Queries and keys of one matrix, told apart by a factor and a shift of each value.
Module shared_attention(const HeadAttention& a) {
  HeadAttention rest = a;
  rest.q = "qk_proj", rest.has_k = false;
  Module module = attention(rest);
  for (const char* name : {"qk_weight", "qk_bias"})
    module.tensors.push_back(parameter(name, {2, a.hidden}, Role::other, Part::attention));
  return module;
}

void describe_yuan2(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("use_moe", false) && !config.has("moe_config"),
                 "moe_config: Yuan 2 with experts (M32) is not described");
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_attention_heads"})
    config.size(key);  // required: no default of the class is a published model's
  const Decoder d =
      read_decoder(config, tree,
                   {.vocabulary = 1, .hidden = 1, .intermediate = 1, .layers = 24, .heads = 1, .tied = true});
  HeadAttention a = d.attention();
  a.kv_heads = a.heads;
  const bool shared = config.flag("use_shareqk", false);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  Module attend = shared ? shared_attention(a) : attention(a);
  if (!shared) attend.children.push_back(localized_filter(d.hidden));
  layer.children = {std::move(attend), gated_mlp(d.mlp())};
  add_frame(tree, d, {std::move(layer)});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kMinimindArchitectures[] = {"MiniMindForCausalLM"},
                           kMinimindTypes[] = {"minimind"}, kYuan2Architectures[] = {"YuanForCausalLM"},
                           kYuan2Types[] = {"yuan"};

}  // namespace

const Family kMinimind = {"minimind", "MiniMind 3",      kMinimindArchitectures, kMinimindTypes,
                          {},         describe_minimind, forward_minimind};
const Family kYuan2 = {"yuan2", "Yuan 2", kYuan2Architectures, kYuan2Types, {}, describe_yuan2};

}  // namespace assay::families
