// openPangu with experts: Ultra MoE (DeepSeek-V3's attention and experts between four norms a layer) and Pro MoE 2 (openPangu-R:
// keys under a norm, and beside them learnt ones that every token attends to). Sources: vLLM 0.32's openpangu.py and
// openpangu_mtp.py, Huawei's configuration and modeling of Ultra MoE, whose names of keys are other than vLLM's.
#include "core/model/families/all_mixtures.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/own_code_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::string_view kShared = "n_shared_experts|num_shared_experts",
                           kDenseFirst = "first_k_dense_replace|num_dense_layers";

void add_pangu_norms(Module& layer, const Quantity& hidden, bool sandwich) {
  if (!sandwich) return add_pre_norms(layer, hidden);
  add_norm(layer, "input_layernorm", hidden, Role::input_norm);
  add_norm(layer, "post_attention_layernorm", hidden, Role::post_attention_norm);
  add_norm(layer, "pre_mlp_layernorm", hidden, Role::pre_feedforward_norm);
  add_norm(layer, "post_mlp_layernorm", hidden, Role::post_feedforward_norm);
}

// Dense layers, then those with experts, then those of prediction, all with this attention.
void add_pangu_layers(ConfigReader& config, ModuleTree& tree, const Decoder& d, const Module& attend,
                      Mixture m, std::uint64_t dense, std::uint64_t mtp) {
  const bool sandwich = config.flag("sandwich_norm", false);
  if (config.flag("router_enable_expert_bias", false)) m.correction = "e_score_correction_bias";
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return i < dense ? "dense layers" : "MoE layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pangu_norms(layer, d.hidden, sandwich);
        layer.children = {attend, i < dense ? gated_mlp(d.mlp()) : mixture(m)};
      });
  add_frame(tree, d, groups);
  if (mtp == 0) return;
  Module layer = layers("model.layers.{layer}", "", layers_after(d.layers, mtp));
  add_pangu_norms(layer, d.hidden, sandwich);
  layer.children = {attend, mixture(m)};
  add_mtp(tree, d, std::move(layer), "model.embed_tokens.weight", "lm_head.weight");
}

void describe_pangu_ultra(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 153600, .hidden = 7680, .intermediate = 18432, .layers = 61, .heads = 128},
      HeadDim::unused);
  LatentAttention a;
  a.hidden = d.hidden, a.heads = d.heads;
  a.q_rank = config.optional_size("q_lora_rank|attention_q_lora_dim", 1536);
  a.kv_rank = config.size("kv_lora_rank|attention_kv_lora_dim", 512);
  a.nope_dim = config.size("qk_nope_head_dim|attention_qk_dim", 128);
  a.rope_dim = config.size("qk_rope_head_dim|attention_qk_rope_dim", 64);
  a.v_dim = config.size("v_head_dim|attention_v_dim", 128);
  Mixture m{d.hidden,
            read_experts(config, tree, "n_routed_experts|num_routed_experts", 256, "num_experts_per_tok", 8),
            config.size("moe_intermediate_size", 2048)};
  if (const std::uint64_t shared = config.optional_number(kShared, 1).value_or(0); shared > 0)
    m.shared_width = Quantity("num_shared_experts", shared) * m.expert_width;
  const std::uint64_t mtp = read_mtp_layers(config, 1);
  add_pangu_layers(config, tree, d, attention(a), m, config.number(kDenseFirst, 3), mtp);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  if (mtp > 0) tree.mtp_attention.push_back(geometry(a, layers_after(d.layers, mtp)));
}

// Keys and values of learnt tokens stand before those of the text.
struct SinkAttention {
  Quantity hidden, heads, kv_heads, qk_dim, v_dim, sinks;
  bool sink_values = false, bias = false;
};
Module attention_of(const SinkAttention& a) {
  Module module{"self_attn", "attention with learnt keys", {}, {}, {}};
  const Quantity q = a.heads * a.qk_dim, k = a.kv_heads * a.qk_dim, v = a.kv_heads * a.v_dim;
  const std::uint64_t h = a.heads.value(), kv = a.kv_heads.value();
  add_linear(module,
             {.name = "qkv_proj",
              .in = a.hidden,
              .out = q + k + v,
              .role = Role::qkv,
              .part = Part::attention,
              .partition = Partition::columns,
              .members = {{Role::q, q.value(), h}, {Role::k, k.value(), kv}, {Role::v, v.value(), kv}},
              .bias = a.bias});
  add_linear(module, {.name = "o_proj",
                      .in = a.heads * a.v_dim,
                      .out = a.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = h,
                      .bias = a.bias});
  add_norm(module, "k_layernorm", a.qk_dim, Role::k_norm, false, Part::attention);
  const auto learnt = [&](const std::string& name, const Quantity& width) {
    TensorSpec spec = parameter(name, {a.sinks, a.kv_heads, width}, Role::sinks, Part::attention);
    spec.parallel = {Partition::columns, 1, {{Role::sinks, kv, kv}}};
    module.tensors.push_back(std::move(spec));
  };
  learnt("param_sink_key", a.qk_dim);
  if (a.sink_values) learnt("param_sink_value", a.v_dim);
  return module;
}
AttentionGeometry geometry_of(const SinkAttention& a, std::vector<std::uint64_t> layers) {
  AttentionGeometry g;
  g.layers = std::move(layers);
  g.heads = a.heads.value(), g.kv_heads = a.kv_heads.value();
  g.qk_head_dim = a.qk_dim.value(), g.v_head_dim = a.v_dim.value();
  return g;
}

// Nobody has its configuration class at hand: what a config omits has no default.
void describe_pangu_pro2(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.has("kv_lora_rank"),
                 "kv_lora_rank is there: latent attention is not described here");
  Decoder d;
  d.vocabulary = config.size("vocab_size"), d.hidden = config.size("hidden_size");
  d.intermediate = config.size("intermediate_size");
  config.size("num_hidden_layers");
  d.layers = read_layers(config, "num_hidden_layers", 1);
  d.heads = config.size("num_attention_heads"), d.kv_heads = config.size("num_key_value_heads");
  config.require_divides(d.kv_heads, d.heads);
  d.tied = config.tied_embeddings(false);
  note_sizes(tree, d);
  SinkAttention a{d.hidden,
                  d.heads,
                  d.kv_heads,
                  config.size("qk_nope_dim") + config.size("qk_rope_dim"),
                  config.size("v_channels"),
                  config.size("param_sink_number")};
  a.sink_values = config.flag("param_sink_with_value", false);
  a.bias = config.flag("attention_bias|bias", false);
  config.size("n_routed_experts"), config.size("num_experts_per_tok");
  Mixture m{d.hidden, read_experts(config, tree, "n_routed_experts", 1, "num_experts_per_tok", 1),
            config.size("moe_intermediate_size")};
  if (const std::uint64_t shared = config.optional_number("n_shared_experts").value_or(0); shared > 0)
    m.shared_width = Quantity("n_shared_experts", shared) * m.expert_width;
  const std::uint64_t mtp = read_mtp_layers(config, 0);
  add_pangu_layers(config, tree, d, attention_of(a), m, config.number("first_k_dense_replace", 0), mtp);
  tree.attention.push_back(geometry_of(a, all_layers(d.layers)));
  if (mtp > 0) tree.mtp_attention.push_back(geometry_of(a, layers_after(d.layers, mtp)));
}

constexpr std::string_view kPanguUltraArchitectures[] = {"PanguUltraMoEForCausalLM"},
                           kPanguUltraTypes[] = {"pangu_ultra_moe"};
constexpr std::string_view kPanguPro2Architectures[] = {"PanguProMoEV2ForCausalLM"};

}  // namespace

const Family kPanguUltraMoe = {
    "pangu_ultra_moe",    "openPangu Ultra MoE", kPanguUltraArchitectures, kPanguUltraTypes, {},
    describe_pangu_ultra, forward_pangu_ultra};
const Family kPanguProMoe2 = {
    "pangu_pro_moe_v2", "openPangu Pro MoE 2 (openPangu-R)", kPanguPro2Architectures, {}, {},
    describe_pangu_pro2};

}  // namespace assay::families
