// How llama.cpp keeps mixtures of experts (conversion/*.py): Qwen2-MoE, MiniMax-M2, GLM-4.5, gpt-oss, Llama 4, OLMoE,
// DBRX, Granite, ERNIE 4.5, dots.llm1, Mellum, Trinity, Cohere 2. Experts of a layer, stored one by one, become stacks
// whatever the family (gguf_export.cpp).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_keys.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"

namespace assay::families {
namespace mixtures_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using Vocabulary = GgufFamily::Vocabulary;
using namespace gguf_transforms;

constexpr GgufOwnKey kVocabulary = {.key = "vocab_size", .config = "vocab_size"};
constexpr GgufOwnKey kWindow = {.key = "attention.sliding_window", .config = "sliding_window"};
constexpr GgufOwnKey kHeadRotary = {.key = "rope.dimension_count", .made = own_keys::head_width};
constexpr GgufOwnKey kExpertWidth = {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"};
constexpr GgufOwnKey kSharedWidth = {.key = "expert_shared_feed_forward_length",
                                     .config = "shared_expert_intermediate_size"};
constexpr GgufOwnKey kSharedCount = {.key = "expert_shared_count", .config = "n_shared_experts"};
constexpr GgufOwnKey kDenseFirst = {.key = "leading_dense_block_count", .config = "first_k_dense_replace"};
constexpr GgufOwnKey kScale = {
    .key = "expert_weights_scale", .form = Form::f32, .config = "routed_scaling_factor|route_scale"};
constexpr GgufOwnKey kRenormalized = {
    .key = "expert_weights_norm", .form = Form::flag, .config = "norm_topk_prob|route_norm"};

// transformers' classes forget scoring_func, and llama.cpp asks for it.
constexpr GgufOwnKey kSigmoid = {.key = "expert_gating_func", .constant = kGgufSigmoidGating};

constexpr GgufOwnKey kQwen2Keys[] = {kExpertWidth, kSharedWidth};
constexpr GgufRules kQwen2Moe = {
    .base = {.family = "qwen2_moe", .architecture = "qwen2moe", .hf_class = "Qwen2MoeForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kQwen2Keys};

constexpr GgufOwnKey kDotsKeys[] = {kExpertWidth, kSharedWidth,  kDenseFirst, kSharedCount,
                                    kScale,       kRenormalized, kSigmoid};
constexpr GgufRules kDots = {
    .base = {.family = "dots1", .architecture = "dots1", .hf_class = "Dots1ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kDotsKeys,
    .back = back::dots1};

constexpr GgufOwnKey kMinimaxKeys[] = {{.key = "expert_feed_forward_length", .config = "intermediate_size"},
                                       {.key = "rope.dimension_count", .config = "rotary_dim"},
                                       kSigmoid};
constexpr GgufRules kMinimaxM2 = {
    .base = {.family = "minimax_m2", .architecture = "minimax-m2", .hf_class = "MiniMaxM2ForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kMinimaxKeys,
    .back = back::local_experts};

ParsedJson half_rotary(const GgufFacts& facts) {
  const double part = facts.rope.value("partial_rotary_factor", 0.5);
  return static_cast<std::uint64_t>(static_cast<double>(facts.head_dim()) * part);
}
constexpr GgufOwnName kGlmNames[] = {{"post_attention_layernorm.weight", "post_attention_norm"}};
constexpr GgufOwnKey kGlmKeys[] = {{.key = "rope.dimension_count", .made = half_rotary},
                                   {.key = "expert_count", .config = "n_routed_experts"},
                                   kExpertWidth,
                                   kSharedCount,
                                   kDenseFirst,
                                   {.key = "expert_gating_func", .constant = kGgufSigmoidGating},
                                   kScale,
                                   kRenormalized};
constexpr GgufRules kGlm4Moe = {
    .base = {.family = "glm4_moe", .architecture = "glm4moe", .hf_class = "Glm4MoeForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kGlmKeys,
    .names = kGlmNames,
    .tokenizer = GgufRules::Tokenizer::glm,
    .back = back::glm};

// GLM-4.5V's heads turn halves.
constexpr GgufRules kGlm4vMoe = {.base = {.family = "glm4v_moe_text",
                                          .architecture = "glm4moe",
                                          .hf_class = "Glm4vMoeForConditionalGeneration",
                                          .told_by = GgufFamily::ToldBy::nothing},
                                 .keys_of = Keys::of_config,
                                 .keys = kGlmKeys,
                                 .names = kGlmNames,
                                 .rope_types = "mrope",
                                 .tokenizer = GgufRules::Tokenizer::glm};

constexpr GgufOwnName kGptOssNames[] = {
    {"experts.gate_up_proj", "ffn_gate_exps.weight|ffn_up_exps.weight", transposed_alternating},
    {"experts.gate_up_proj_bias", "ffn_gate_exps.bias|ffn_up_exps.bias", alternating_bias},
    {"experts.down_proj", "ffn_down_exps.weight", transposed_experts},
    {"experts.down_proj_bias", "ffn_down_exps.bias"},
    {"post_attention_layernorm.weight", "post_attention_norm"}};
constexpr GgufOwnKey kGptOssKeys[] = {kWindow,
                                      {.key = "expert_feed_forward_length", .config = "intermediate_size"}};
constexpr GgufRules kGptOss = {
    .base = {.family = "gpt_oss", .architecture = "gpt-oss", .hf_class = "GptOssForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kGptOssKeys,
    .names = kGptOssNames,
    .back = back::gpt_oss};

// All layers see everything: no chunks.
ParsedJson llama4_window(const GgufFacts& facts) {
  const ParsedJson* types = facts.find("layer_types");
  if (types == nullptr || !types->is_array()) return nullptr;
  const bool full = std::all_of(types->begin(), types->end(),
                                [](const ParsedJson& type) { return type == "full_attention"; });
  return full ? ParsedJson(0U) : ParsedJson();
}
constexpr GgufOwnName kLlama4Names[] = {
    {"experts.gate_up_proj", "ffn_gate_exps.weight|ffn_up_exps.weight", transposed_halves},
    {"experts.down_proj", "ffn_down_exps.weight", transposed_experts}};
constexpr GgufOwnKey kLlama4Keys[] = {
    {.key = "feed_forward_length", .config = "intermediate_size_mlp"},
    kVocabulary,
    kHeadRotary,
    {.key = "interleave_moe_layer_step", .config = "interleave_moe_layer_step"},
    {.key = "expert_feed_forward_length", .config = "intermediate_size"},
    {.key = "attention.sliding_window", .made = llama4_window}};
constexpr GgufRules kLlama4 = {.base = {.family = "llama4",
                                        .architecture = "llama4",
                                        .hf_class = "Llama4ForCausalLM",
                                        .writes_rope_factors = true},
                               .keys_of = Keys::of_config,
                               .keys = kLlama4Keys,
                               .names = kLlama4Names,
                               .back = back::llama4};

constexpr GgufOwnKey kOlmoeKeys[] = {
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .constant = 1e-5}};
constexpr GgufRules kOlmoe = {
    .base = {.family = "olmoe", .architecture = "olmoe", .hf_class = "OlmoeForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kOlmoeKeys};

constexpr GgufOwnName kDbrxNames[] = {{"experts.mlp.w1", "ffn_gate_exps.weight", stacked_rows},
                                      {"experts.mlp.v1", "ffn_up_exps.weight", stacked_rows},
                                      {"experts.mlp.w2", "ffn_down_exps.weight", stacked_rows_transposed},
                                      {"norm_2.weight", "attn_output_norm"}};
constexpr GgufOwnKey kDbrxKeys[] = {
    {.key = "block_count", .config = "n_layers"},
    {.key = "context_length", .config = "max_seq_len"},
    {.key = "embedding_length", .config = "d_model"},
    {.key = "feed_forward_length", .config = "ffn_config.ffn_hidden_size"},
    {.key = "attention.head_count", .config = "n_heads"},
    {.key = "attention.head_count_kv", .config = "attn_config.kv_n_heads"},
    {.key = "rope.freq_base", .form = Form::f32, .config = "attn_config.rope_theta"},
    {.key = "attention.clamp_kqv", .form = Form::f32, .config = "attn_config.clip_qkv"},
    {.key = "expert_count", .config = "ffn_config.moe_num_experts"},
    {.key = "expert_used_count", .config = "ffn_config.moe_top_k"},
    {.key = "attention.layer_norm_epsilon", .form = Form::f32, .constant = 1e-5},
    {.key = "general", .form = Form::file_type}};
constexpr GgufRules kDbrx = {
    .base = {.family = "dbrx", .architecture = "dbrx", .hf_class = "DbrxForCausalLM"},
    .keys_of = Keys::own,
    .keys = kDbrxKeys,
    .names = kDbrxNames,
    .router_as_others = true};

constexpr GgufOwnName kGraniteNames[] = {
    {"block_sparse_moe.input_linear.weight", "ffn_gate_exps|ffn_up_exps", split_halves},
    {"block_sparse_moe.output_linear.weight", "ffn_down_exps"},
    {"shared_mlp.input_linear.weight", "ffn_gate_shexp|ffn_up_shexp", split_halves},
    {"shared_mlp.output_linear.weight", "ffn_down_shexp"}};
constexpr GgufOwnKey kGraniteKeys[] = {
    kVocabulary,
    kHeadRotary,
    {.key = "attention.scale", .form = Form::f32, .config = "attention_multiplier", .unless_zero = true},
    {.key = "embedding_scale", .form = Form::f32, .config = "embedding_multiplier", .unless_zero = true},
    {.key = "residual_scale", .form = Form::f32, .config = "residual_multiplier", .unless_zero = true},
    {.key = "logit_scale", .form = Form::f32, .config = "logits_scaling", .unless_zero = true},
    {.key = "expert_shared_feed_forward_length", .config = "shared_intermediate_size", .unless_zero = true}};
constexpr GgufRules kGraniteMoe = {.base = {.family = "granitemoe",
                                            .architecture = "granitemoe",
                                            .hf_class = "GraniteMoeForCausalLM",
                                            .paired_heads = true,
                                            .writes_rope_factors = true,
                                            .vocabulary = Vocabulary::llama},
                                   .keys_of = Keys::of_config,
                                   .keys = kGraniteKeys,
                                   .names = kGraniteNames,
                                   .ignores_head_dim = true,
                                   .back = back::local_experts};
constexpr GgufRules kGraniteShared = {.base = {.family = "granitemoeshared",
                                               .architecture = "granitemoe",
                                               .hf_class = "GraniteMoeSharedForCausalLM",
                                               .told_by = GgufFamily::ToldBy::nothing,
                                               .paired_heads = true,
                                               .writes_rope_factors = true,
                                               .vocabulary = Vocabulary::llama},
                                      .keys_of = Keys::of_config,
                                      .keys = kGraniteKeys,
                                      .names = kGraniteNames,
                                      .ignores_head_dim = true,
                                      .back = back::local_experts,
                                      .told = back::has_shared_experts};

// As the converter has it, whatever its meaning.
ParsedJson ernie_shared(const GgufFacts& facts) {
  if (facts.number("moe_num_shared_experts", 0) == 0) return nullptr;
  return static_cast<std::uint64_t>(facts.number("intermediate_size")) /
         static_cast<std::uint64_t>(facts.number("num_key_value_heads"));
}
constexpr GgufOwnName kErnieNames[] = {{"moe_statics.e_score_correction_bias", "exp_probs_b.bias"}};
constexpr GgufOwnKey kErnieKeys[] = {{.key = "expert_count", .config = "moe_num_experts"},
                                     {.key = "expert_used_count", .config = "moe_k"},
                                     {.key = "interleave_moe_layer_step", .config = "moe_layer_interval"},
                                     {.key = "leading_dense_block_count", .config = "moe_layer_start_index"},
                                     kExpertWidth,
                                     {.key = "expert_shared_count", .config = "moe_num_shared_experts"},
                                     {.key = "expert_shared_feed_forward_length", .made = ernie_shared}};
constexpr GgufRules kErnieMoe = {.base = {.family = "ernie4_5_moe",
                                          .architecture = "ernie4_5-moe",
                                          .hf_class = "Ernie4_5_MoeForCausalLM",
                                          .vocabulary = Vocabulary::sentencepiece_first},
                                 .keys_of = Keys::of_config,
                                 .keys = kErnieKeys,
                                 .names = kErnieNames,
                                 .gate_last = true,
                                 .tokenizer = GgufRules::Tokenizer::ernie,
                                 .back = back::ernie_moe};

ParsedJson mellum_window(const GgufFacts& facts) {
  const ParsedJson* use = facts.find("use_sliding_window");
  const ParsedJson* window = facts.find("sliding_window");
  return (use != nullptr && *use == false) || window == nullptr ? ParsedJson() : *window;
}
ParsedJson mellum_windows(const GgufFacts& facts) {
  return mellum_window(facts).is_null() ? ParsedJson() : own_keys::windowed_layers(facts);
}
constexpr GgufOwnKey kMellumKeys[] = {
    kExpertWidth,
    {.key = "attention.sliding_window", .made = mellum_window},
    {.key = "attention.sliding_window_pattern", .form = Form::flags, .made = mellum_windows}};
constexpr GgufRules kMellum = {
    .base = {.family = "mellum", .architecture = "mellum", .hf_class = "MellumForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kMellumKeys,
    .back = back::mellum};

// transformers' class renormalizes always, and forgets route_norm.
ParsedJson afmoe_norm(const GgufFacts& facts) {
  const ParsedJson* said = facts.find("route_norm");
  return said == nullptr ? ParsedJson(true) : *said;
}
constexpr GgufOwnName kAfmoeNames[] = {{"self_attn.gate_proj.weight", "attn_gate"},
                                       {"mlp.expert_bias", "exp_probs_b.bias"}};
constexpr GgufOwnKey kAfmoeKeys[] = {kVocabulary,
                                     kHeadRotary,
                                     {.key = "expert_shared_count", .config = "num_shared_experts"},
                                     kExpertWidth,
                                     {.key = "leading_dense_block_count", .config = "num_dense_layers"},
                                     {.key = "expert_weights_norm", .form = Form::flag, .made = afmoe_norm},
                                     kScale,
                                     kWindow};
constexpr GgufRules kAfmoe = {.base = {.family = "afmoe",
                                       .architecture = "afmoe",
                                       .hf_class = "AfmoeForCausalLM",
                                       .vocabulary = Vocabulary::llama},
                              .keys_of = Keys::of_config,
                              .keys = kAfmoeKeys,
                              .names = kAfmoeNames,
                              .gate_last = true,
                              .back = back::afmoe};

constexpr const GgufRules* kGroup[] = {&kGlm4vMoe,      &kQwen2Moe, &kDots,   &kMinimaxM2, &kGlm4Moe,
                                       &kGptOss,        &kLlama4,   &kOlmoe,  &kDbrx,      &kGraniteMoe,
                                       &kGraniteShared, &kErnieMoe, &kMellum, &kAfmoe};

}  // namespace
}  // namespace mixtures_in_gguf

GgufGroup gguf_mixtures() {
  return mixtures_in_gguf::kGroup;
}

}  // namespace assay::families
