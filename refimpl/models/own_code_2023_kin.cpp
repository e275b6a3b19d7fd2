// Models of 2023 with code of their own that make_decoder() computes: Qwen (1), and ChatGLM2 to GLM-4 as THUDM published them.
// Sources: modeling_qwen.py and modeling_chatglm.py beside the weights; vLLM 0.32's qwen.py and chatglm.py.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr DecoderForm kPlainForm = {};

constexpr std::string_view kQwen1[] = {"qwen"};
constexpr std::string_view kQwen1Used[] = {"vocab_size",
                                           "hidden_size",
                                           "intermediate_size",
                                           "num_hidden_layers",
                                           "num_attention_heads",
                                           "kv_channels",
                                           "layer_norm_epsilon",
                                           "max_position_embeddings",
                                           "seq_length",
                                           "rotary_emb_base",
                                           "use_dynamic_ntk",
                                           "use_logn_attn",
                                           "no_bias",
                                           "tie_word_embeddings"};
constexpr std::string_view kQwen1Idle[] = {
    "emb_dropout_prob", "attn_dropout_prob", "bf16", "fp16", "fp32", "use_flash_attn", "softmax_in_fp32",
    "onnx_safe",        "use_cache_kernel"};
constexpr FixedKey kQwen1Fixed[] = {
    {"rotary_pct", "1.0"}, {"scale_attn_weights", "true"}, {"use_cache_quantization", "false"}};

// ChatGLM of March 2023 has positions in two dimensions under the same name of architecture.
constexpr std::string_view kChatglm2[] = {"chatglm"};
constexpr std::string_view kChatglm2Used[] = {"padded_vocab_size",
                                              "vocab_size",
                                              "hidden_size",
                                              "ffn_hidden_size",
                                              "num_layers",
                                              "num_hidden_layers",
                                              "num_attention_heads",
                                              "multi_query_attention",
                                              "multi_query_group_num",
                                              "kv_channels",
                                              "layernorm_epsilon",
                                              "seq_length",
                                              "rope_ratio",
                                              "add_qkv_bias",
                                              "rmsnorm",
                                              "post_layer_norm",
                                              "tie_word_embeddings"};
constexpr std::string_view kChatglm2Idle[] = {"apply_query_key_layer_scaling",
                                              "attention_softmax_in_fp32",
                                              "bias_dropout_fusion",
                                              "original_rope",
                                              "hidden_dropout",
                                              "classifier_dropout",
                                              "prefix_projection",
                                              "interleaved_qkv"};
constexpr FixedKey kChatglm2Fixed[] = {{"add_bias_linear", "false"},
                                       {"apply_residual_connection_post_layernorm", "false"},
                                       {"fp32_residual_connection", "false"},
                                       {"position_encoding_2d", "false"},
                                       {"pre_seq_len", "null"},
                                       {"quantization_bit", "0"}};

// Where every head has keys of its own, its query, key and value lie together, which no published model has.
std::unique_ptr<LanguageModel> make_chatglm(const Weights& weights, const ModelOptions& options) {
  ConfigReader config(weights.config(), "ChatGLM");
  config.require(config.flag("multi_query_attention", config.has("num_key_value_heads")),
                 "multi_query_attention is not true, which is not computed here");
  return make_kin_as(kPlainForm, weights, options);
}

constexpr ModelRule kRulesOf2023[] = {
    {kQwen1, {}, {kQwen1Used, kQwen1Idle, kQwen1Fixed}, make_kin<kPlainForm>},
    {kChatglm2, {}, {kChatglm2Used, kChatglm2Idle, kChatglm2Fixed}, make_chatglm}};

}  // namespace

std::span<const ModelRule> own_code_2023_rules() {
  return kRulesOf2023;
}

}  // namespace assay
