// Ling and Ring: 1.x (BailingMoe) and 2.0 (BailingMoeV2), of their own code; 3 as it is published (BailingMoeV3), of its
// own code, too, and as transformers has it (BailingHybrid): layers of Kimi's delta attention and, in one of four or six, latent
// attention with a gate a head. Ling 2.5 and 2.6 name the same model_type and have lightning attention (bailing_kin.cpp).
// Source of the third: vLLM's bailing_moe_v3.py, llama.cpp's conversion/bailingmoe3.py.
#include <functional>

#include "core/model/families/all.h"
#include "core/model/families/bailing.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/forward_2026.h"
#include "core/model/families/soft_forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {

using namespace blocks;

Mixture read_ling_experts(ConfigReader& config, ModuleTree& tree, const Quantity& hidden,
                          const LingExperts& of_class) {
  Mixture m{hidden,
            read_experts(config, tree, "num_experts|num_local_experts", of_class.count,
                         "num_experts_per_tok|num_experts_per_token", of_class.active),
            config.size("moe_intermediate_size", of_class.width)};
  const std::uint64_t shared = config.optional_number("num_shared_experts", 1).value_or(0);
  if (shared == 0) return m;
  const Quantity count("num_shared_experts", shared);
  constexpr std::string_view kOwn = "moe_shared_expert_intermediate_size";
  if (of_class.shared == LingShared::routed_width || !config.has(kOwn))
    m.shared_width = count * m.expert_width;
  else
    m.shared_width = of_class.shared == LingShared::own_total ? config.size(kOwn) : count * config.size(kOwn);
  return m;
}

Frame ling_frame() {
  Frame frame;
  frame.embedding = "model.word_embeddings";
  return frame;
}

Module ling_latent_attention(const LatentAttention& a) {
  Module attend = attention(a);
  attend.path = "attention";
  for (TensorSpec& spec : attend.children.back().tensors) {
    if (spec.name == "o_proj.weight") spec.name = "dense.weight";
    if (spec.name == "o_proj.bias") spec.name = "dense.bias";
  }
  return attend;
}

void add_latent_prediction(ModuleTree& tree, const Decoder& d, std::vector<std::uint64_t> indices,
                           const LatentAttention& a, std::vector<Module> blocks) {
  add_mtp_layers(tree, d, geometry(a, std::move(indices)), std::move(blocks));
}

void describe_ling(ConfigReader& config, ModuleTree& tree, const LingClass& of_class) {
  const Decoder d = read_decoder(config, tree, of_class.sizes);
  HeadAttention a = d.attention();
  a.path = "attention";
  a.fused = "query_key_value", a.o = "dense";
  a.qkv_bias = config.flag("use_qkv_bias", false);
  a.output_bias = config.flag("use_bias", false);
  if (of_class.second && config.flag("use_qk_norm", true)) a.qk_norm = QkNorm::per_head;
  a.q_norm = "query_layernorm", a.k_norm = "key_layernorm";
  Mixture m = read_ling_experts(config, tree, d.hidden, of_class.experts);
  if (of_class.second && config.flag("moe_router_enable_expert_bias", true))
    m.correction = "gate.expert_bias";
  GatedMlp mlp = d.mlp();
  m.shared_bias = mlp.bias = config.flag("use_bias", false);
  Module moe = mixture(m);
  if (config.flag("multi_gate", false)) {  // Ming: what is seen and heard is scored apart
    for (const char* router : {"image_gate", "audio_gate"})
      add_router(moe, router, d.hidden, m.experts.count);
  }
  const std::uint64_t dense_first = config.number("first_k_dense_replace", of_class.dense_first);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return i < dense_first ? "dense layers" : "MoE layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(a), i < dense_first ? gated_mlp(mlp) : moe};
      });
  add_frame(tree, d, groups, ling_frame());
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_mtp_layers(tree, d, geometry(a, layers_after(d.layers, read_mtp_layers(config, 0))),
                 groups.back().children);
}

namespace {

constexpr DecoderDefaults kLingSizes = {
    .vocabulary = 157184, .hidden = 2048, .intermediate = 5120, .layers = 20, .heads = 16, .kv_heads = 4};

void describe_ling1(ConfigReader& config, ModuleTree& tree) {
  describe_ling(config, tree,
                {.sizes = kLingSizes, .experts = {.count = 16, .width = 1408}, .second = false});
}
void describe_ling2(ConfigReader& config, ModuleTree& tree) {
  describe_ling(config, tree, {.sizes = kLingSizes, .experts = {.count = 256, .width = 512}});
}

struct Hybrid {
  LatentAttention latent;
  KimiDeltaAttention kda;
  std::uint64_t latent_gates = 0;  // rows of g_proj: a head's, or an element's; 0: there is none
  bool published = false;          // of its own code, where the linear layers' output is o_proj
};
Module latent_layer(const Hybrid& h) {
  Module attend = ling_latent_attention(h.latent);
  Module& output = attend.children.back();
  if (h.latent_gates == 0) return attend;
  add_linear(output, {.name = "g_proj",
                      .in = h.latent.hidden,
                      .out = h.latent_gates == h.latent.heads.value() ? h.latent.heads
                                                                      : h.latent.heads * h.latent.v_dim,
                      .role = Role::attention_gate,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = h.latent.heads.value()});
  return attend;
}
Module delta_layer(const Hybrid& h) {
  Module attend = kimi_delta_attention(h.kda);
  attend.path = "attention";
  for (TensorSpec& spec : attend.tensors) {
    if (!h.published && spec.name == "o_proj.weight") spec.name = "dense.weight";
  }
  return attend;
}

// Latent attention in some layers, a state in the others; experts in some, one MLP in the others.
using OfLayer = std::function<bool(std::uint64_t layer)>;
void add_hybrid_layers(ModuleTree& tree, const Decoder& d, const Hybrid& h, const Mixture& m,
                       const OfLayer& is_full, const OfLayer& is_sparse) {
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_full(i) ? "latent attention" : "KDA") +
               (is_sparse(i) ? " MoE layers" : " layers");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_full(i) ? latent_layer(h) : delta_layer(h),
                          is_sparse(i) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups, ling_frame());
  const auto full = layers_where(d.layers, is_full);
  const auto linear = layers_where(d.layers, [&](std::uint64_t i) { return !is_full(i); });
  if (!full.empty()) tree.attention.push_back(geometry(h.latent, full));
  if (!linear.empty()) tree.recurrent.push_back(geometry(h.kda, linear));
}

std::uint64_t read_gates(ConfigReader& config, const LatentAttention& a) {
  const std::string kind = config.text("gated_attention_proj_granularity_type", "");
  if (kind == "head_wise") return a.heads.value();
  config.require(kind.empty() || kind == "element_wise",
                 "gated_attention_proj_granularity_type is neither head_wise nor element_wise");
  return kind.empty() ? 0 : (a.heads * a.v_dim).value();
}

}  // namespace

void describe_ling3(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 157184, .hidden = 2560, .intermediate = 6144, .layers = 42, .heads = 32},
      HeadDim::unused);
  config.require(config.flag("no_kda_lora", false),
                 "no_kda_lora is not true: gates of low rank are not described");
  Hybrid h = {.latent = read_latent_attention(config, d, {.q_rank = std::nullopt}), .published = true};
  h.latent_gates = read_gates(config, h.latent);
  h.kda = {d.hidden, d.heads, config.size("head_dim", 128), config.size("short_conv_kernel_size", 4)};
  h.kda.full_rank_gate = h.kda.full_rank_decay = true;
  h.kda.decay_shape = {h.kda.heads};
  const std::uint64_t group = config.size("layer_group_size", 6).value(),
                      dense = config.number("first_k_dense_replace", 2),
                      whole = d.layers.value() / group * group;
  const auto is_full = [&](std::uint64_t i) { return (i + 1) % group == 0 || i >= whole; };
  Mixture m = read_ling_experts(config, tree, d.hidden,
                                {.count = 512, .width = 768, .shared = LingShared::own_width});
  m.correction = "gate.expert_bias";
  const auto is_sparse = [&](std::uint64_t i) { return i >= dense; };
  add_hybrid_layers(tree, d, h, m, is_full, is_sparse);
  config.require(!config.flag("mtp_use_kda", false),
                 "mtp_use_kda is true: such prediction layers are not described");
  add_latent_prediction(tree, d, layers_after(d.layers, read_mtp_layers(config, 0)), h.latent,
                        {latent_layer(h), mixture(m)});
}

namespace {

void describe_hybrid(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(
      config, tree, {.vocabulary = 157184, .hidden = 2560, .intermediate = 6144, .layers = 42, .heads = 32},
      HeadDim::unused);
  d.tied = tree.tied_embeddings = false;  // the class never ties them
  Hybrid h;
  h.latent = read_latent_attention(config, d, {.q_rank = std::nullopt});
  h.latent_gates = h.latent.heads.value();
  h.kda = {d.hidden, config.size("linear_num_heads", d.heads), config.size("linear_head_dim", 128),
           config.size("linear_conv_kernel_dim|short_conv_kernel_size", 4)};
  h.kda.full_rank_gate = h.kda.full_rank_decay = true;
  h.kda.decay_shape = {h.kda.heads};
  const auto types = layer_texts(config, "layer_types", d.layers);
  const std::uint64_t group = types ? 1 : config.size("layer_group_size", 6).value();
  const auto is_full = [&](std::uint64_t i) {
    return types ? (*types)[i] == "full_attention" : (i + 1) % group == 0;
  };
  Mixture m = read_ling_experts(config, tree, d.hidden, {.count = 512, .width = 768});
  m.correction = "gate.expert_bias";
  const auto kinds = layer_texts(config, "mlp_layer_types", d.layers);
  const std::uint64_t dense = kinds ? 0 : config.number("first_k_dense_replace", 2);
  const auto is_sparse = [&](std::uint64_t i) { return kinds ? (*kinds)[i] == "sparse" : i >= dense; };
  add_hybrid_layers(tree, d, h, m, is_full, is_sparse);
  if (config.optional_number("num_nextn_predict_layers", 1).value_or(0) > 0)
    tree.not_counted.push_back({"multi-token prediction (its tensors are not described)", std::nullopt});
}

constexpr std::string_view kLing1Architectures[] = {"BailingMoeForCausalLM"}, kLing1Types[] = {"bailing_moe"};
constexpr std::string_view kLing2Architectures[] = {"BailingMoeV2ForCausalLM"},
                           kLing2Types[] = {"bailing_moe_v2"};
constexpr std::string_view kLing3Architectures[] = {"BailingMoeV3ForCausalLM"};
constexpr std::string_view kLingHybridArchitectures[] = {"BailingHybridForCausalLM"},
                           kLingHybridTypes[] = {"bailing_hybrid"};

}  // namespace

const Family kBailing = {"bailing_moe",  "Ling, Ring", kLing1Architectures, kLing1Types, {},
                         describe_ling1, forward_ling};
const Family kBailing2 = {"bailing_moe_v2", "Ling 2, Ring 2", kLing2Architectures, kLing2Types, {},
                          describe_ling2,   forward_ling2};
const Family kBailing3 = {"bailing_moe_v3", "Ling 3",     kLing3Architectures, {}, {},
                          describe_ling3,   forward_ling3};
const Family kBailingHybrid = {
    "bailing_hybrid", "Ling 3, of transformers", kLingHybridArchitectures, kLingHybridTypes, {},
    describe_hybrid,  forward_bailing_hybrid};

}  // namespace assay::families
