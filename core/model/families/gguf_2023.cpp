// How llama.cpp keeps the decoders before Llama, and those of their time: Falcon, StableLM, GPT-2, GPT-NeoX, BLOOM,
// MPT, GPT-BigCode, Phi-2.
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"

namespace assay::families {
namespace decoders_2023_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;
using gguf_transforms::queries_keys_values;

constexpr GgufOwnKey kFileType = {.key = "general", .form = Form::file_type};
constexpr std::string_view kGelu = "gelu|gelu_new|gelu_fast|gelu_pytorch_tanh";

ParsedJson text_layout(const GgufFacts&) {
  return "jploski";
}
ParsedJson four_hidden(const GgufFacts& facts) {
  return 4 * static_cast<std::uint64_t>(facts.number("hidden_size|n_embd|n_embed|d_model"));
}
ParsedJson layer_count(const GgufFacts& facts) {
  return facts.tree.layers;
}
ParsedJson head_count(const GgufFacts& facts) {
  return facts.tree.attention.front().heads;
}
ParsedJson key_head_count(const GgufFacts& facts) {
  return facts.tree.attention.front().kv_heads;
}
ParsedJson hidden_size(const GgufFacts& facts) {
  return facts.tree.hidden_size;
}
constexpr GgufOwnKey kLayers = {.key = "block_count", .made = layer_count};
constexpr GgufOwnKey kHeads = {.key = "attention.head_count", .made = head_count};
constexpr GgufOwnKey kKeyHeads = {.key = "attention.head_count_kv", .made = key_head_count};
constexpr GgufOwnKey kHidden = {.key = "embedding_length", .made = hidden_size};
constexpr GgufOwnKey kFourHidden = {.key = "feed_forward_length", .made = four_hidden};
constexpr GgufOwnKey kEpsilon = {.key = "attention.layer_norm_epsilon",
                                 .form = Form::f32,
                                 .config = "layer_norm_epsilon|layer_norm_eps|norm_eps"};
constexpr GgufOwnKey kFixedEpsilon = {
    .key = "attention.layer_norm_epsilon", .form = Form::f32, .constant = 1e-5};

// Two norms before one layer are both "attn": the second is attention's, and the MLP has the first.
constexpr GgufOwnName kFalconNames[] = {
    {"self_attention.query_key_value.weight", "attn_qkv", queries_keys_values},
    {"self_attention.query_key_value.bias", "attn_qkv", queries_keys_values},
    {"ln_attn.weight", "attn_norm_2"},
    {"ln_attn.bias", "attn_norm_2"},
    {"ln_mlp.weight", "attn_norm"},
    {"ln_mlp.bias", "attn_norm"}};
constexpr GgufOwnKey kFalconKeys[] = {{.key = "context_length", .constant = 2048},
                                      {.key = "tensor_data_layout", .form = Form::text, .made = text_layout},
                                      kHidden,
                                      kFourHidden,
                                      kLayers,
                                      kHeads,
                                      kKeyHeads,
                                      kEpsilon,
                                      kFileType};
constexpr GgufRules kFalcon = {
    .base = {.family = "falcon", .architecture = "falcon", .hf_class = "FalconForCausalLM"},
    .keys_of = Keys::own,
    .keys = kFalconKeys,
    .names = kFalconNames,
    .activations = kGelu,
    .back = back::falcon};

ParsedJson stablelm_rotary(const GgufFacts& facts) {
  const double part = facts.rope.value("partial_rotary_factor", 0.25);
  return static_cast<std::uint64_t>(part * static_cast<double>(facts.tree.attention.front().qk_head_dim));
}
ParsedJson parallel_residual(const GgufFacts& facts) {
  const ParsedJson* said = facts.find("use_parallel_residual");
  return said == nullptr ? ParsedJson(true) : *said;
}
constexpr GgufOwnKey kStablelmKeys[] = {
    {.key = "context_length", .config = "max_position_embeddings"},
    kHidden,
    kLayers,
    {.key = "feed_forward_length", .config = "intermediate_size"},
    {.key = "rope.dimension_count", .made = stablelm_rotary},
    kHeads,
    kKeyHeads,
    {.key = "use_parallel_residual", .form = Form::flag, .made = parallel_residual},
    kEpsilon,
    kFileType};
constexpr GgufRules kStablelm = {
    .base = {.family = "stablelm", .architecture = "stablelm", .hf_class = "StableLmForCausalLM"},
    .keys_of = Keys::own,
    .keys = kStablelmKeys,
    .back = back::stablelm};

constexpr GgufOwnKey kGpt2Keys[] = {kLayers,  {.key = "context_length", .config = "n_ctx|n_positions"},
                                    kHidden,  kFourHidden,
                                    kHeads,   kEpsilon,
                                    kFileType};
constexpr GgufRules kGpt2 = {
    .base = {.family = "gpt2", .architecture = "gpt2", .hf_class = "GPT2LMHeadModel"},
    .keys_of = Keys::own,
    .keys = kGpt2Keys,
    .activations = kGelu,
    .back = back::gpt2};

ParsedJson neox_rotary(const GgufFacts& facts) {
  const double part = facts.number("rotary_pct", facts.rope.value("partial_rotary_factor", 0.25));
  return static_cast<std::uint64_t>(part * static_cast<double>(facts.tree.attention.front().qk_head_dim));
}
constexpr GgufOwnName kNeoxNames[] = {{"attention.query_key_value.weight", "attn_qkv", queries_keys_values},
                                      {"attention.query_key_value.bias", "attn_qkv", queries_keys_values}};
constexpr GgufOwnKey kNeoxKeys[] = {
    {.key = "context_length", .config = "max_position_embeddings"},
    kHidden,
    kLayers,
    {.key = "feed_forward_length", .config = "intermediate_size"},
    {.key = "rope.dimension_count", .made = neox_rotary},
    kHeads,
    {.key = "use_parallel_residual", .form = Form::flag, .made = parallel_residual},
    kEpsilon};
constexpr GgufRules kNeox = {
    .base = {.family = "gpt_neox", .architecture = "gptneox", .hf_class = "GPTNeoXForCausalLM"},
    .keys_of = Keys::own,
    .keys = kNeoxKeys,
    .names = kNeoxNames,
    .activations = kGelu};

ParsedJson bloom_context(const GgufFacts& facts) {
  return static_cast<std::uint64_t>(facts.number("seq_length", static_cast<double>(facts.tree.hidden_size)));
}
constexpr GgufOwnName kBloomNames[] = {
    {"self_attention.query_key_value.weight", "attn_qkv", queries_keys_values},
    {"self_attention.query_key_value.bias", "attn_qkv", queries_keys_values},
    {"word_embeddings_layernorm.weight", "token_embd_norm"},
    {"word_embeddings_layernorm.bias", "token_embd_norm"}};
constexpr GgufOwnKey kBloomKeys[] = {{.key = "context_length", .made = bloom_context},
                                     kHidden,
                                     kFourHidden,
                                     kLayers,
                                     kHeads,
                                     kKeyHeads,
                                     kEpsilon,
                                     kFileType};
constexpr GgufRules kBloom = {
    .base = {.family = "bloom", .architecture = "bloom", .hf_class = "BloomForCausalLM"},
    .keys_of = Keys::own,
    .keys = kBloomKeys,
    .names = kBloomNames,
    .activations = {}};

ParsedJson mpt_alibi(const GgufFacts& facts) {
  const ParsedJson* alibi = facts.find("attn_config.alibi");
  return alibi != nullptr && *alibi == true ? facts.number("attn_config.alibi_bias_max", 8) : 0.0;
}
constexpr GgufOwnKey kMptKeys[] = {
    {.key = "context_length", .config = "max_seq_len"},
    kHidden,
    kLayers,
    kFourHidden,
    kHeads,
    {.key = "attention.head_count_kv", .config = "attn_config.kv_n_heads", .unless_zero = true},
    kFixedEpsilon,
    {.key = "attention.clamp_kqv", .form = Form::f32, .config = "attn_config.clip_qkv"},
    {.key = "attention.max_alibi_bias", .form = Form::f32, .made = mpt_alibi}};
constexpr GgufRules kMpt = {.base = {.family = "mpt", .architecture = "mpt", .hf_class = "MPTForCausalLM"},
                            .keys_of = Keys::own,
                            .keys = kMptKeys,
                            .activations = {},
                            .back = back::mpt};

constexpr GgufOwnKey kBigcodeKeys[] = {
    {.key = "context_length", .config = "n_positions"}, kHidden,  kFourHidden, kLayers, kHeads,
    {.key = "attention.head_count_kv", .constant = 1},  kEpsilon, kFileType};
constexpr GgufRules kBigcode = {
    .base = {.family = "gpt_bigcode", .architecture = "starcoder", .hf_class = "GPTBigCodeForCausalLM"},
    .keys_of = Keys::own,
    .keys = kBigcodeKeys,
    .activations = kGelu};

ParsedJson phi_rotary(const GgufFacts& facts) {
  const double part = facts.rope.value("partial_rotary_factor", 0.5);
  return static_cast<std::uint64_t>(part * static_cast<double>(facts.tree.hidden_size)) /
         facts.tree.attention.front().heads;
}
constexpr GgufOwnKey kPhiKeys[] = {
    {.key = "context_length", .config = "n_positions|max_position_embeddings"},
    kHidden,
    kFourHidden,
    kLayers,
    kHeads,
    {.key = "attention.head_count_kv", .made = head_count},
    kEpsilon,
    {.key = "rope.dimension_count", .made = phi_rotary},
    kFileType,
    {.key = "tokenizer.ggml.add_bos_token", .form = Form::flag, .constant = 0}};
constexpr GgufRules kPhi = {.base = {.family = "phi", .architecture = "phi2", .hf_class = "PhiForCausalLM"},
                            .keys_of = Keys::own,
                            .keys = kPhiKeys,
                            .activations = kGelu};

constexpr const GgufRules* kGroup[] = {&kFalcon, &kStablelm, &kGpt2,    &kNeox,
                                       &kBloom,  &kMpt,      &kBigcode, &kPhi};

}  // namespace
}  // namespace decoders_2023_in_gguf

GgufGroup gguf_2023() {
  return decoders_2023_in_gguf::kGroup;
}

}  // namespace assay::families
