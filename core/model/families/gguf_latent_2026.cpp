// How llama.cpp keeps decoders of 2026 around latent attention (conversion/hy_v4.py, dots3.py, glm.py): HY4, dots3-note and
// GLM-5.3-Flash. Attention is absorbed, as in gguf_latent.cpp.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/families/gguf_latent_keys.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"
#include "core/model/layer_geometry.h"

namespace assay::families {
namespace latent_2026_in_gguf {
namespace {

using Keys = GgufRules::Keys;
using namespace gguf_transforms;
using namespace latent_keys;

// The one limit, of every layer.
ParsedJson clamps(const GgufFacts& facts) {
  const double limit = facts.number("swiglu_limit", 0);
  if (!(limit > 0)) return nullptr;
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) list.push_back(limit);
  return list;
}

// --- HY4 ---------------------------------------------------------------------------------------------------------

constexpr GgufOwnKey kHyV4Keys[] = {
    kDenseFirst,
    kVocabulary,
    kQueryRank,
    kCacheRank,
    kCacheWidth,
    kCachedValues,
    kKeyWidth,
    kValueWidth,
    kExpertWidth,
    kExpertCount,
    kSharedCount,
    kWeightsScale,
    kWeightsNorm,
    kRotary,
    {.key = "expert_gating_func", .constant = kGgufSigmoidGating},
    {.key = "swiglu_clamp_exp", .form = Form::f32s, .made = clamps},
    {.key = "hyper_connection.count", .config = "hc_mult"},
    {.key = "hyper_connection.epsilon", .form = Form::f32, .config = "hc_eps"},
    {.key = "hyper_connection.magnitude", .form = Form::f32, .config = "hc_magnitude"},
    kIndexerHeads,
    kIndexerWidth,
    kIndexerChosen,
    kIndexerTypes};
constexpr GgufOwnName kHyV4Names[] = {{"experts.gate_up_proj", "ffn_gate_exps|ffn_up_exps", split_halves},
                                      {"experts.down_proj", "ffn_down_exps.weight"},
                                      {"self_attn.learnable_sink_param", "attn_sinks"},
                                      {"self_attn.linear_gate.weight", "attn_gate"},
                                      {"hc_attn_layer.hc_pre.hc_fn", "hc_attn_fn"},
                                      {"hc_attn_layer.hc_pre.hc_base", "hc_attn_base"},
                                      {"hc_attn_layer.hc_pre.hc_scale", "hc_attn_scale"},
                                      {"hc_mlp_layer.hc_pre.hc_fn", "hc_ffn_fn"},
                                      {"hc_mlp_layer.hc_pre.hc_base", "hc_ffn_base"},
                                      {"hc_mlp_layer.hc_pre.hc_scale", "hc_ffn_scale"},
                                      {"hc_head_fn", "output_hc_fn"},
                                      {"hc_head_base", "output_hc_base"},
                                      {"hc_head_scale", "output_hc_scale"}};
constexpr GgufRules kHyV4 = {
    .base = {.family = "hy_v4", .architecture = "hy_v4", .hf_class = "HYV4ForCausalLM", .latent = true},
    .keys_of = Keys::of_config,
    .keys = kHyV4Keys,
    .names = kHyV4Names,
    .ignores_head_dim = true,
    .f32_parts = "hc_",
    .f32_head = "enable_lm_head_fp32",
    .omits_lone_group = true,
    .back = back::hy_v4};

// --- dots3-note --------------------------------------------------------------------------------------------------

ParsedJson dots3_heads(const GgufFacts& facts) {
  ParsedJson heads = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) {
    const AttentionGeometry* g = geometry_of(facts.tree, i);
    heads.push_back(g == nullptr ? 0U : g->heads);
  }
  return heads;
}
ParsedJson without_windows(const GgufFacts& facts) {
  ParsedJson flags = own_keys::windows_by_layer(facts);
  for (ParsedJson& flag : flags) flag = !flag.get<bool>();
  return flags;
}
ParsedJson window_cache_width(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("swa_kv_lora_rank") + facts.number("swa_qk_rope_head_dim"));
}
ParsedJson window_key_width(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("swa_qk_nope_head_dim") +
                                    facts.number("swa_qk_rope_head_dim"));
}
// √(hidden / rank), which the class multiplies a latent by behind its norm, is in the norm's weight here.
std::vector<DerivedTensor> scaled_norm(const GgufSource& source) {
  DerivedTensor tensor = whole(gguf_name_of(source.stem, source.layer, false), source.stored, source.place);
  const auto rank = static_cast<double>(source.spec.shape.at(0)),
             hidden = static_cast<double>(source.tree.hidden_size);
  for (DerivedTensor::Piece& piece : tensor.pieces)
    piece.factors[0] = static_cast<float>(std::sqrt(hidden / rank));
  return {tensor};
}
constexpr GgufOwnKey kDots3Keys[] = {
    {.key = "attention.head_count", .form = Form::i32s, .made = dots3_heads},
    kDenseFirst,
    kVocabulary,
    kQueryRank,
    kCacheRank,
    kCacheWidth,
    kCachedValues,
    kKeyWidth,
    kValueWidth,
    kExpertWidth,
    kExpertCount,
    kSharedCount,
    kWeightsScale,
    kWeightsNorm,
    kRotary,
    {.key = "attention.sliding_window", .config = "sliding_window_size"},
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = own_keys::windows_by_layer},
    {.key = "attention.kv_lora_rank_swa", .config = "swa_kv_lora_rank"},
    {.key = "attention.key_length_swa", .made = window_cache_width},
    {.key = "attention.value_length_swa", .config = "swa_kv_lora_rank"},
    {.key = "attention.key_length_mla_swa", .made = window_key_width},
    {.key = "attention.value_length_mla_swa", .config = "swa_v_head_dim"},
    kIndexerHeads,
    kIndexerWidth,
    kIndexerChosen,
    {.key = "attention.indexer.types", .form = Form::flags, .made = without_windows}};
constexpr GgufOwnName kDots3Names[] = {{"self_attn.g_proj.weight", "attn_gate"},
                                       {"self_attn.k_rope_only_layernorm.weight", "attn_k_norm"},
                                       {"self_attn.q_a_layernorm.weight", "attn_q_a_norm", scaled_norm},
                                       {"self_attn.kv_a_layernorm.weight", "attn_kv_a_norm", scaled_norm}};
constexpr GgufRules kDots3 = {.base = {.family = "dots3_note",
                                       .architecture = "dots3note",
                                       .hf_class = "Dots3NoteForCausalLM",
                                       .latent = true,
                                       .omits_tied_head = true},
                              .keys_of = Keys::of_config,
                              .keys = kDots3Keys,
                              .names = kDots3Names,
                              .ignores_head_dim = true,
                              .tokenizer = GgufRules::Tokenizer::dots3,
                              .lost = back::kNotTold};

// --- GLM-5.3-Flash -----------------------------------------------------------------------------------------------

ParsedJson selects_tail(const GgufFacts&) {
  return true;  // else it is not computed
}
constexpr GgufOwnKey kGlm5NextKeys[] = {
    kKeyHeads,
    kVocabulary,
    {.key = "attention.layer_norm_epsilon", .form = Form::f32, .constant = 1e-6},
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
    kIndexerHeads,
    kIndexerWidth,
    kIndexerChosen,
    {.key = "attention.indexer.kpool", .config = "index_kpool"},
    {.key = "attention.indexer.kpool_select_tail", .form = Form::flag, .made = selects_tail},
    kIndexerTypes,
    {.key = "hyper_connection.count", .config = "hc_mult"},
    {.key = "hyper_connection.sinkhorn_iterations", .config = "hc_sinkhorn_iters"},
    {.key = "hyper_connection.epsilon", .form = Form::f32, .config = "hc_eps"},
    {.key = "leading_dense_block_count", .config = "first_k_dense_replace"},
    kExpertWidth,
    kSharedCount,
    kWeightsScale,
    {.key = "expert_weights_norm", .form = Form::flag, .config = "norm_topk_prob"},
    {.key = "swiglu_clamp_exp", .form = Form::f32s, .made = clamps},
    {.key = "swiglu_clamp_shexp", .form = Form::f32s, .made = clamps}};
constexpr GgufOwnName kGlm5NextNames[] = {{"self_attn.q_conv1d.weight", "ssm_conv1d_q", as_convolution},
                                          {"self_attn.k_conv1d.weight", "ssm_conv1d_k", as_convolution},
                                          {"self_attn.v_conv1d.weight", "ssm_conv1d_v", as_convolution},
                                          {"self_attn.A_log", "ssm_a!", minus_exp_of_heads},
                                          {"self_attn.dt_bias", "ssm_dt.bias"},
                                          {"self_attn.f_a_proj.weight", "ssm_f_a"},
                                          {"self_attn.f_b_proj.weight", "ssm_f_b"},
                                          {"self_attn.g_a_proj.weight", "ssm_g_a"},
                                          {"self_attn.g_b_proj.weight", "ssm_g_b"},
                                          {"self_attn.b_proj.weight", "ssm_beta"},
                                          {"self_attn.o_norm.weight", "ssm_norm"},
                                          {"self_attn.o_proj.weight", "attn_output"},
                                          {"index_kpool_compress_ape", "indexer_compressor_ape"},
                                          {"index_kpool_compress_gate", "indexer_compressor_gate"},
                                          {"hc_attn_fn", "hc_attn_fn"},
                                          {"hc_attn_base", "hc_attn_base"},
                                          {"hc_attn_scale", "hc_attn_scale"},
                                          {"hc_ffn_fn", "hc_ffn_fn"},
                                          {"hc_ffn_base", "hc_ffn_base"},
                                          {"hc_ffn_scale", "hc_ffn_scale"}};
constexpr GgufRules kGlm5Next = {.base = {.family = "glm5_next",
                                          .architecture = "glm5-next",
                                          .hf_class = "Glm5NextForConditionalGeneration",
                                          .latent = true},
                                 .keys_of = Keys::of_config,
                                 .keys = kGlm5NextKeys,
                                 .names = kGlm5NextNames,
                                 .ignores_head_dim = true,
                                 .f32_parts = "hc_|indexer_compressor_",
                                 .tokenizer = GgufRules::Tokenizer::glm,
                                 .back = back::glm5_next};

constexpr const GgufRules* kGroup[] = {&kHyV4, &kDots3, &kGlm5Next};

}  // namespace
}  // namespace latent_2026_in_gguf

GgufGroup gguf_latent_2026() {
  return latent_2026_in_gguf::kGroup;
}

}  // namespace assay::families
