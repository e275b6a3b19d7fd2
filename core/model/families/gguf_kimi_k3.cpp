// How llama.cpp keeps Kimi K3 (conversion/kimi_k3.py): Kimi Linear with a gate of every attention, experts in a narrower
// space, and residuals that are scored by the product of a norm and a matrix of one row.
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/families/gguf_latent_keys.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"

namespace assay::families {
namespace kimi_k3_in_gguf {
namespace {

using Keys = GgufRules::Keys;
using namespace gguf_transforms;
using namespace latent_keys;

constexpr GgufOwnKey kKeys[] = {
    kVocabulary,
    kKeyHeads,
    kConvolution,
    kDeltaWidth,
    kGateBound,
    kQueryRank,
    kCacheRank,
    kRotary,
    kCacheWidth,
    kCachedValues,
    kKeyWidth,
    kValueWidth,
    kExpertWidth,
    {.key = "expert_shared_count", .config = "num_shared_experts"},
    kDenseFirst,
    kWeightsScale,
    {.key = "expert_weights_norm", .form = Form::flag, .config = "moe_renormalize"},
    {.key = "expert_gating_func", .constant = kGgufSigmoidGating},
    {.key = "expert_latent_length", .config = "routed_expert_hidden_size"},
    {.key = "activation.situ_beta", .form = Form::f32, .config = "activation_situ_beta"},
    {.key = "activation.situ_linear_beta", .form = Form::f32, .config = "activation_situ_linear_beta"},
    {.key = "attn_res.block_size", .config = "attn_res_block_size"}};
constexpr GgufOwnName kNames[] = {{"self_attention_res_norm.weight", ""},
                                  {"self_attention_res_proj.weight", "attn_res_score", times_its_norm},
                                  {"mlp_res_norm.weight", ""},
                                  {"mlp_res_proj.weight", "ffn_res_score", times_its_norm},
                                  {"output_attn_res_norm.weight", ""},
                                  {"output_attn_res_proj.weight", "output_res_score", times_its_norm},
                                  {"self_attn.q_conv1d.weight", "ssm_conv1d_q", as_convolution},
                                  {"self_attn.k_conv1d.weight", "ssm_conv1d_k", as_convolution},
                                  {"self_attn.v_conv1d.weight", "ssm_conv1d_v", as_convolution},
                                  {"self_attn.A_log", "ssm_a!", minus_exp_of_heads},
                                  {"self_attn.dt_bias", "ssm_dt.bias"},
                                  {"self_attn.f_a_proj.weight", "ssm_f_a"},
                                  {"self_attn.f_b_proj.weight", "ssm_f_b"},
                                  {"self_attn.g_proj.weight", "attn_gate|ssm_g", of_attention_or_state},
                                  {"self_attn.b_proj.weight", "ssm_beta"},
                                  {"self_attn.o_norm.weight", "ssm_norm"},
                                  {"self_attn.o_proj.weight", "attn_output"},
                                  {"routed_expert_down_proj.weight", "ffn_routed_down"},
                                  {"routed_expert_up_proj.weight", "ffn_routed_up"},
                                  {"routed_expert_norm.weight", "ffn_routed_norm"},
                                  {"gate.e_score_correction_bias", "exp_probs_b.bias"}};
constexpr GgufRules kKimiK3 = {.base = {.family = "kimi_k3",
                                        .architecture = "kimi-k3",
                                        .hf_class = "KimiK3ForConditionalGeneration",
                                        .latent = true},
                               .keys_of = Keys::of_config,
                               .keys = kKeys,
                               .names = kNames,
                               .activations = "situ",
                               .fp4 = GgufRules::Fp4::first,
                               .tokenizer = GgufRules::Tokenizer::kimi_k3,
                               .lost = back::kNotTold};

constexpr const GgufRules* kGroup[] = {&kKimiK3};

}  // namespace
}  // namespace kimi_k3_in_gguf

GgufGroup gguf_kimi_k3() {
  return kimi_k3_in_gguf::kGroup;
}

}  // namespace assay::families
