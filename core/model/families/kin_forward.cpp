#include "core/model/families/kin_forward.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/blocks.h"
#include "core/model/families/forward.h"

namespace assay::families {
namespace {

constexpr double kLargestNumber = 1e9;

bool looks_at_window(const ModuleTree& tree, std::uint64_t layer) {
  for (const AttentionGeometry& g : tree.attention) {
    if (std::find(g.layers.begin(), g.layers.end(), layer) != g.layers.end()) return g.window != 0;
  }
  return false;
}
template <class Holds>
void rotate_where(const ModuleTree& tree, Hyperparameters& h, Holds holds) {
  for (std::uint64_t i = 0; i < tree.layers; ++i) {
    if (!holds(i)) h.rope_of.at(i).reset();
  }
}
double clip_of(const ConfigReader& config, std::string_view key) {
  return config.is_null(key) ? 0 : config.real(key, 0, 0, kLargestNumber);
}

constexpr ForwardClass kArceeClass = {.epsilon = 1e-5, .rope = {.context = 4096}, .activation = "relu2"};
constexpr ForwardClass kCohereClass = {.epsilon = 1e-5,
                                       .rope = {.theta = 500000, .context = 8192},
                                       .epsilon_key = "layer_norm_eps",
                                       .interleaved = true,
                                       .head_scale = {"logit_scale", 0.0625}};
constexpr ForwardClass kCohere2Class = {.epsilon = 1e-5,
                                        .rope = {.theta = 10000, .context = 8192},
                                        .epsilon_key = "layer_norm_eps",
                                        .interleaved = true,
                                        .head_scale = {"logit_scale", 0.0625}};
constexpr ForwardClass kCwmClass = {.epsilon = 1e-5, .rope = {.theta = 1e6, .context = 131072}};
constexpr ForwardClass kErnieClass = {
    .epsilon = 1e-5, .rope = {.theta = 500000, .context = 131072}, .interleaved = true};
constexpr ForwardClass kExaone4Class = {.epsilon = 1e-5};
constexpr ForwardClass kFalconClass = {.epsilon = 1e-5,
                                       .activation_key = "activation",
                                       .activation = "gelu",
                                       .epsilon_key = "layer_norm_epsilon"};
constexpr ForwardClass kGemmaClass = {.rope = {.context = 8192}, .activation = "gelu_pytorch_tanh"};
constexpr ForwardClass kGlmClass = {
    .epsilon = 1.5625e-07, .rope = {.context = 131072, .partial = true, .part = 0.5}, .interleaved = true};
constexpr ForwardClass kGptBigcodeClass = {.epsilon = 1e-5,
                                           .rope = {.context = 1024},
                                           .activation_key = "activation_function",
                                           .activation = "gelu_pytorch_tanh",
                                           .epsilon_key = "layer_norm_epsilon",
                                           .rotates = false};
constexpr ForwardClass kGptNeoxClass = {.epsilon = 1e-5,
                                        .rope = {.context = 2048,
                                                 .partial = true,
                                                 .part = 0.25,
                                                 .part_keys = "rotary_pct",
                                                 .theta_key = "rotary_emb_base"},
                                        .activation = "gelu",
                                        .epsilon_key = "layer_norm_eps"};
constexpr ForwardClass kGptjClass = {.epsilon = 1e-5,
                                     .activation_key = "activation_function",
                                     .activation = "gelu_new",
                                     .epsilon_key = "layer_norm_epsilon",
                                     .interleaved = true};
constexpr ForwardClass kGraniteClass = {.attention_scale = {"attention_multiplier"},
                                        .embedding_scale = {"embedding_multiplier"},
                                        .residual_scale = {"residual_multiplier"},
                                        .head_divisor = {"logits_scaling"}};
constexpr ForwardClass kHeliumClass = {
    .epsilon = 1e-8, .rope = {.theta = 100000, .context = 4096}, .interleaved = true};
constexpr ForwardClass kHunyuanClass = {.epsilon = 1e-5};
constexpr ForwardClass kHyperclovaxClass = {.embedding_scale = {"embedding_multiplier"},
                                            .residual_scale = {"residual_multiplier"},
                                            .head_scale = {"logits_scaling"}};
constexpr ForwardClass kInternlm2Class = {.rope = {.context = 2048}};
constexpr ForwardClass kBaichuanClass = {.rope = {.context = 4096}};
constexpr ForwardClass kJais2Class = {
    .epsilon = 1e-5, .rope = {.context = 8192}, .activation = "relu2", .epsilon_key = "layer_norm_eps"};
constexpr ForwardClass kMinicpmClass = {.embedding_scale = {"scale_emb"}};
constexpr ForwardClass kMinistralClass = {.rope = {.context = 131072}};
constexpr ForwardClass kMistral3Class = {.epsilon = 1e-5, .rope = {.theta = 1e6, .context = 262144}};
constexpr ForwardClass kMptClass = {.epsilon = 1e-5,
                                    .activation_key = {},
                                    .activation = "gelu",
                                    .epsilon_key = "layer_norm_epsilon",
                                    .rotates = false};
constexpr ForwardClass kBloomClass = {.epsilon = 1e-5,
                                      .rope = {.context = 1 << 20},
                                      .activation_key = {},
                                      .activation = "gelu_new",
                                      .epsilon_key = "layer_norm_epsilon",
                                      .rotates = false};
constexpr ForwardClass kNanochatClass = {.activation = "relu2"};
constexpr ForwardClass kNemotronClass = {.epsilon = 1e-5,
                                         .rope = {.context = 4096, .partial = true, .part = 0.5},
                                         .activation = "relu2",
                                         .epsilon_key = "norm_eps"};
constexpr ForwardClass kOlmoClass = {.epsilon = 1e-5, .epsilon_key = {}};
constexpr ForwardClass kOlmo3Class = {
    .epsilon = 1e-5, .rope = {.theta = 500000}, .layer_type = "full_attention"};
constexpr ForwardClass kOptClass = {.epsilon = 1e-5,
                                    .activation_key = "activation_function",
                                    .activation = "relu",
                                    .epsilon_key = {},
                                    .rotates = false};
constexpr ForwardClass kPersimmonClass = {.epsilon = 1e-5,
                                          .rope = {.context = 16384, .partial = true, .part = 0.5},
                                          .activation = "relu2",
                                          .epsilon_key = "layer_norm_eps"};
constexpr ForwardClass kPhiClass = {.epsilon = 1e-5,
                                    .rope = {.context = 2048, .partial = true, .part = 0.5},
                                    .activation = "gelu_new",
                                    .epsilon_key = "layer_norm_eps"};
constexpr ForwardClass kSeedOssClass = {.rope = {.context = 524288}};
constexpr ForwardClass kSmollm3Class = {.rope = {.theta = 2e6, .context = 32768}};
constexpr ForwardClass kStablelmClass = {.epsilon = 1e-5,
                                         .rope = {.context = 4096, .partial = true, .part = 0.25},
                                         .epsilon_key = "layer_norm_eps"};
constexpr ForwardClass kStarcoder2Class = {.epsilon = 1e-5,
                                           .rope = {.context = 4096},
                                           .activation = "gelu_pytorch_tanh",
                                           .epsilon_key = "norm_epsilon"};

// Hunyuan's "dynamic" with an alpha: the base is stretched, once and for all.
void stretch_by_alpha(const ConfigReader& config, RopeRule& rule) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const ParsedJson* object = object_in(config, key);
    if (object == nullptr || !object->contains("alpha") || object->at("alpha").is_null()) continue;
    const double alpha = config.to_real(object->at("alpha"), "rope alpha", 0, kLargestNumber);
    if (rule.type != RopeRule::Type::dynamic || alpha == 0) return;
    const auto width = static_cast<double>(rule.rotary_dim);
    rule.theta *= std::pow(alpha, width / (width - 2));
    rule.type = RopeRule::Type::standard;
    return;
  }
}

}  // namespace

Hyperparameters forward_arcee(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kArceeClass);
}
// The first 7B alone: 13B attend by linear biases, and Baichuan 2 makes every row of its head of length 1.
Hyperparameters forward_baichuan(ConfigReader& config, const ModuleTree& tree) {
  config.require(tree.architecture == "BaiChuanForCausalLM",
                 "Baichuan 2 and Baichuan-13B are not computed here, only Baichuan-7B (BaiChuanForCausalLM)");
  return read_forward(config, tree, kBaichuanClass);
}
Hyperparameters forward_bloom(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kBloomClass);
  h.alibi_exponent = 8;
  return h;
}
Hyperparameters forward_cohere(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kCohereClass);
  h.parallel_branches = true;
  return h;
}
Hyperparameters forward_cohere2(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kCohere2Class);
  h.parallel_branches = true;
  rotate_where(tree, h, [&](std::uint64_t i) { return looks_at_window(tree, i); });
  return h;
}
// Without a word of ropes, Llama 3's of the published model.
Hyperparameters forward_cwm(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kCwmClass);
  const ParsedJson* older = object_in(config, "rope_scaling");
  if (object_in(config, "rope_parameters") == nullptr && (older == nullptr || older->empty())) {
    h.ropes.front().type = RopeRule::Type::llama3;
    h.ropes.front().theta = kCwmClass.rope.theta;  // whatever rope_theta says
    h.ropes.front().factor = 16;
    h.ropes.front().original_context = 8192;
  }
  return h;
}
Hyperparameters forward_ernie4_5(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kErnieClass);
}
// Layers that see the whole context do not rotate, where there are windows at all.
Hyperparameters forward_exaone4(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kExaone4Class);
  const bool windows = config.number("sliding_window", 4096) != 0 && !config.is_null("sliding_window");
  rotate_where(tree, h, [&](std::uint64_t i) { return !windows || looks_at_window(tree, i); });
  return h;
}
Hyperparameters forward_falcon(ConfigReader& config, const ModuleTree& tree) {
  ForwardClass of_class = kFalconClass;
  of_class.rotates = !config.flag("alibi", false);
  Hyperparameters h = read_forward(config, tree, of_class);
  if (!of_class.rotates) h.alibi_exponent = 8;
  h.parallel_branches = config.flag("parallel_attn", true) || config.flag("new_decoder_architecture", false);
  return h;
}
Hyperparameters forward_gemma(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGemmaClass);
  if (h.activation == "gelu") h.activation = "gelu_pytorch_tanh";  // what early configs mean by it
  h.embedding_scale = std::sqrt(static_cast<double>(tree.hidden_size));
  return h;
}
Hyperparameters forward_glm(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kGlmClass);
}
Hyperparameters forward_gpt_bigcode(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGptBigcodeClass);
  if (!config.flag("scale_attn_weights", true)) h.attention_scale = 1;
  return h;
}
Hyperparameters forward_gpt_neox(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGptNeoxClass);
  h.parallel_branches = config.flag("use_parallel_residual", true);
  return h;
}
Hyperparameters forward_gptj(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGptjClass);
  h.parallel_branches = true;
  config.require(!config.is_null("rotary_dim"),
                 "rotary_dim is null: rotation over all heads at once is not computed");
  const std::uint64_t width = config.number("rotary_dim", 64);
  config.require(width % 2 == 0 && width > 0 && width <= tree.attention.at(0).qk_head_dim,
                 "rotary_dim is no even part of a head");
  RopeRule plain;
  plain.rotary_dim = width;
  plain.context = plain.original_context = h.context;
  h.ropes = {plain};
  return h;
}
Hyperparameters forward_granite(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kGraniteClass);
}
Hyperparameters forward_helium(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kHeliumClass);
}
Hyperparameters forward_hunyuan(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kHunyuanClass);
  stretch_by_alpha(config, h.ropes.front());
  return h;
}
Hyperparameters forward_hyperclovax(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kHyperclovaxClass);
  if (config.has("attention_multiplier") && !config.is_null("attention_multiplier"))
    h.attention_scale = config.real("attention_multiplier", 1, -kLargestNumber, kLargestNumber);
  return h;
}
Hyperparameters forward_internlm2(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kInternlm2Class);
}
Hyperparameters forward_jais2(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kJais2Class);
}
Hyperparameters forward_minicpm(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kMinicpmClass);
  h.residual_scale = config.real("scale_depth", 1, -kLargestNumber, kLargestNumber) /
                     std::sqrt(static_cast<double>(tree.layers));
  h.head_scale = config.real("dim_model_base", 1, -kLargestNumber, kLargestNumber) /
                 static_cast<double>(tree.hidden_size);
  return h;
}
Hyperparameters forward_ministral(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kMinistralClass);
}
// Queries grow with the length, as Llama 4's; the published rope where the config has no word of it.
Hyperparameters forward_mistral3(ConfigReader& config, const ModuleTree& tree) {
  // Mistral Small 3.1 says "mistral" of its text.
  const auto kind = config.config().text().find("model_type");
  if (kind != config.config().text().end() && *kind == "mistral")
    return read_forward(config, tree, {.rope = {.context = 131072}});
  Hyperparameters h = read_forward(config, tree, kMistral3Class);
  const ParsedJson* rope = object_in(config, "rope_parameters");
  if (rope == nullptr || rope->empty()) rope = object_in(config, "rope_scaling");
  Hyperparameters::Temperature t = {.scale = 0.1, .floor = 16384};
  if (rope == nullptr || rope->empty()) {
    RopeRule& rule = h.ropes.front();
    rule.type = RopeRule::Type::yarn;
    rule.factor = 16;
    rule.original_context = 16384;
    rule.mscale = rule.mscale_all_dim = 1;
  } else {
    const auto real = [&](std::string_view key) {
      return rope->contains(key) && !rope->at(std::string(key)).is_null()
                 ? config.to_real(rope->at(std::string(key)), key, 0, kLargestNumber)
                 : 0;
    };
    t = {.scale = real("llama_4_scaling_beta"), .floor = real("original_max_position_embeddings")};
    config.require(t.scale == 0 || t.floor > 0,
                   "llama_4_scaling_beta needs rope_parameters.original_max_position_embeddings");
  }
  if (t.scale != 0) h.temperature = t;
  return h;
}
Hyperparameters forward_mpt(ConfigReader& config, const ModuleTree& tree) {
  ForwardClass of_class = kMptClass;
  of_class.rope.context = config.number("max_seq_len", 2048);
  Hyperparameters h = read_forward(config, tree, of_class);
  h.alibi_exponent = 8;
  const ParsedJson* attention = object_in(config, "attn_config");
  if (attention == nullptr) return h;
  const auto real = [&](const char* key) {
    return attention->contains(key) && !attention->at(key).is_null()
               ? config.to_real(attention->at(key), key, -kLargestNumber, kLargestNumber)
               : 0;
  };
  h.attention_scale = real("softmax_scale");
  h.clip_qkv = real("clip_qkv");
  const auto is = [&](const char* key, const ParsedJson& computed) {
    config.require(
        !attention->contains(key) || attention->at(key).is_null() || attention->at(key) == computed,
        std::string("attn_config.") + key + " is " +
            (attention->contains(key) ? attention->at(key).dump() : "") + ": only " + computed.dump() +
            " is computed here");
  };
  is("attn_type", "multihead_attention");
  is("prefix_lm", false);
  is("qk_ln", false);
  is("attn_uses_sequence_id", false);
  is("alibi", true);
  is("alibi_bias_max", 8);
  return h;
}
// Norms without weights; its class turns heads the other way round.
Hyperparameters forward_nanochat(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kNanochatClass);
  h.final_cap = config.is_null("final_logit_softcapping")
                    ? 0
                    : config.real("final_logit_softcapping", 15, 0, kLargestNumber);
  h.unit_heads = true;
  return h;
}
Hyperparameters forward_nemotron(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kNemotronClass);
}
Hyperparameters forward_olmo(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kOlmoClass);
  h.clip_qkv = clip_of(config, "clip_qkv");
  return h;
}
// rope_scaling is of the layers that see all; those with a window rotate unstretched.
Hyperparameters forward_olmo3(ConfigReader& config, const ModuleTree& tree) {
  const ParsedJson* newer = object_in(config, "rope_parameters");
  const bool by_kind = newer != nullptr && newer->contains("sliding_attention");
  config.require(newer == nullptr || newer->empty() || by_kind,
                 "rope_parameters are not given by kinds of layers, and this family has two");
  ForwardClass of_class = kOlmo3Class;
  if (!by_kind) of_class.layer_type = {};
  Hyperparameters h = read_forward(config, tree, of_class);
  RopeRule local = h.ropes.front();
  if (by_kind)
    local = read_rope(config, tree.attention.at(0).qk_head_dim, of_class.rope, "sliding_attention");
  else
    local.type = RopeRule::Type::standard, local.theta = of_class.rope.theta;  // whatever rope_theta says
  h.ropes.push_back(local);
  for (std::uint64_t i = 0; i < tree.layers; ++i) h.rope_of.at(i) = looks_at_window(tree, i) ? 1 : 0;
  return h;
}
Hyperparameters forward_opt(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kOptClass);
}
Hyperparameters forward_persimmon(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kPersimmonClass);
}
Hyperparameters forward_phi(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kPhiClass);
  h.parallel_branches = true;
  return h;
}
Hyperparameters forward_seed_oss(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kSeedOssClass);
}
Hyperparameters forward_smollm3(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kSmollm3Class);
  const auto listed = config.numbers("no_rope_layers");
  const std::uint64_t every = config.size("no_rope_layer_interval", 4).value();
  config.require(!listed || listed->size() >= tree.layers,
                 "no_rope_layers lists fewer layers than there are");
  rotate_where(tree, h, [&](std::uint64_t i) { return listed ? (*listed)[i] != 0 : (i + 1) % every != 0; });
  return h;
}
Hyperparameters forward_stablelm(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kStablelmClass);
  h.parallel_branches = config.flag("use_parallel_residual", false);
  return h;
}
Hyperparameters forward_starcoder2(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kStarcoder2Class);
}
Hyperparameters forward_vaultgemma(ConfigReader& config, const ModuleTree& tree) {
  constexpr ForwardClass kVault = {
      .rope = {.context = 8192}, .activation_key = "hidden_activation", .activation = "gelu_pytorch_tanh"};
  Hyperparameters h = read_forward(config, tree, kVault);
  const auto cap = [&](std::string_view key, double otherwise) {
    return config.is_null(key) ? 0 : config.real(key, otherwise, 1e-3, 1e6);
  };
  h.embedding_scale = std::sqrt(static_cast<double>(tree.hidden_size));
  h.attention_scale = 1 / std::sqrt(config.real("query_pre_attn_scalar", 256, 1e-3, kLargestNumber));
  h.attention_cap = cap("attn_logit_softcapping", 50);
  h.final_cap = cap("final_logit_softcapping", 30);
  return h;
}

}  // namespace assay::families
