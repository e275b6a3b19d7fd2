// How llama.cpp keeps models of their authors' own code (conversion/bailingmoe.py, internlm.py, minicpm.py, chatglm.py),
// and GLM-4 of transformers: Ling 1 and 2, InternLM2, MiniCPM, ChatGLM; and Apertus, whose activation has parameters.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"
#include "core/system/error.h"

namespace assay::families {
namespace qkv_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using Vocabulary = GgufFamily::Vocabulary;
using namespace gguf_transforms;

constexpr GgufOwnKey kVocabulary = {.key = "vocab_size", .config = "vocab_size"};
constexpr GgufOwnKey kHeadRotary = {.key = "rope.dimension_count", .made = own_keys::head_width};

// --- Ling --------------------------------------------------------------------------------------------------------

ParsedJson half_rotary(const GgufFacts& facts) {
  const double part = facts.rope.value("partial_rotary_factor", 0.5);
  return static_cast<std::uint64_t>(static_cast<double>(facts.head_dim()) * part);
}
ParsedJson no_dense_layers(const GgufFacts& facts) {
  const ParsedJson dense = own_keys::dense_layers(facts);
  const ParsedJson* normed = facts.find("norm_head");
  if (dense != 0U)
    throw Error::refused("first_k_dense_replace is not 0: a GGUF of Ling 1 has experts in every layer")
        .in(facts.config.source());
  if (normed != nullptr && *normed == true)
    throw Error::refused(
        "norm_head is true: the head would have to be normed in the file, which is not done here")
        .in(facts.config.source());
  return dense;
}
constexpr GgufOwnKey kExpertWidth = {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"};
constexpr GgufOwnKey kSharedCount = {.key = "expert_shared_count", .config = "num_shared_experts"};
constexpr GgufOwnKey kRenormalized = {
    .key = "expert_weights_norm", .form = Form::flag, .config = "norm_topk_prob"};
constexpr GgufOwnKey kLing1Keys[] = {
    kHeadRotary,  {.key = "leading_dense_block_count", .made = no_dense_layers},     kVocabulary,
    kExpertWidth, {.key = "expert_weights_scale", .form = Form::f32, .constant = 1}, kSharedCount,
    kRenormalized};
constexpr GgufOwnKey kLing2Keys[] = {
    {.key = "rope.dimension_count", .made = half_rotary},
    {.key = "leading_dense_block_count", .made = own_keys::dense_layers},
    kVocabulary,
    kExpertWidth,
    {.key = "expert_shared_feed_forward_length", .made = own_keys::shared_expert_width},
    {.key = "expert_weights_scale", .form = Form::f32, .config = "routed_scaling_factor"},
    kSharedCount,
    kRenormalized};
constexpr GgufOwnName kLing1Names[] = {{"query_key_value.weight", "attn_q|attn_k|attn_v", split_qkv_paired},
                                       {"query_key_value.bias", "attn_q|attn_k|attn_v", refused}};
constexpr GgufOwnName kLing2Names[] = {{"gate.expert_bias", "exp_probs_b.bias"}};
constexpr GgufRules kLing1 = {
    .base = {.family = "bailing_moe", .architecture = "bailingmoe", .hf_class = "BailingMoeForCausalLM"},
    .keys_of = Keys::of_config,
    .keys = kLing1Keys,
    .names = kLing1Names};
constexpr GgufRules kLing2 = {.base = {.family = "bailing_moe_v2",
                                       .architecture = "bailingmoe2",
                                       .hf_class = "BailingMoeV2ForCausalLM"},
                              .keys_of = Keys::of_config,
                              .keys = kLing2Keys,
                              .names = kLing2Names,
                              .back = back::bailing_v2};

// --- InternLM2, MiniCPM ------------------------------------------------------------------------------------------

constexpr GgufOwnName kInternNames[] = {
    {"attention.wqkv.weight", "attn_q|attn_k|attn_v", split_grouped_qkv_paired},
    {"attention.wqkv.bias", "attn_q|attn_k|attn_v", refused}};
constexpr GgufRules kInternlm2 = {.base = {.family = "internlm2",
                                           .architecture = "internlm2",
                                           .hf_class = "InternLM2ForCausalLM",
                                           .vocabulary = Vocabulary::sentencepiece_first},
                                  .keys_of = Keys::of_config,
                                  .names = kInternNames,
                                  .tokenizer = GgufRules::Tokenizer::internlm2,
                                  .back = back::internlm2};

ParsedJson residual_scale(const GgufFacts& facts) {
  return facts.number("scale_depth") / std::sqrt(static_cast<double>(facts.tree.layers));
}
ParsedJson logit_scale(const GgufFacts& facts) {
  return facts.number("hidden_size") / facts.number("dim_model_base");
}
constexpr GgufOwnKey kMinicpmKeys[] = {{.key = "embedding_scale", .form = Form::f32, .config = "scale_emb"},
                                       {.key = "residual_scale", .form = Form::f32, .made = residual_scale},
                                       {.key = "logit_scale", .form = Form::f32, .made = logit_scale}};
constexpr GgufRules kMinicpm = {.base = {.family = "minicpm",
                                         .architecture = "minicpm",
                                         .hf_class = "MiniCPMForCausalLM",
                                         .paired_heads = true,
                                         .vocabulary = Vocabulary::sentencepiece_first},
                                .keys_of = Keys::of_config,
                                .keys = kMinicpmKeys,
                                .more_tensors = own_keys::longrope_factors,
                                .rope_types = "longrope|su",
                                .back = back::minicpm};

// --- ChatGLM -----------------------------------------------------------------------------------------------------

ParsedJson glm_rotary(const GgufFacts& facts) {
  const double hidden = facts.number("hidden_size"), heads = facts.number("num_attention_heads");
  const double head = facts.number("kv_channels|head_dim", hidden / heads);
  if (head * heads != hidden)
    throw Error::refused(
        "heads that are not hidden_size / num_attention_heads wide, of which a GGUF of ChatGLM knows "
        "nothing")
        .in(facts.config.source());
  return static_cast<std::uint64_t>(head * facts.rope.value("partial_rotary_factor", 0.5));
}
ParsedJson glm_theta(const GgufFacts& facts) {
  return 10000 * facts.number("rope_ratio", 1);
}
ParsedJson glm_context(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(
      facts.number("seq_length|max_position_embeddings", facts.number("hidden_size")));
}
constexpr GgufOwnKey kGlmKeys[] = {
    {.key = "context_length", .made = glm_context},
    {.key = "embedding_length", .config = "hidden_size"},
    {.key = "feed_forward_length", .config = "ffn_hidden_size|intermediate_size"},
    {.key = "block_count", .config = "num_layers|num_hidden_layers"},
    {.key = "attention.head_count", .config = "num_attention_heads"},
    {.key = "attention.head_count_kv",
     .config = "multi_query_group_num|num_key_value_heads|num_attention_heads"},
    {.key = "attention.layer_norm_rms_epsilon",
     .form = Form::f32,
     .config = "layernorm_epsilon|rms_norm_eps"},
    {.key = "general", .form = Form::file_type},
    {.key = "rope.dimension_count", .made = glm_rotary},
    {.key = "tokenizer.ggml.add_bos_token", .form = Form::flag, .constant = 0},
    {.key = "rope.freq_base", .form = Form::f32, .made = glm_theta}};
constexpr GgufRules kChatglm = {
    .base = {.family = "chatglm", .architecture = "chatglm", .hf_class = "ChatGLMModel"},
    .keys_of = Keys::own,
    .keys = kGlmKeys,
    .tokenizer = GgufRules::Tokenizer::chatglm,
    .back = back::chatglm};
constexpr GgufRules kGlm = {.base = {.family = "glm",
                                     .architecture = "chatglm",
                                     .hf_class = "GlmForCausalLM",
                                     .told_by = GgufFamily::ToldBy::nothing},
                            .keys_of = Keys::own,
                            .keys = kGlmKeys,
                            .tokenizer = GgufRules::Tokenizer::chatglm};

// --- Apertus -----------------------------------------------------------------------------------------------------

constexpr GgufTensorKey kXielu[] = {{"act_fn.alpha_n", "xielu.alpha_n"},
                                    {"act_fn.alpha_p", "xielu.alpha_p"},
                                    {"act_fn.beta", "xielu.beta"},
                                    {"act_fn.eps", "xielu.eps"}};
constexpr GgufOwnName kApertusNames[] = {
    {"act_fn.alpha_n", ""}, {"act_fn.alpha_p", ""}, {"act_fn.beta", ""}, {"act_fn.eps", ""}};
constexpr GgufOwnKey kLlamaKeys[] = {kVocabulary, kHeadRotary};
constexpr GgufRules kApertus = {.base = {.family = "apertus",
                                         .architecture = "apertus",
                                         .hf_class = "ApertusForCausalLM",
                                         .writes_rope_factors = true,
                                         .vocabulary = Vocabulary::llama},
                                .keys_of = Keys::of_config,
                                .keys = kLlamaKeys,
                                .tensor_keys = kXielu,
                                .names = kApertusNames,
                                .activations = "xielu",
                                .back = back::apertus};

constexpr const GgufRules* kGroup[] = {&kLing1, &kLing2, &kInternlm2, &kMinicpm, &kChatglm, &kGlm, &kApertus};

}  // namespace
}  // namespace qkv_in_gguf

GgufGroup gguf_qkv() {
  return qkv_in_gguf::kGroup;
}

}  // namespace assay::families
