// Kin of DeepSeek-V3 and V3.2 of 2026: A.X K2 (gated norms, gates of attention's output beside the queries), HY4
// (hyper-connections, sinks, an indexer in some layers only) and Xing 4 (V3 with hyper-connections).
#include "core/model/families/deepseek_kin.h"
#include "core/model/families/all_2026.h"
#include "core/model/families/all_kin.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/stated_sizes.h"

namespace assay::families {

using namespace blocks;

Mixture read_kin_mixture(ConfigReader& config, ModuleTree& tree, const Decoder& d,
                         const MixtureDefaults& of) {
  Mixture m{d.hidden,
            read_experts(config, tree, "n_routed_experts|num_local_experts", of.experts,
                         "num_experts_per_tok", of.active),
            config.size("moe_intermediate_size", of.width)};
  m.correction = "gate.e_score_correction_bias";
  m.shared_width = config.size("n_shared_experts", 1) * m.expert_width;
  return m;
}

void add_hyper_connection(Module& module, const std::string& path, const Quantity& coefficients,
                          std::uint64_t scales, const Quantity& streams, const Quantity& hidden) {
  for (const auto& [what, shape] : {std::pair{"fn", std::vector<Quantity>{coefficients, streams * hidden}},
                                    {"base", {coefficients}},
                                    {"scale", {Quantity(scales)}}})
    module.tensors.push_back(parameter(path + what, shape, Role::residual_mix, Part::norm));
}

namespace {

// mlp_layer_types; else the first layers are dense, and of the others one in moe_layer_freq has experts.
std::function<bool(std::uint64_t)> kin_sparse_layers(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "mlp_layer_types", count))
    return [types](std::uint64_t i) { return (*types)[i] == "sparse"; };
  const std::uint64_t dense = config.number("first_k_dense_replace", 1);
  const std::uint64_t every = config.size("moe_layer_freq", 1).value();
  return [=](std::uint64_t i) { return i >= dense && i % every == 0; };
}

// A norm whose output is scaled by the sigmoid of two small matrices of it.
void add_gated_norm(Module& layer, const std::string& name, const Quantity& hidden, const Quantity& rank,
                    Role role) {
  add_norm(layer, name + ".norm", hidden, role);
  for (const bool down : {true, false})
    add_linear(layer, {.name = name + (down ? ".W_down" : ".W_up"),
                       .in = down ? hidden : rank,
                       .out = down ? rank : hidden,
                       .role = role,
                       .part = Part::norm,
                       .quantizable = false});
}

// q_b_proj reads the queries' latent normed and as it was, and makes queries and gates.
Module axk2_attention(const LatentAttention& a, const Indexer& i, ConfigReader& config) {
  Module module = attention(a);
  Module& queries = module.children[0];
  queries.tensors.pop_back();
  const std::uint64_t q = (a.heads * (a.nope_dim + a.rope_dim)).value(), gate = (a.heads * a.v_dim).value(),
                      heads = a.heads.value();
  add_linear(queries, {.name = "q_b_proj",
                       .in = Quantity(2) * *a.q_rank,
                       .out = a.heads * (a.nope_dim + a.rope_dim + a.v_dim),
                       .role = Role::q_b,
                       .part = Part::attention,
                       .partition = Partition::columns,
                       .members = {{Role::q_b, q, heads}, {Role::attention_gate, gate, heads}},
                       .interleaved = true});
  module.children.push_back(indexer(a, i, config));
  return module;
}

void describe_axk2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 163840, .hidden = 2048, .intermediate = 5120, .layers = 48, .heads = 32},
      HeadDim::unused);
  const LatentAttention a = read_latent_attention(
      config, d, {.q_rank = 384, .kv_rank = 128, .nope_dim = 64, .rope_dim = 32, .v_dim = 64});
  config.require(a.q_rank.has_value(), "q_lora_rank is null, and gates and indexer project from it");
  const Indexer i = read_indexer(config, 16);
  const Mixture m = read_kin_mixture(config, tree, d, {128, 8, 512});
  const auto is_sparse = kin_sparse_layers(config, d.layers);
  const Quantity rank = config.size("gated_norm_rank", 16);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t l) { return is_sparse(l) ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t l) {
        add_gated_norm(layer, "input_layernorm", d.hidden, rank, Role::input_norm);
        if (is_sparse(l))
          add_gated_norm(layer, "post_attention_layernorm", d.hidden, rank, Role::pre_feedforward_norm);
        else
          add_norm(layer, "post_attention_layernorm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {axk2_attention(a, i, config), is_sparse(l) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  AttentionGeometry g = geometry(a, all_layers(d.layers));
  i.note(g);
  tree.attention.push_back(std::move(g));
}

// Which layers have an indexer of their own; the others take the last one's choice.
std::function<bool(std::uint64_t)> hy_v4_indexed(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "indexer_types", count))
    return [types](std::uint64_t i) { return (*types)[i] != "shared"; };
  return [](std::uint64_t i) { return i == 0 || (i - 1) % 4 == 0; };
}

Module hy_v4_attention(const LatentAttention& a, const Indexer* i, ConfigReader& config) {
  Module module = attention(a);
  TensorSpec sinks = parameter("learnable_sink_param", {a.heads}, Role::sinks, Part::attention);
  sinks.parallel = {Partition::columns, 0, {{Role::sinks, a.heads.value(), a.heads.value()}}};
  module.tensors.push_back(std::move(sinks));
  if (i != nullptr) module.children.push_back(indexer(a, *i, config));
  return module;
}

// The residual of a layer for prediction is one stream (vLLM 0.32, models/hy_v4/nvidia/mtp.py).
void add_hy_v4_prediction(ConfigReader& config, ModuleTree& tree, const Decoder& d, const LatentAttention& a,
                          const Indexer& i, Module mlp) {
  const std::uint64_t count = read_mtp_layers(config, 0);
  if (count == 0) return;
  Module layer = layers("model.mtp_layers.{layer}", "multi-token prediction", all_layers(Quantity(count)));
  add_pre_norms(layer, d.hidden);
  layer.children = {hy_v4_attention(a, &i, config), std::move(mlp),
                    mtp_own(d.hidden, {.final_norm = "final_layernorm"})};
  tree.mtp.push_back(std::move(layer));
  AttentionGeometry g = geometry(a, layers_after(d.layers, count));
  i.note(g);
  tree.mtp_attention.push_back(std::move(g));
}

void describe_hy_v4(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 120832, .hidden = 2816, .intermediate = 6912, .layers = 34, .heads = 32},
      HeadDim::unused);
  LatentAttention a = read_latent_attention(config, d, {.nope_dim = 192, .v_dim = 256});
  a.gate = "linear_gate";
  const Indexer i = read_indexer(config, 16);
  Mixture m = read_kin_mixture(config, tree, d, {256, 8, 768});
  m.stacks = Mixture::Stacks::output_major;
  const auto is_sparse = kin_sparse_layers(config, d.layers), is_indexed = hy_v4_indexed(config, d.layers);
  const Quantity streams = config.size("hc_mult", 4), two = Quantity(2) * streams;
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t l) {
        return std::string(is_sparse(l) ? "MoE" : "dense") + " layers" +
               (is_indexed(l) ? "" : " without indexer");
      },
      [&](Module& layer, std::uint64_t l) {
        add_pre_norms(layer, d.hidden);
        add_hyper_connection(layer, "hc_attn_layer.hc_pre.hc_", two, 2, streams, d.hidden);
        add_hyper_connection(layer, "hc_mlp_layer.hc_pre.hc_", two, 2, streams, d.hidden);
        layer.children = {hy_v4_attention(a, is_indexed(l) ? &i : nullptr, config),
                          is_sparse(l) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  Module together{"model", "streams to one", {}, {}, {}};
  add_hyper_connection(together, "hc_head.hc_head_", streams, 1, streams, d.hidden);
  tree.modules.insert(tree.modules.end() - 2, std::move(together));
  AttentionGeometry indexed = geometry(a, layers_where(d.layers, is_indexed));
  i.note(indexed);
  AttentionGeometry shares =
      geometry(a, layers_where(d.layers, [&](std::uint64_t l) { return !is_indexed(l); }));
  shares.indexer_top_k = i.top_k;
  for (AttentionGeometry* g : {&indexed, &shares}) {
    if (!g->layers.empty()) tree.attention.push_back(std::move(*g));
  }
  const bool has_experts = is_sparse(d.layers.value() - 1);
  add_hy_v4_prediction(config, tree, d, a, i, has_experts ? mixture(m) : gated_mlp(d.mlp()));
}

// Xing 4.0 (XingChen-AGI): V3 whose residual is streams, which layers for prediction have not; a matrix mixes all streams with
// each other, and their mean leaves. Sources: MLX-LM's models/xing4_0.py, llama.cpp's conversion/xing4_0.py; held to the
// 31,215,031,088 that the hub counts, of which embedding and head are stored twice. No configuration class is at hand.
void describe_xing4(ConfigReader& config, ModuleTree& tree) {
  require_stated(config);
  for (const char* key : {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                          "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "hc_mult"})
    config.size(key);
  describe_deepseek_v3(config, tree, "");
  const Quantity streams = config.size("hc_mult"), mixes = (streams + Quantity(2)) * streams,
                 hidden("hidden_size", tree.hidden_size);
  for (Module& layer : tree.modules) {
    if (layer.repeat.over != Repeat::Over::layers) continue;
    add_hyper_connection(layer, "attn_hc.hc_", mixes, 3, streams, hidden);
    add_hyper_connection(layer, "ffn_hc.hc_", mixes, 3, streams, hidden);
  }
}

Hyperparameters forward_axk2(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(
      config, tree, {.groups = 1, .chosen_groups = 1, .context = 131072, .pairs_by_config = false});
}

// Pairs of what turns together are not read of the config.
Hyperparameters forward_hy_v4(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_deepseek_forward(
      config, tree,
      {.groups = 1, .chosen_groups = 1, .routed_scale = 2.827, .context = 262144, .epsilon = 1e-5});
  h.interleaved_pairs = false;
  return h;
}

constexpr std::string_view kAxk2Architectures[] = {"AXK2ForCausalLM"}, kAxk2Types[] = {"axk2"};
constexpr std::string_view kHyV4Architectures[] = {"HYV4ForCausalLM"},
                           kHyV4Types[] = {"hy_v4", "hy_v4_vl_text"};
constexpr std::string_view kXing4Architectures[] = {"Xing4_0ForCausalLM", "XingChen4ForCausalLM"},
                           kXing4Types[] = {"xing4_0", "xingchen4"};

}  // namespace

const Family kAxk2 = {"axk2", "A.X K2", kAxk2Architectures, kAxk2Types, {}, describe_axk2, forward_axk2};
const Family kHyV4 = {"hy_v4", "HY4", kHyV4Architectures, kHyV4Types, {}, describe_hy_v4, forward_hy_v4};

const Family kXing4 = {"xing4", "Xing 4.0", kXing4Architectures, kXing4Types, {}, describe_xing4};

}  // namespace assay::families
