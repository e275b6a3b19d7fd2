// How llama.cpp keeps models with latent attention of their authors' own code (conversion/minicpm.py, bailingmoe3.py): MiniCPM3,
// with kv_b_proj whole, and Ling 3, of which one layer in four or six has it, absorbed, and the others a state.
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"
#include "core/system/error.h"

namespace assay::families {
namespace latent_own_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using Vocabulary = GgufFamily::Vocabulary;
using namespace gguf_transforms;

// --- MiniCPM3 ----------------------------------------------------------------------------------------------------

constexpr GgufOwnKey kMinicpm3Keys[] = {
    {.key = "general", .form = Form::file_type},
    {.key = "context_length", .config = "max_position_embeddings"},
    {.key = "embedding_length", .config = "hidden_size"},
    {.key = "block_count", .config = "num_hidden_layers"},
    {.key = "feed_forward_length", .config = "intermediate_size"},
    {.key = "attention.head_count", .config = "num_attention_heads"},
    {.key = "attention.head_count_kv", .config = "num_key_value_heads"},
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .config = "rms_norm_eps"},
    {.key = "vocab_size", .config = "vocab_size"},
    {.key = "attention.q_lora_rank", .config = "q_lora_rank"},
    {.key = "attention.kv_lora_rank", .config = "kv_lora_rank"},
    {.key = "attention.key_length", .made = own_keys::latent_key_width},
    {.key = "rope.dimension_count", .config = "qk_rope_head_dim"}};
constexpr GgufRules kMinicpm3 = {.base = {.family = "minicpm3",
                                          .architecture = "minicpm3",
                                          .hf_class = "MiniCPM3ForCausalLM",
                                          .omits_tied_head = true,
                                          .vocabulary = Vocabulary::sentencepiece_first},
                                 .keys_of = Keys::own,
                                 .keys = kMinicpm3Keys,
                                 .more_tensors = own_keys::longrope_factors,
                                 .rope_types = "longrope|su"};

// --- Ling 3 ------------------------------------------------------------------------------------------------------

ParsedJson ling_clamps(const GgufFacts& facts, std::string_view names) {
  const ParsedJson* list = facts.find(names);
  if (list == nullptr || !list->is_array()) return nullptr;
  ParsedJson limits = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i)
    limits.push_back(i < list->size() && (*list)[i].is_number() ? (*list)[i].get<double>() : 0.0);
  return limits;
}
ParsedJson expert_clamps(const GgufFacts& facts) {
  return ling_clamps(facts, "expert_swiglu_limit_list");
}
ParsedJson shared_clamps(const GgufFacts& facts) {
  return ling_clamps(facts, "share_expert_swiglu_limit_list");
}
ParsedJson shared_count(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("num_shared_experts", 1));
}
constexpr GgufOwnKey kLing3Keys[] = {
    {.key = "attention.head_count_kv", .form = Form::i32s, .made = own_keys::attending_layers},
    {.key = "vocab_size", .config = "vocab_size"},
    {.key = "ssm.conv_kernel", .config = "short_conv_kernel_size"},
    {.key = "kda.head_dim", .config = "head_dim"},
    {.key = "kda.safe_gate", .form = Form::flag, .config = "kda_safe_gate"},
    {.key = "kda.gate_lower_bound", .form = Form::f32, .config = "kda_lower_bound"},
    {.key = "attention.q_lora_rank", .config = "q_lora_rank"},
    {.key = "attention.kv_lora_rank", .config = "kv_lora_rank"},
    {.key = "rope.dimension_count", .config = "qk_rope_head_dim"},
    {.key = "attention.key_length", .made = own_keys::latent_width},
    {.key = "attention.key_length_mla", .made = own_keys::latent_key_width},
    {.key = "attention.value_length_mla", .config = "v_head_dim"},
    {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"},
    {.key = "expert_shared_feed_forward_length", .config = "moe_shared_expert_intermediate_size"},
    {.key = "expert_shared_count", .made = shared_count},
    {.key = "leading_dense_block_count", .config = "first_k_dense_replace"},
    {.key = "expert_weights_scale", .form = Form::f32, .config = "routed_scaling_factor"},
    {.key = "expert_weights_norm", .form = Form::flag, .config = "norm_topk_prob"},
    {.key = "swiglu_clamp_exp", .form = Form::f32s, .made = expert_clamps},
    {.key = "swiglu_clamp_shexp", .form = Form::f32s, .made = shared_clamps}};

constexpr GgufOwnName kLing3Names[] = {
    {"attention.q_conv1d.weight", "ssm_conv1d_q", as_convolution},
    {"attention.k_conv1d.weight", "ssm_conv1d_k", as_convolution},
    {"attention.v_conv1d.weight", "ssm_conv1d_v", as_convolution},
    {"attention.A_log", "ssm_a!", exp_as_column},
    {"attention.dt_bias", "ssm_dt.bias"},
    {"attention.f_proj.weight", "ssm_f_a"},
    {"attention.g_proj.weight", "attn_gate|ssm_g_a", of_attention_or_state},
    {"attention.b_proj.weight", "ssm_beta"},
    {"attention.o_norm.weight", "ssm_norm"},
    {"attention.o_proj.weight", "attn_output"},
    {"gate.expert_bias", "exp_probs_b.bias"}};
constexpr GgufRules kLing3 = {.base = {.family = "bailing_moe_v3",
                                       .architecture = "bailingmoe3",
                                       .hf_class = "BailingMoeV3ForCausalLM",
                                       .latent = true},
                              .keys_of = Keys::of_config,
                              .keys = kLing3Keys,
                              .names = kLing3Names,
                              .back = back::bailing_v3};

constexpr const GgufRules* kGroup[] = {&kMinicpm3, &kLing3};

}  // namespace
}  // namespace latent_own_in_gguf

GgufGroup gguf_latent_own() {
  return latent_own_in_gguf::kGroup;
}

}  // namespace assay::families
