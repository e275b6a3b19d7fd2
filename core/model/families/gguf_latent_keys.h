// Keys that GGUFs of latent attention share: Kimi Linear and K3, GLM-5 and 5.3, DeepSeek V3.2 and their kin. Absorbed, all
// queries look at one key, as wide as what is cached. Source: llama.cpp's conversion/deepseek.py, glm.py, hy_v4.py, kimi_k3.py.
#pragma once

#include <nlohmann/json.hpp>

#include "core/model/gguf_own_keys.h"

namespace assay::families::latent_keys {

using Form = GgufOwnKey::Form;

// indexer_types as flags, of as many layers as there are: of a longer list (GLM's, which counts the layers for multi-token
// prediction) llama.cpp says "wrong array length" and loads nothing, though the converter writes it whole but for HY4's.
inline ParsedJson own_indexers(const GgufFacts& facts) {
  const ParsedJson* types = facts.find("indexer_types");
  if (types == nullptr || !types->is_array()) return nullptr;
  ParsedJson flags = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers && i < types->size(); ++i)
    flags.push_back((*types)[i] == "full");
  return flags;
}

inline constexpr GgufOwnKey kVocabulary = {.key = "vocab_size", .config = "vocab_size"};
inline constexpr GgufOwnKey kDenseFirst = {.key = "leading_dense_block_count",
                                           .made = own_keys::dense_layers};
inline constexpr GgufOwnKey kQueryRank = {.key = "attention.q_lora_rank", .config = "q_lora_rank"};
inline constexpr GgufOwnKey kCacheRank = {.key = "attention.kv_lora_rank", .config = "kv_lora_rank"};
inline constexpr GgufOwnKey kCacheWidth = {.key = "attention.key_length", .made = own_keys::latent_width};
inline constexpr GgufOwnKey kCachedValues = {.key = "attention.value_length", .config = "kv_lora_rank"};
inline constexpr GgufOwnKey kKeyWidth = {.key = "attention.key_length_mla",
                                         .made = own_keys::latent_key_width};
inline constexpr GgufOwnKey kValueWidth = {.key = "attention.value_length_mla", .config = "v_head_dim"};
inline constexpr GgufOwnKey kRotary = {.key = "rope.dimension_count", .config = "qk_rope_head_dim"};
// Of layers that have states 0, of the others 1.
inline constexpr GgufOwnKey kKeyHeads = {
    .key = "attention.head_count_kv", .form = Form::i32s, .made = own_keys::attending_layers};

inline constexpr GgufOwnKey kExpertWidth = {.key = "expert_feed_forward_length",
                                            .config = "moe_intermediate_size"};
inline constexpr GgufOwnKey kExpertCount = {.key = "expert_count", .config = "n_routed_experts"};
inline constexpr GgufOwnKey kSharedCount = {.key = "expert_shared_count", .config = "n_shared_experts"};
inline constexpr GgufOwnKey kWeightsScale = {
    .key = "expert_weights_scale", .form = Form::f32, .config = "routed_scaling_factor"};
inline constexpr GgufOwnKey kWeightsNorm = {
    .key = "expert_weights_norm", .form = Form::flag, .config = "norm_topk_prob", .unless_zero = true};

inline constexpr GgufOwnKey kIndexerHeads = {.key = "attention.indexer.head_count",
                                             .config = "index_n_heads"};
inline constexpr GgufOwnKey kIndexerWidth = {.key = "attention.indexer.key_length",
                                             .config = "index_head_dim"};
inline constexpr GgufOwnKey kIndexerChosen = {.key = "attention.indexer.top_k", .config = "index_topk"};
inline constexpr GgufOwnKey kIndexerTypes = {
    .key = "attention.indexer.types", .form = Form::flags, .made = own_indexers};

// Kimi's delta attention.
inline constexpr GgufOwnKey kConvolution = {.key = "ssm.conv_kernel",
                                            .config = "linear_attn_config.short_conv_kernel_size"};
inline constexpr GgufOwnKey kDeltaWidth = {.key = "kda.head_dim", .config = "linear_attn_config.head_dim"};
inline constexpr GgufOwnKey kGateBound = {
    .key = "kda.gate_lower_bound", .form = Form::f32, .config = "linear_attn_config.gate_lower_bound"};

}  // namespace assay::families::latent_keys
