// As gguf_demands.cpp, of architectures of 2025 and 2026: DeepSeek-V4, Kimi K3, MiniMax-01, Mistral 3 and 4, Hunyuan-A13B.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/gguf_loaded.h"

namespace assay {
namespace gguf_demands_of_2026 {
namespace {

std::uint64_t whole(const GgufFacts& facts, std::string_view names, std::uint64_t otherwise) {
  return static_cast<std::uint64_t>(facts.number(names, static_cast<double>(otherwise)));
}
bool is(const GgufFacts& facts, std::string_view names, const ParsedJson& wanted) {
  const ParsedJson* said = facts.find(names);
  return said != nullptr && *said == wanted;
}
std::string untold(const GgufFacts& facts, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (facts.find(name) == nullptr)
      return fmt::format("config.json does not say {}, and so would no key", name);
  }
  return {};
}
std::string own_head(const GgufFacts& facts) {
  return facts.tree.tied_embeddings
             ? "the embedding serves as head, and llama.cpp asks for one of its own here"
             : "";
}

// What its attention is turned by (a Hadamard matrix) is made of 64 rows or more.
std::string turned_indexer(const GgufFacts& facts) {
  const std::uint64_t width = whole(facts, "index_head_dim", 128);
  return width != 0 && width % 64 == 0
             ? ""
             : fmt::format("index_head_dim is {}, and llama.cpp takes multiples of 64", width);
}

std::string v4_layers(const GgufFacts& facts) {
  const ParsedJson& ratios = *facts.find("compress_ratios");
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) {
    if (ratios[i] != 0 && ratios[i] != 4 && ratios[i] != 128)
      return fmt::format("layer {} has an entry for {} tokens, and llama.cpp knows 4 and 128", i,
                         ratios[i].dump());
  }
  const std::uint64_t hashed = whole(facts, "num_hash_layers", 0);
  const ParsedJson* types = facts.find("mlp_layer_types");
  for (std::uint64_t i = 0; types != nullptr && types->is_array() && i < facts.tree.layers; ++i) {
    if (i < types->size() && ((*types)[i] == "hash_moe") != (i < hashed))
      return fmt::format("mlp_layer_types has {} in layer {}, and a GGUF counts num_hash_layers, {}",
                         (*types)[i].dump(), i, hashed);
  }
  return {};
}
std::string v4_rotation(const GgufFacts& facts) {
  if (facts.rope.contains("main") || facts.rope.contains("compress"))
    return "rope_parameters are those of main and compress, of which a GGUF has no keys: rope_theta, "
           "rope_scaling and compress_rope_theta are read";
  if (const auto given = facts.rope.find("attention_factor"); given != facts.rope.end() && !given->is_null())
    return fmt::format("attention_factor is {}, and llama.cpp's deepseek4 has none", given->dump());
  const std::uint64_t width = facts.tree.attention.front().qk_head_dim;
  const double part = facts.number("partial_rotary_factor", 0), said = facts.number("qk_rope_head_dim");
  if (part == 0 || std::trunc(part * static_cast<double>(width)) == said) return {};
  return fmt::format(
      "qk_rope_head_dim is {} and partial_rotary_factor {} of {}, of which a GGUF keeps the first", said,
      part, width);
}
std::string deepseek4(const GgufFacts& facts) {
  std::string why = untold(facts, {"compress_ratios",
                                   "compress_rope_theta",
                                   "num_hash_layers",
                                   "qk_rope_head_dim",
                                   "q_lora_rank",
                                   "sliding_window",
                                   "moe_intermediate_size",
                                   "n_shared_experts",
                                   "routed_scaling_factor",
                                   "norm_topk_prob",
                                   "swiglu_limit",
                                   "index_n_heads",
                                   "index_head_dim",
                                   "index_topk",
                                   "o_groups",
                                   "o_lora_rank",
                                   "hc_mult",
                                   "hc_sinkhorn_iters",
                                   "hc_eps",
                                   "head_dim",
                                   "rms_norm_eps",
                                   "num_experts_per_tok"});
  if (!why.empty()) return why;
  if (facts.find("rope_theta") == nullptr && !facts.rope.contains("rope_theta"))
    return "config.json does not say rope_theta, and so would no key";
  if (!is(facts, "scoring_func", "sqrtsoftplus"))
    return "scoring_func is not sqrtsoftplus, without which llama.cpp loads no deepseek4";
  if (const std::uint64_t streams = whole(facts, "hc_mult", 4); streams != 4)
    return fmt::format("hc_mult is {}, and llama.cpp's deepseek4 has 4 streams", streams);
  for (const auto broken : {v4_layers, v4_rotation, turned_indexer, own_head}) {
    if (why = broken(facts); !why.empty()) return why;
  }
  return {};
}

// Keys of groups are made of n_group, and of topk_group alone nothing is chosen.
std::string ungrouped(const GgufFacts& facts) {
  if (const double groups = facts.number("num_expert_group", 1); groups > 1)
    return fmt::format("num_expert_group is {}, of which no key is made", groups);
  return {};
}
std::string kimi_k3(const GgufFacts& facts) {
  const std::string why =
      untold(facts, {"linear_attn_config.full_attn_layers", "linear_attn_config.head_dim",
                     "linear_attn_config.short_conv_kernel_size", "kv_lora_rank", "qk_nope_head_dim",
                     "qk_rope_head_dim", "v_head_dim", "moe_intermediate_size", "num_shared_experts",
                     "first_k_dense_replace", "routed_scaling_factor", "moe_renormalize",
                     "num_experts_per_token|num_experts_per_tok", "hidden_act", "activation_situ_beta",
                     "activation_situ_linear_beta", "attn_res_block_size", "rms_norm_eps"});
  if (!why.empty()) return why;
  const std::uint64_t heads = whole(facts, "num_attention_heads", 32),
                      linear = whole(facts, "linear_attn_config.num_heads", 32);
  if (heads != linear)
    return fmt::format(
        "linear_attn_config.num_heads is {} and num_attention_heads {}, of which a GGUF keeps the latter",
        linear, heads);
  if (!is(facts, "mla_use_nope", true))
    return "mla_use_nope is not true, and llama.cpp's kimi-k3 rotates nothing";
  if (!is(facts, "moe_router_activation_func", "sigmoid"))
    return "moe_router_activation_func is not sigmoid, which a GGUF of Kimi K3 always says";
  if (!(facts.number("linear_attn_config.gate_lower_bound", -1) < 0))
    return "gate_lower_bound is not below 0: llama.cpp's kimi-k3 would have no decay at all";
  return own_head(facts);
}

std::string minimax01(const GgufFacts& facts) {
  const std::string why =
      untold(facts, {"layernorm_full_attention_alpha", "layernorm_full_attention_beta",
                     "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta",
                     "layernorm_mlp_alpha", "layernorm_mlp_beta", "rotary_dim", "head_dim", "rms_norm_eps"});
  if (!why.empty()) return why;
  const double alpha = facts.number("layernorm_full_attention_alpha");
  for (const char* key : {"layernorm_linear_attention_alpha", "layernorm_mlp_alpha"})
    if (facts.number(key) != alpha)
      return fmt::format("{} is {}, and a GGUF has one scale of all residuals, {}", key, facts.number(key),
                         alpha);
  for (const char* key :
       {"layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta"})
    if (facts.number(key) != 1) return fmt::format("{} is {}, and no key says it", key, facts.number(key));
  if (!is(facts, "postnorm", true))
    return "postnorm is not true: llama.cpp's minimax-01 always adds to what is normed";
  if (facts.number("shared_intermediate_size", 0) != 0)
    return "there is a shared expert (shared_intermediate_size), which llama.cpp's minimax-01 has not";
  if (const std::uint64_t heads = whole(facts, "num_attention_heads", 0); !std::has_single_bit(heads))
    return fmt::format("{} heads are no power of two, for which alone llama.cpp computes the decays", heads);
  std::vector<bool> lightning(facts.tree.layers);
  for (const RecurrentGeometry& g : facts.tree.recurrent) {
    for (const std::uint64_t layer : g.layers) lightning[layer] = true;
  }
  for (std::uint64_t i = 0; i < lightning.size(); ++i) {
    if (lightning[i] == ((i + 1) % 8 != 0)) continue;
    return fmt::format(
        "layer {} has {} attention, and a GGUF cannot say so: llama.cpp has softmax in every 8th", i,
        lightning[i] ? "lightning" : "softmax");
  }
  return {};
}

// Pairs of neighbours rotate there, and the factor on cos and sin is that of an mscale of 1.
std::string mistral(const GgufFacts& facts) {
  const ParsedJson* type = facts.find("model_type");
  if (type != nullptr && *type == "ministral3") {
    for (const char* key : {"mscale_all_dim", "llama_4_scaling_beta"})
      if (!facts.rope.contains(key) || !facts.rope[key].is_number())
        return fmt::format("rope_parameters do not say {}, and so would no key", key);
  }
  const double all = facts.rope_number("mscale_all_dim", 0.0), own = facts.rope_number("mscale", 1.0);
  if (all == 0 || own == 1) return {};
  return fmt::format("mscale is {}, and llama.cpp takes it to be 1", own);
}
std::string pairs_of_neighbours(const GgufFacts& facts) {
  return hyperparameters(facts.tree).interleaved_pairs
             ? ""
             : "rope_interleave is false, and llama.cpp rotates pairs of neighbours here";
}
// Which has no matrix of low rank before its queries.
std::string lite(const GgufFacts& facts) {
  const bool is_lite = facts.tree.layers == 26 || facts.tree.layers == 27,
             low_rank = facts.find("q_lora_rank") != nullptr;
  if (is_lite != low_rank) return {};
  return fmt::format(
      "q_lora_rank is {} with {} layers: llama.cpp has none with 26 and 27 layers, and else always",
      low_rank ? "said" : "null", facts.tree.layers);
}

// Which layers have a cache, where gates are sparse, and the cap of logits are constants of its code.
std::string gemma3n(const GgufFacts& facts) {
  constexpr std::uint64_t kCached = 20, kSparse = 10;
  const std::uint64_t shared = whole(facts, "num_kv_shared_layers", 15);
  if (facts.tree.layers != shared + kCached)
    return fmt::format(
        "{} of {} layers read the caches of others, and llama.cpp's gemma3n has 20 with their own", shared,
        facts.tree.layers);
  for (const AttentionGeometry& g : facts.tree.attention) {
    for (const std::uint64_t layer : g.layers) {
      if ((layer == kCached - 1 && g.window != 0) || (layer == kCached - 2 && g.window == 0))
        return "layer 18 has no window or layer 19 has one, and llama.cpp's gemma3n reads their caches "
               "behind";
    }
  }
  if (const ParsedJson* pattern = facts.find("activation_sparsity_pattern"); pattern != nullptr) {
    for (std::size_t i = 0; pattern->is_array() && i < pattern->size(); ++i) {
      if ((*pattern)[i] != (i < kSparse ? 0.95 : 0.0))
        return fmt::format(
            "activation_sparsity_pattern is {} in layer {}, and llama.cpp has 0.95 in the first 10 layers",
            (*pattern)[i].dump(), i);
    }
  }
  if (const ParsedJson* widths = facts.find("intermediate_size"); widths != nullptr && widths->is_array()) {
    for (const ParsedJson& width : *widths)
      if (width != widths->front()) return "MLPs differ in width, which llama.cpp's gemma3n has not";
  }
  for (const auto& [key, taken] : {std::pair{"hidden_size_per_layer_input", 256.0}, {"laurel_rank", 64.0}})
    if (facts.number(key, taken) != taken)
      return fmt::format("{} is {}, and llama.cpp's gemma3n takes {}", key, facts.number(key, taken), taken);
  if (facts.number("altup_num_inputs", 4) != 4)
    return "altup_num_inputs is not 4, as llama.cpp's converter asks";
  if (facts.number("altup_active_idx", 0) != 0)
    return "altup_active_idx is not 0: llama.cpp measures that stream where the class measures the first";
  if (const ParsedJson* scaled = facts.find("altup_correct_scale"); scaled != nullptr && *scaled == false)
    return "altup_correct_scale is false, and llama.cpp's gemma3n scales always";
  if (facts.number("final_logit_softcapping", 30) != 30)
    return "final_logit_softcapping is not 30, which llama.cpp's gemma3n takes";
  return {};
}

std::string laguna(const GgufFacts& facts) {
  std::string why = untold(facts, {"head_dim", "moe_intermediate_size", "shared_expert_intermediate_size",
                                   "moe_routed_scaling_factor", "rope_parameters.full_attention"});
  if (!why.empty()) return why;
  if (const double cap = facts.number("moe_router_logit_softcapping", 0); cap != 0)
    return fmt::format("moe_router_logit_softcapping is {}, and llama.cpp's laguna has none", cap);
  return {};
}

// Layers with windows rotate, by one base, and the others do not.
std::string muse_glimmer(const GgufFacts& facts) {
  if (facts.find("sliding_window") == nullptr)
    return "sliding_window is null, and llama.cpp's muse-glimmer asks for one";
  if (const double epsilon = facts.number("post_norm_eps", 1e-8); epsilon != 1e-8)
    return fmt::format("post_norm_eps is {}, and llama.cpp's muse-glimmer takes 1e-08", epsilon);
  const ParsedJson* thetas = facts.find("layer_rope_theta");
  const double base = facts.rope_number("rope_theta", 10000);
  for (const AttentionGeometry& g : facts.tree.attention) {
    for (const std::uint64_t layer : g.layers) {
      const bool said =
          thetas != nullptr && thetas->is_array() && layer < thetas->size() && (*thetas)[layer].is_number();
      const double theta = said                                       ? (*thetas)[layer].get<double>()
                           : (facts.tree.layers - 1 - layer) % 4 == 0 ? 0
                                                                      : base;
      if (theta == (g.window == 0 ? 0 : base)) continue;
      return fmt::format(
          "layer {} {} a window and {}: llama.cpp's muse-glimmer rotates where there are windows, by one "
          "base",
          layer, g.window == 0 ? "has not" : "has",
          theta == 0 ? "does not rotate" : fmt::format("rotates by {}", theta));
    }
  }
  return own_head(facts);
}

std::string hunyuan_moe(const GgufFacts& facts) {
  if (facts.rope.value("rope_type", "") == "dynamic") {
    const double width = std::floor(facts.number("hidden_size") / facts.number("num_attention_heads"));
    const double context = facts.number("max_position_embeddings", 0);
    if (facts.rope_number("alpha", 1000.0) != 1000 || facts.rope_number("rope_theta", 10000.0) != 10000 ||
        width != 128 || (context != 32768 && context != 262144))
      return "rope scaling is not Hunyuan-A13B's: alpha 1000 on a base of 10000 for heads of 128, of which "
             "alone "
             "llama.cpp's converter makes keys";
  }
  return {};
}

// Dense layers come first, as one number says it; experts are chosen of one group; no projection has a bias; layers before any
// indexer have none whose choice they could take.
std::string latent_of_2026(const GgufFacts& facts) {
  const std::string why =
      untold(facts, {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                     "moe_intermediate_size", "n_routed_experts", "n_shared_experts", "num_experts_per_tok",
                     "norm_topk_prob", "routed_scaling_factor", "rms_norm_eps", "index_n_heads",
                     "index_head_dim", "index_topk", "hidden_act", "max_position_embeddings"});
  if (!why.empty()) return why;
  bool experts = false;
  const ParsedJson* types = facts.find("mlp_layer_types");
  for (std::uint64_t i = 0; types != nullptr && types->is_array() && i < types->size(); ++i) {
    if (experts && (*types)[i] == "dense")
      return fmt::format("layer {} is dense behind layers with experts, and a GGUF counts the first ones", i);
    experts = experts || (*types)[i] != "dense";
  }
  if (const ParsedJson* every = facts.find("moe_layer_freq");
      every != nullptr && every->is_number() && *every != 1)
    return fmt::format("moe_layer_freq is {}, and a GGUF counts the first, dense layers", every->dump());
  if (facts.number("n_group", 1) != 1) return "n_group is not 1, and llama.cpp chooses of one group here";
  if (is(facts, "attention_bias", true)) return "attention_bias is true, and llama.cpp has no biases here";
  if (facts.rope.value("rope_type", "default") != "default")
    return "rope scaling is not default, and llama.cpp stretches scores otherwise here";
  return {};
}

std::string hy_v4(const GgufFacts& facts) {
  std::string why = latent_of_2026(facts);
  if (why.empty())
    why = untold(facts, {"indexer_types", "hc_mult", "hc_eps", "hc_magnitude", "swiglu_limit"});
  if (why.empty() && facts.find("first_k_dense_replace") == nullptr) why = untold(facts, {"mlp_layer_types"});
  if (!why.empty()) return why;
  const ParsedJson* types = facts.find("mlp_layer_types");
  if (const ParsedJson* first = facts.find("first_k_dense_replace"); first != nullptr && types != nullptr) {
    std::uint64_t dense = 0;
    while (dense < types->size() && (*types)[dense] == "dense") ++dense;
    if (*first != dense)
      return fmt::format("first_k_dense_replace is {}, and mlp_layer_types has {} dense layers first",
                         first->dump(), dense);
  }
  if (whole(facts, "index_head_dim", 128) <= whole(facts, "qk_rope_head_dim", 64))
    return "index_head_dim is no larger than qk_rope_head_dim, as llama.cpp's hy_v4 asks";
  if (facts.find("scoring_func") != nullptr && !is(facts, "scoring_func", "sigmoid"))
    return "scoring_func is not sigmoid";
  return own_head(facts);
}

std::string dots3note(const GgufFacts& facts) {
  std::string why = latent_of_2026(facts);
  if (why.empty())
    why = untold(facts, {"layer_types", "scoring_func", "swa_rope_theta", "rope_theta", "sliding_window_size",
                         "swa_num_attention_heads", "swa_q_lora_rank", "swa_kv_lora_rank",
                         "swa_qk_nope_head_dim", "swa_qk_rope_head_dim", "swa_v_head_dim"});
  if (!why.empty()) return why;
  if (facts.find("per_layer_config") != nullptr || facts.find("rope_parameters") != nullptr)
    return "layers are told by per_layer_config or rope_parameters, which llama.cpp's converter does not "
           "read";
  std::size_t narrow_kinds = 0;
  for (const AttentionGeometry& g : facts.tree.attention) narrow_kinds += g.window != 0 ? 1 : 0;
  if (narrow_kinds == 0 || narrow_kinds == facts.tree.attention.size())
    return "layers are all of one kind, and llama.cpp's dots3note asks for some with a window and some "
           "without";
  for (const AttentionGeometry& g : facts.tree.attention)
    if (g.window == 0 && g.indexer_heads == 0)
      return "layers without a window have no indexer (use_dsa), which llama.cpp's dots3note asks for";
  if (!is(facts, "apply_mla_qkv_lora_rescale", true))
    return "apply_mla_qkv_lora_rescale is not said, and norms would be written without what the class "
           "multiplies by";
  for (const auto& [narrow, wide] :
       {std::pair{"swa_q_lora_rank", "q_lora_rank"}, {"swa_qk_rope_head_dim", "qk_rope_head_dim"}})
    if (facts.number(narrow) != facts.number(wide))
      return fmt::format("{} is {} and {} {}, and a GGUF has one of both", narrow, facts.number(narrow), wide,
                         facts.number(wide));
  if (facts.number("swa_qk_nope_head_dim") + facts.number("swa_qk_rope_head_dim") !=
      facts.number("swa_head_dim", 256))
    return "swa_head_dim is not swa_qk_nope_head_dim and swa_qk_rope_head_dim together";
  const double shared =
      facts.number("moe_shared_expert_intermediate_size|shared_experts_intermediate_size", 1536);
  if (shared != facts.number("moe_intermediate_size"))
    return fmt::format("shared experts are {} wide, and llama.cpp's dots3note has them as wide as others",
                       shared);
  return {};
}

std::string glm5_next(const GgufFacts& facts) {
  std::string why = latent_of_2026(facts);
  if (why.empty())
    why = untold(facts, {"layer_types", "first_k_dense_replace", "linear_attn_config.num_heads",
                         "linear_attn_config.head_dim", "linear_attn_config.short_conv_kernel_size",
                         "linear_attn_config.gate_lower_bound", "mla_use_nope", "index_kpool", "hc_mult",
                         "hc_eps", "hc_sinkhorn_iters", "swiglu_limit"});
  if (!why.empty()) return why;
  if (facts.number("linear_attn_config.num_heads") != facts.number("num_attention_heads", 64))
    return "linear_attn_config.num_heads is not num_attention_heads, and a GGUF keeps one of them";
  if (facts.number("hc_mult") != 4) return "hc_mult is not 4, which llama.cpp's glm5-next takes alone";
  if (facts.number("index_kpool") < 2)
    return "index_kpool is below 2, and llama.cpp's glm5-next asks for more";
  for (const auto& list : {facts.find("layer_types"), facts.find("indexer_types")})
    if (list != nullptr && list->is_array() && list->size() != facts.tree.layers)
      return "layer_types or indexer_types are not as many as layers";
  if (facts.find("indexer_types") == nullptr &&
      (facts.find("index_topk_pattern") != nullptr || facts.number("index_topk_freq", 1) > 1))
    return "which layers have an indexer is not told by indexer_types, which alone llama.cpp's converter "
           "reads";
  return own_head(facts);
}

constexpr GgufDemand kDemands[] = {{"deepseek4", deepseek4},
                                   {"hy_v4", hy_v4},
                                   {"dots3note", dots3note},
                                   {"glm5-next", glm5_next},
                                   {"kimi-linear|kimi-k3", ungrouped},
                                   {"kimi-k3", kimi_k3},
                                   {"minimax-01", minimax01},
                                   {"mistral3|mistral4", mistral},
                                   {"mistral4|deepseek2", pairs_of_neighbours},
                                   {"mistral4|deepseek2", lite},
                                   {"gemma3n", gemma3n},
                                   {"laguna", laguna},
                                   {"muse-glimmer", muse_glimmer},
                                   {"hunyuan-moe", hunyuan_moe}};

}  // namespace
}  // namespace gguf_demands_of_2026

std::span<const GgufDemand> gguf_demands_2026() {
  return gguf_demands_of_2026::kDemands;
}

}  // namespace assay
