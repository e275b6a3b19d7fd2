// Kimi K2.5 to K2.7: DeepSeek-V3 that sees. Kimi Linear: layers of KDA, and latent attention without rotary positions in
// one of four. Kimi K3: that with gates, experts in a latent space and residuals that attend to earlier ones.
#include <algorithm>

#include "core/model/families/all.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/forward.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/families/towers.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_k25(ConfigReader& config, ModuleTree& tree) {
  describe_deepseek_v3(config, tree, is_nested(config) ? "language_model." : "");
  add_moonvit(config, tree, Quantity("hidden_size", tree.hidden_size));
}

Hyperparameters read_k25(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(config, tree, {});
}

// linear_attn_config counts layers from 1.
struct Linear {
  KimiDeltaAttention kda;
  std::vector<std::uint64_t> full;
};
// Without it, under the keys of transformers' class.
Linear read_linear_of_class(ConfigReader& config, const Decoder& d) {
  Linear l;
  l.kda = {d.hidden, config.size("linear_num_heads", 32), config.size("linear_head_dim", 128),
           config.size("linear_conv_kernel_dim", 4)};
  l.kda.decay_shape = {1, 1, l.kda.heads, 1};
  const auto types = layer_texts(config, "layer_types", d.layers);
  for (std::uint64_t i = 0; i < d.layers.value(); ++i) {
    if (types ? (*types)[i] == "full_attention" : i != 0 && i % 4 == 0) l.full.push_back(i);
  }
  return l;
}

Linear read_linear(ConfigReader& config, const Decoder& d) {
  const auto nested = config.config().text_section("linear_attn_config");
  if (!nested) return read_linear_of_class(config, d);
  ConfigReader linear(*nested, "linear_attn_config");
  Linear l;
  l.kda = {d.hidden, linear.size("num_heads", 32), linear.size("head_dim", 128),
           linear.size("short_conv_kernel_size", 4)};
  l.kda.full_rank_gate = linear.flag("use_full_rank_gate", false);
  // K3 stores as many as a head is wide, and uses the first ones.
  if (l.kda.full_rank_gate)
    l.kda.decay_shape = {l.kda.head_dim};
  else
    l.kda.decay_shape = {1, 1, l.kda.heads, 1};
  for (const std::uint64_t layer :
       linear.numbers("full_attn_layers").value_or(std::vector<std::uint64_t>{})) {
    config.require(layer >= 1 && layer <= d.layers.value(),
                   "linear_attn_config.full_attn_layers names a layer there is not");
    l.full.push_back(layer - 1);
  }
  std::sort(l.full.begin(), l.full.end());
  return l;
}

Mixture read_mixture(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  Mixture m{d.hidden,
            read_experts(config, tree, "num_experts|num_local_experts", 256,
                         "num_experts_per_token|num_experts_per_tok", 8),
            config.size("moe_intermediate_size", 1024)};
  m.path = "block_sparse_moe";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  m.shared_names = {"gate_proj", "up_proj", "down_proj"};
  m.correction = "gate.e_score_correction_bias";
  const std::uint64_t shared = config.optional_number("num_shared_experts|n_shared_experts", 1).value_or(0);
  if (shared > 0) m.shared_width = Quantity("num_shared_experts", shared) * m.expert_width;
  m.latent = config.optional_size("routed_expert_hidden_size");
  m.latent_down = "routed_expert_down_proj", m.latent_up = "routed_expert_up_proj";
  if (m.latent && config.flag("latent_moe_use_norm", false)) m.latent_norm = "routed_expert_norm";
  return m;
}

// K3's release has the way into the experts' space and back in BF16, though its quantization_config does not spare it.
void keep_latents_plain(Module& module) {
  for (TensorSpec& spec : module.tensors)
    if (spec.role == Role::latent_down || spec.role == Role::latent_up) spec.quantizable = false;
  for (Module& child : module.children) keep_latents_plain(child);
}

// K3: the input of attention and of the MLP is a mix of the residuals kept every attn_res_block_size layers, by
// softmax(proj(norm(row))).
void add_residual(Module& module, const std::string& what, const Quantity& hidden) {
  add_norm(module, what + "_norm", hidden, Role::residual_mix);
  add_linear(module, {.name = what + "_proj",
                      .in = hidden,
                      .out = 1,
                      .role = Role::residual_mix,
                      .part = Part::norm,
                      .quantizable = false});
}

void describe_linear(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 163840, .hidden = 2304, .intermediate = 9216, .layers = 27, .heads = 32},
      HeadDim::unused);
  LatentAttention a = read_latent_attention(config, d, {.q_rank = std::nullopt});
  if (config.flag("mla_use_output_gate", false)) a.gate = "g_proj";
  const Linear l = read_linear(config, d);
  Module experts = mixture(read_mixture(config, tree, d));
  keep_latents_plain(experts);
  const bool residuals = config.optional_number("attn_res_block_size").value_or(0) > 0;
  const std::uint64_t dense = config.number("first_k_dense_replace", 1);
  const std::uint64_t every = config.size("moe_layer_freq", 1).value();
  const auto is_full = [&](std::uint64_t i) { return std::binary_search(l.full.begin(), l.full.end(), i); };
  const auto is_sparse = [&](std::uint64_t i) { return i >= dense && i % every == 0; };

  const std::string before = is_nested(config) ? "language_model." : "", prefix = before + "model.";
  auto groups = group_layers(
      prefix + "layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_full(i) ? "MLA" : "KDA") + (is_sparse(i) ? " MoE layers" : " dense layers");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        if (residuals) add_residual(layer, "self_attention_res", d.hidden);
        if (residuals) add_residual(layer, "mlp_res", d.hidden);
        layer.children = {is_full(i) ? attention(a) : kimi_delta_attention(l.kda),
                          is_sparse(i) ? experts : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups, frame_under(prefix, before + "lm_head"));
  if (residuals) {
    Module last{prefix.substr(0, prefix.size() - 1), "last mix of residuals", {}, {}, {}};
    add_residual(last, "output_attn_res", d.hidden);
    tree.modules.insert(tree.modules.end() - 2, std::move(last));
  }
  tree.attention.push_back(geometry(a, layers_where(d.layers, is_full)));
  tree.recurrent.push_back(
      geometry(l.kda, layers_where(d.layers, [&](std::uint64_t i) { return !is_full(i); })));
  const std::uint64_t predicted = read_mtp_layers(config, 0);
  if (predicted > 0)
    tree.not_counted.push_back(
        {"multi-token prediction layers the config names; none is published", std::nullopt});
  add_moonvit(config, tree, d.hidden);
}

// Where they attend they rotate nothing. The context has a name of its own in the first release.
Hyperparameters forward_linear(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.epsilon = 1e-5, .rope = {.context = 1048576}, .rotates = false});
  h.context = config.number("max_position_embeddings|model_max_length", 1048576);
  read_groups(config, tree, true, h);
  if (config.is_null("routed_scaling_factor") || !config.has("routed_scaling_factor"))
    h.routing.scale = 2.446;
  return h;
}

constexpr std::string_view kK25Architectures[] = {"KimiK25ForConditionalGeneration",
                                                  "Kimi_K25ForConditionalGeneration"};
constexpr std::string_view kK25Types[] = {"kimi_k25"};
constexpr std::string_view kLinearArchitectures[] = {"KimiLinearForCausalLM"};
constexpr std::string_view kLinearTypes[] = {"kimi_linear"};
constexpr std::string_view kK3Architectures[] = {"KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM"};
constexpr std::string_view kK3Types[] = {"kimi_k3"};

}  // namespace

const Family kKimiK25 = {"kimi_k25", "Kimi K2.5, K2.6, K2.7", kK25Architectures, kK25Types, {}, describe_k25,
                         read_k25};
const Family kKimiLinear = {"kimi_linear",   "Kimi Linear", kLinearArchitectures, kLinearTypes, {},
                            describe_linear, forward_linear};
const Family kKimiK3 = {"kimi_k3", "Kimi K3",       kK3Architectures, kK3Types,
                        {},        describe_linear, forward_linear};

}  // namespace assay::families
