// How llama.cpp keeps DeepSeek-V4 (conversion/deepseek.py, DeepseekV4Model): names of its own for the streams of residuals
// and the compressors; the tables by which tokens choose experts are tensors of whole numbers.
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_own_keys.h"

namespace assay::families {
namespace deepseek_v4_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;

// The one limit, of every layer.
ParsedJson clamps(const GgufFacts& facts) {
  ParsedJson list = ParsedJson::array();
  const double limit = facts.number("swiglu_limit");
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) list.push_back(limit);
  return list;
}
ParsedJson width_of_streams(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("hidden_size") * facts.number("hc_mult"));
}
constexpr GgufOwnKey kKeys[] = {
    {.key = "rope.dimension_count", .config = "qk_rope_head_dim"},
    {.key = "attention.q_lora_rank", .config = "q_lora_rank"},
    {.key = "attention.sliding_window", .config = "sliding_window"},
    {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"},
    {.key = "expert_shared_count", .config = "n_shared_experts"},
    {.key = "expert_weights_scale", .form = Form::f32, .config = "routed_scaling_factor"},
    {.key = "expert_weights_norm", .form = Form::flag, .config = "norm_topk_prob"},
    {.key = "swiglu_clamp_exp", .form = Form::f32s, .made = clamps},
    {.key = "swiglu_clamp_shexp", .form = Form::f32s, .made = clamps},
    {.key = "attention.indexer.head_count", .config = "index_n_heads"},
    {.key = "attention.indexer.key_length", .config = "index_head_dim"},
    {.key = "attention.indexer.top_k", .config = "index_topk"},
    {.key = "attention.output_group_count", .config = "o_groups"},
    {.key = "attention.output_lora_rank", .config = "o_lora_rank"},
    {.key = "attention.compress_ratios", .form = Form::i32s, .config = "compress_ratios"},
    {.key = "attention.compress_rope_freq_base", .form = Form::f32, .config = "compress_rope_theta"},
    {.key = "hyper_connection.count", .config = "hc_mult"},
    {.key = "hyper_connection.sinkhorn_iterations", .config = "hc_sinkhorn_iters"},
    {.key = "hyper_connection.epsilon", .form = Form::f32, .config = "hc_eps"},
    {.key = "hash_layer_count", .config = "num_hash_layers"},
    {.key = "embedding_length_out", .made = width_of_streams}};
constexpr GgufOwnName kNames[] = {{"attn.wkv.weight", "attn_kv"},
                                  {"attn.wo_a.weight", "attn_output_a"},
                                  {"attn.wo_b.weight", "attn_output_b"},
                                  {"attn.compressor.ape", "attn_compressor_ape"},
                                  {"attn.compressor.wkv.weight", "attn_compressor_kv"},
                                  {"attn.compressor.wgate.weight", "attn_compressor_gate"},
                                  {"attn.compressor.norm.weight", "attn_compressor_norm"},
                                  {"indexer.compressor.ape", "indexer_compressor_ape"},
                                  {"indexer.compressor.wkv.weight", "indexer_compressor_kv"},
                                  {"indexer.compressor.wgate.weight", "indexer_compressor_gate"},
                                  {"indexer.compressor.norm.weight", "indexer_compressor_norm"},
                                  {"hc_attn_fn", "hc_attn_fn"},
                                  {"hc_attn_base", "hc_attn_base"},
                                  {"hc_attn_scale", "hc_attn_scale"},
                                  {"hc_ffn_fn", "hc_ffn_fn"},
                                  {"hc_ffn_base", "hc_ffn_base"},
                                  {"hc_ffn_scale", "hc_ffn_scale"},
                                  {"hc_head_fn", "output_hc_fn"},
                                  {"hc_head_base", "output_hc_base"},
                                  {"hc_head_scale", "output_hc_scale"},
                                  {"gate.bias", "exp_probs_b.bias"},
                                  {"gate.tid2eid", "ffn_gate_tid2eid"}};
constexpr GgufRules kDeepseekV4 = {
    .base = {.family = "deepseek_v4", .architecture = "deepseek4", .hf_class = "DeepseekV4ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kKeys,
    .names = kNames,
    .f32_parts = "hc_",
    .fp4 = GgufRules::Fp4::first_and_others_as_stored,
    .back = back::deepseek_v4};

constexpr const GgufRules* kGroup[] = {&kDeepseekV4};

}  // namespace
}  // namespace deepseek_v4_in_gguf

GgufGroup gguf_deepseek_v4() {
  return deepseek_v4_in_gguf::kGroup;
}

}  // namespace assay::families
