// Qwen3-Next and Qwen3.5, 3.6, 3.8: three layers of Gated DeltaNet to one of gated attention, dense or with experts
// beside a gated shared one, a layer for multi-token prediction; from 3.5 on they see. Intern-S2-Mobius is a Qwen3.5 whose
// layers take turns with a few banks of routed experts (source: vLLM 0.33's and SGLang 0.5.23's interns2_mobius.py).
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all.h"
#include "core/model/families/all_more.h"
#include "core/model/families/forward.h"
#include "core/model/families/towers.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Kind {
  DecoderDefaults decoder;
  std::uint64_t experts, experts_per_token, mtp_layers;
  bool fused;              // in_proj_qkvz
  Mixture::Stacks stacks;  // of the main layers: those of MTP keep their experts one by one
  bool banks = false;      // of routed experts stand beside the layers, which keep the shared expert
};

constexpr Kind kNext = {{.vocabulary = 151936,
                         .hidden = 2048,
                         .intermediate = 5632,
                         .layers = 48,
                         .heads = 16,
                         .kv_heads = 2,
                         .head_dim = 256},
                        512,
                        10,
                        1,
                        true,
                        Mixture::Stacks::none};
constexpr Kind kDense = {{.vocabulary = 248320,
                          .hidden = 4096,
                          .intermediate = 12288,
                          .layers = 32,
                          .heads = 16,
                          .kv_heads = 4,
                          .head_dim = 256},
                         0,
                         0,
                         0,
                         false,
                         Mixture::Stacks::none};
constexpr Kind kMoe = {{.vocabulary = 248320,
                        .hidden = 2048,
                        .intermediate = 0,
                        .layers = 40,
                        .heads = 16,
                        .kv_heads = 2,
                        .head_dim = 256},
                       256,
                       8,
                       0,
                       false,
                       Mixture::Stacks::output_major};

constexpr Kind kBanks = {kMoe.decoder, 256, 8, 0, false, Mixture::Stacks::output_major, true};

Mixture read_mixture(ConfigReader& config, ModuleTree& tree, const Decoder& d, const Kind& kind) {
  Mixture m{
      d.hidden,
      read_experts(config, tree, "num_experts", kind.experts, "num_experts_per_tok", kind.experts_per_token),
      config.size("moe_intermediate_size", 512)};
  m.shared_width = config.size("shared_expert_intermediate_size", 512);
  m.shared_path = "shared_expert";
  m.shared_gate = true;
  m.stacks = kind.stacks;
  return m;
}

GatedDeltaNet read_delta_net(ConfigReader& config, const Decoder& d, bool fused) {
  GatedDeltaNet n{d.hidden,
                  config.size("linear_num_key_heads", 16),
                  config.size("linear_num_value_heads", 32),
                  config.size("linear_key_head_dim", 128),
                  config.size("linear_value_head_dim", 128),
                  config.size("linear_conv_kernel_dim", 4),
                  fused};
  config.require_divides(n.key_heads, n.value_heads);
  return n;
}

// Layer i visits bank i % banks. A token may visit other experts in each of a bank's layers.
std::vector<Module> expert_banks(const std::string& prefix, const Decoder& d, const Quantity& banks,
                                 Mixture m) {
  m.path = "", m.shared_width.reset();
  const std::uint64_t each = d.layers.value() / banks.value(), more = d.layers.value() % banks.value();
  const std::uint64_t active = m.experts.active;
  const auto visits = [&](std::uint64_t bank) { return each + (bank < more ? 1 : 0); };
  return group_layers(
      prefix + "meta_mlp.{layer}", banks,
      [&](std::uint64_t i) { return fmt::format("banks of experts, each of {} layers", visits(i)); },
      [&](Module& bank, std::uint64_t i) {
        m.experts.active = std::min(m.experts.count.value(), active * visits(i));
        bank.children = {mixture(m)};
      });
}

// What a layer keeps where its experts are in a bank: a mixture without its router and its experts.
Module beside_bank(const Mixture& m) {
  Module module = mixture(m);
  module.title = "shared expert";
  module.children.pop_back();
  module.children.erase(module.children.begin());
  return module;
}

void add_layer_scales(Module& layer, const Quantity& hidden) {
  for (const char* name : {"attn_layer_scale", "ffn_layer_scale"})
    layer.tensors.push_back(parameter(name, {1, 1, hidden}, Role::layer_scale, Part::norm));
}

void describe_with(ConfigReader& config, ModuleTree& tree, const Kind& kind) {
  const Decoder d = read_decoder(config, tree, kind.decoder);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  a.gated_q = config.flag("attn_output_gate", true);
  const GatedDeltaNet n = read_delta_net(config, d, kind.fused);
  const bool moe = kind.experts != 0;
  const Mixture m = moe ? read_mixture(config, tree, d, kind) : Mixture{};

  const auto types = layer_texts(config, "layer_types", d.layers);
  const std::uint64_t interval = types ? 1 : config.size("full_attention_interval", 4).value();
  const auto is_full = [&](std::uint64_t i) {
    return types ? (*types)[i] == "full_attention" : (i + 1) % interval == 0;
  };
  const std::uint64_t step = moe && kind.fused ? config.size("decoder_sparse_step", 1).value() : 1;
  const auto dense = config.numbers("mlp_only_layers").value_or(std::vector<std::uint64_t>{});
  const auto is_sparse = [&](std::uint64_t i) {
    return moe && (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  };
  const std::string prefix = is_nested(config) ? "model.language_model." : "model.";
  const bool scaled = kind.banks && config.flag("layer_scale", false);
  const auto groups = group_layers(
      prefix + "layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_full(i) ? "attention" : "DeltaNet") +
               (is_sparse(i) ? " MoE layers" : " layers");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        if (scaled) add_layer_scales(layer, d.hidden);
        layer.children = {is_full(i) ? attention(a) : gated_delta_net(n), !is_sparse(i) ? gated_mlp(d.mlp())
                                                                          : kind.banks  ? beside_bank(m)
                                                                                        : mixture(m)};
      });
  add_frame(tree, d, groups, frame_under(prefix));
  if (kind.banks) {
    const auto banks = expert_banks(prefix, d, read_layers(config, "num_blocks", 4), m);
    tree.modules.insert(tree.modules.begin() + 1, banks.begin(), banks.end());
  }
  tree.attention.push_back(geometry(a, layers_where(d.layers, is_full)));
  tree.recurrent.push_back(geometry(n, layers_where(d.layers, [&](std::uint64_t i) { return !is_full(i); })));

  Mixture apart = m;
  apart.stacks = Mixture::Stacks::none;
  add_mtp_under_fc(tree, d, geometry(a, {}),
                   config.number("mtp_num_hidden_layers|num_nextn_predict_layers", kind.mtp_layers),
                   {attention(a), moe ? mixture(apart) : gated_mlp(d.mlp())});
  if (!kind.fused) add_qwen_vision(config, tree, "model.visual", 0);
}

void describe_next(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, kNext);
}
void describe_dense(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, kDense);
}
void describe_moe(ConfigReader& config, ModuleTree& tree) {
  describe_with(config, tree, kMoe);
}

void describe_banks(ConfigReader& config, ModuleTree& tree) {
  const auto dense = config.numbers("mlp_only_layers");
  config.require(!dense || dense->empty(),
                 "mlp_only_layers is set: Intern-S2-Mobius has been described without");
  describe_with(config, tree, kBanks);
}

Hyperparameters read_next(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 32768, .partial = true, .part = 0.25}});
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  return h;
}
// Always renormalized, whatever a config says.
Hyperparameters read_35(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 32768, .partial = true, .part = 0.25}});
  h.routing.renormalize = true;
  return h;
}

constexpr std::string_view kNextArchitectures[] = {"Qwen3NextForCausalLM"};
constexpr std::string_view kNextTypes[] = {"qwen3_next"};
constexpr std::string_view kDenseArchitectures[] = {"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"};
constexpr std::string_view kDenseTypes[] = {"qwen3_5", "qwen3_5_text"};
constexpr std::string_view kMoeArchitectures[] = {"Qwen3_5MoeForConditionalGeneration",
                                                  "Qwen3_5MoeForCausalLM"};
constexpr std::string_view kMoeTypes[] = {"qwen3_5_moe", "qwen3_5_moe_text"};
constexpr std::string_view kMobiusArchitectures[] = {"InternS2MobiusForConditionalGeneration"};
constexpr std::string_view kMobiusTypes[] = {"interns2_mobius", "interns2_mobius_text"};

}  // namespace

const Family kQwen3Next = {
    "qwen3_next", "Qwen3-Next, Qwen3-Coder-Next", kNextArchitectures, kNextTypes, {}, describe_next,
    read_next};
const Family kQwen35 = {"qwen3_5", "Qwen3.5, 3.6, 3.8", kDenseArchitectures, kDenseTypes, {}, describe_dense,
                        read_35};
const Family kQwen35Moe = {
    "qwen3_5_moe", "Qwen3.5, 3.6 and 3.8 with experts", kMoeArchitectures, kMoeTypes, {}, describe_moe,
    read_35};
const Family kInternS2Mobius = {"interns2_mobius", "Intern-S2-Mobius", kMobiusArchitectures, kMobiusTypes, {},
                                describe_banks};

}  // namespace assay::families
