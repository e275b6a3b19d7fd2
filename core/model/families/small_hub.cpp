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

// A MiniMind before the third: no norms of queries, experts beside which a token visits others always.
struct OldNames {
  std::string attention, q, k, v, o, mlp, gate, up, down, input_norm, mlp_norm, layer;
  Frame frame;
};

std::uint64_t in_multiples(double width, std::uint64_t of) {
  return of * ((static_cast<std::uint64_t>(width) + of - 1) / of);
}

// `shared`: how many such experts, each a module of a list or one alone.
Module old_mixture(const Decoder& d, const OldNames& names, const Experts& experts, std::uint64_t shared,
                   bool listed) {
  const GatedMlp one{d.hidden, d.intermediate, "",       Part::routed_expert,
                     false,    names.gate,     names.up, names.down};
  Module moe{names.mlp, "mixture of experts", {}, {}, {}};
  add_router(moe, "gate", d.hidden, experts.count);
  moe.children = {routed_experts(one, experts.count, experts.active)};
  if (shared == 0) return moe;
  Module always = routed_experts(one, Quantity("n_shared_experts", shared), shared,
                                 listed ? "shared_experts.{expert}" : "shared_experts");
  for (TensorSpec& spec : always.tensors) spec.part = Part::shared_expert;
  if (!listed) always.repeat = {};
  moe.children.push_back(std::move(always));
  return moe;
}

void describe_old_minimind(ConfigReader& config, ModuleTree& tree, const Decoder& d, const OldNames& names,
                           bool listed) {
  HeadAttention a = d.attention();
  a.path = names.attention, a.q = names.q, a.k = names.k, a.v = names.v, a.o = names.o;
  Module layer = layers(names.layer, "layers", all_layers(d.layers));
  add_norm(layer, names.input_norm, d.hidden, Role::input_norm);
  add_norm(layer, names.mlp_norm, d.hidden, Role::pre_feedforward_norm);
  layer.children.push_back(attention(a));
  if (config.flag("use_moe", false)) {
    const Experts experts = read_experts(config, tree, "n_routed_experts", 4, "num_experts_per_tok", 2);
    const std::uint64_t shared = listed ? config.number("n_shared_experts", 1)
                                 : config.flag("n_shared_experts", true) ? 1
                                                                         : 0;
    config.require(shared <= 1000, "n_shared_experts asks for more than 1000");
    layer.children.push_back(old_mixture(d, names, experts, shared, listed));
  } else {
    layer.children.push_back(gated_mlp(
        {d.hidden, d.intermediate, names.mlp, Part::dense_mlp, false, names.gate, names.up, names.down}));
  }
  add_frame(tree, d, {std::move(layer)}, names.frame);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// MiniMind 2 as first published (MiniMindLM), under the names of Llama's own code.
void describe_minimind_lm(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 6400), d.hidden = config.size("dim", 512);
  d.layers = read_layers(config, "n_layers", 8);
  d.heads = config.size("n_heads", 8), d.kv_heads = config.optional_size("n_kv_heads", 2).value_or(d.heads);
  config.require_divides(d.kv_heads, d.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "dim / n_heads");
  const auto narrowed = std::floor(8.0 * static_cast<double>(d.hidden.value()) / 3);
  d.intermediate = config.size("hidden_dim", in_multiples(narrowed, config.size("multiple_of", 64).value()));
  d.tied = true;
  note_sizes(tree, d);
  describe_old_minimind(config, tree, d,
                        {"attention",
                         "wq",
                         "wk",
                         "wv",
                         "wo",
                         "feed_forward",
                         "w1",
                         "w3",
                         "w2",
                         "attention_norm",
                         "ffn_norm",
                         "layers.{layer}",
                         {"tok_embeddings", "norm", "output"}},
                        false);
}

void describe_minimind2(ConfigReader& config, ModuleTree& tree) {
  const auto narrowed = std::floor(8.0 * static_cast<double>(config.size("hidden_size", 512).value()) / 3);
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 6400,
                                  .hidden = 512,
                                  .intermediate = in_multiples(narrowed, 64),
                                  .layers = 8,
                                  .heads = 8,
                                  .kv_heads = 2,
                                  .tied = true});
  describe_old_minimind(config, tree, d,
                        {"self_attn",
                         "q_proj",
                         "k_proj",
                         "v_proj",
                         "o_proj",
                         "mlp",
                         "gate_proj",
                         "up_proj",
                         "down_proj",
                         "input_layernorm",
                         "post_attention_layernorm",
                         "model.layers.{layer}",
                         {}},
                        true);
}

// The third's class has none of these keys.
void describe_minimind(ConfigReader& config, ModuleTree& tree) {
  if (config.config().architecture() == "MiniMindLM" || config.has("n_layers"))
    return describe_minimind_lm(config, tree);
  if (config.has("n_routed_experts|n_shared_experts")) return describe_minimind2(config, tree);
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

// M32: what scores experts is an attention among them (queries, keys and values of each), and heads may be wider than the model.
Module yuan_mixture(ConfigReader& moe, ModuleTree& tree, const Quantity& hidden) {
  for (const char* key : {"moe_num_experts", "moe_top_k", "ffn_hidden_size"}) moe.size(key);
  const Experts experts = read_experts(moe, tree, "moe_num_experts", 1, "moe_top_k", 1);
  Module router{"gate", std::string(title(Part::router)), {}, {}, {}};
  for (const char* matrix : {"query", "key", "value"}) add_router(router, matrix, hidden, experts.count);
  moe.require(moe.has("gated_linear_unit"), "gated_linear_unit is missing: are its experts gated?");
  GatedMlp one{hidden, moe.size("ffn_hidden_size")};
  one.down = "w2";
  if (moe.flag("gated_linear_unit", true))
    one.fused = "w1";
  else
    one.gate = "", one.up = "w1";
  Module module{"mlp", "mixture of experts", {}, {}, {}};
  module.children = {std::move(router), routed_experts(one, experts.count, experts.active)};
  return module;
}

void describe_yuan2(ConfigReader& config, ModuleTree& tree) {
  const auto moe_section = config.config().text_section("moe_config");
  config.require(moe_section.has_value() || !config.flag("use_moe", false), "moe_config is missing");
  for (const char* key : {"vocab_size", "hidden_size", "num_attention_heads"})
    config.size(key);  // required: no default of the class is a published model's
  if (!moe_section) config.size("intermediate_size");
  const Decoder d =
      read_decoder(config, tree,
                   {.vocabulary = 1, .hidden = 1, .intermediate = 1, .layers = 24, .heads = 1, .tied = true});
  HeadAttention a = d.attention();
  a.kv_heads = a.heads;
  if (const auto width = config.optional_size("attention_projection_size"))
    a.head_dim = config.quotient(*width, a.heads, "attention_projection_size / num_attention_heads");
  const bool shared = config.flag("use_shareqk", false);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  Module attend = shared ? shared_attention(a) : attention(a);
  if (!shared) attend.children.push_back(localized_filter(d.hidden));
  layer.children = {std::move(attend)};
  if (moe_section) {
    ConfigReader moe(*moe_section, "moe_config");
    layer.children.push_back(yuan_mixture(moe, tree, d.hidden));
  } else {
    layer.children.push_back(gated_mlp(d.mlp()));
  }
  add_frame(tree, d, {std::move(layer)});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kMinimindArchitectures[] = {"MiniMindForCausalLM", "MiniMindLM"},
                           kMinimindTypes[] = {"minimind"}, kYuan2Architectures[] = {"YuanForCausalLM"},
                           kYuan2Types[] = {"yuan"};

}  // namespace

const Family kMinimind = {"minimind", "MiniMind",        kMinimindArchitectures, kMinimindTypes,
                          {},         describe_minimind, forward_minimind};
const Family kYuan2 = {"yuan2", "Yuan 2", kYuan2Architectures, kYuan2Types, {}, describe_yuan2};

}  // namespace assay::families
