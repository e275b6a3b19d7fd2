// Written by data/make_gguf_loaded.py from llama.cpp's src/models.
#include "core/model/gguf_loaded.h"

namespace assay {
namespace {

// clang-format off
constexpr GgufLoaded kLoaded[] = {
    {.architecture = "afmoe", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b!", .window_period = 4},
    {.architecture = "apertus", .biases = "attn_q attn_k attn_v attn_qkv attn_output attn_q_norm attn_k_norm"},
    {.architecture = "arcee", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "bailingmoe", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "bailingmoe2", .biases = "exp_probs_b", .heads_fill_width = true, .asks_gating = true},
    {.architecture = "bailingmoe3", .biases = "attn_q attn_k attn_v attn_qkv ssm_dt! exp_probs_b!", .asks_gating = true},
    {.architecture = "bloom", .biases = "token_embd_norm! output_norm! attn_norm! attn_qkv! attn_output! ffn_norm! ffn_down! ffn_up!", .heads_fill_width = true},
    {.architecture = "chatglm", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "cohere2", .biases = "attn_q attn_k attn_v attn_qkv", .heads_fill_width = true, .window_period = 4},
    {.architecture = "cohere2moe", .biases = "attn_q attn_k attn_v attn_qkv", .window_period = 4},
    {.architecture = "command-r", .biases = "attn_q attn_k attn_v attn_qkv", .heads_fill_width = true},
    {.architecture = "dbrx", .biases = "", .heads_fill_width = true},
    {.architecture = "deepseek2", .biases = "exp_probs_b"},
    {.architecture = "deepseek32", .biases = "indexer.k_norm! exp_probs_b", .asks_gating = true},
    {.architecture = "dots1", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b", .keys_as_queries = true, .asks_gating = true},
    {.architecture = "ernie4_5", .biases = "attn_q attn_k attn_v attn_qkv attn_output exp_probs_b"},
    {.architecture = "ernie4_5-moe", .biases = "attn_q attn_k attn_v attn_qkv attn_output exp_probs_b"},
    {.architecture = "exaone4", .biases = "attn_q attn_k attn_v attn_qkv", .window_period = 4},
    {.architecture = "falcon", .biases = "output_norm! attn_norm! attn_norm_2", .heads_fill_width = true},
    {.architecture = "falcon-h1", .biases = "attn_q attn_k attn_v attn_qkv ssm_conv1d ssm_dt! attn_output ffn_gate ffn_down ffn_up"},
    {.architecture = "gemma", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "gemma2", .biases = "attn_q attn_k attn_v attn_qkv", .window_period = 2, .windowed_without_key = true},
    {.architecture = "gemma3", .biases = "attn_q attn_k attn_v attn_qkv", .window_period = 6},
    {.architecture = "gemma4", .biases = ""},
    {.architecture = "glm-dsa", .biases = "indexer.k_norm exp_probs_b"},
    {.architecture = "glm4", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "glm4moe", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b!"},
    {.architecture = "gpt-oss", .biases = "attn_q attn_k attn_v attn_qkv attn_output! ffn_gate_inp! ffn_gate_exps! ffn_down_exps! ffn_up_exps!", .window_period = 2},
    {.architecture = "gpt2", .biases = "output_norm! attn_norm! attn_qkv! attn_output! ffn_norm! ffn_down! ffn_up!", .heads_fill_width = true},
    {.architecture = "gptneox", .biases = "output_norm! attn_norm! attn_qkv! attn_output! ffn_norm! ffn_down! ffn_up!", .heads_fill_width = true},
    {.architecture = "granite", .biases = "attn_q attn_k attn_v attn_qkv attn_output ffn_gate ffn_down ffn_up"},
    {.architecture = "granitemoe", .biases = "attn_q attn_k attn_v attn_qkv attn_output ffn_gate ffn_down ffn_up"},
    {.architecture = "hunyuan-dense", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "internlm2", .biases = "attn_q attn_k attn_v attn_qkv", .heads_fill_width = true},
    {.architecture = "jais2", .biases = "attn_q attn_k attn_v attn_qkv output_norm! attn_norm! attn_output! ffn_norm! ffn_up! ffn_down!"},
    {.architecture = "jamba", .biases = "attn_q attn_k attn_v attn_qkv ssm_conv1d! ssm_dt!", .heads_fill_width = true},
    {.architecture = "kimi-linear", .biases = "attn_q attn_k attn_v attn_qkv ssm_dt! exp_probs_b!", .asks_gating = true},
    {.architecture = "lfm2", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b! dense_2", .heads_fill_width = true},
    {.architecture = "lfm2moe", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b! dense_2", .heads_fill_width = true, .asks_gating = true},
    {.architecture = "llama", .biases = "attn_q attn_k attn_v attn_qkv attn_output ffn_gate ffn_down ffn_up"},
    {.architecture = "llama4", .biases = "attn_q attn_k attn_v attn_qkv", .window_period = 4, .windowed_without_key = true},
    {.architecture = "mamba", .biases = "ssm_conv1d! ssm_dt!"},
    {.architecture = "mamba2", .biases = "ssm_conv1d! ssm_dt!"},
    {.architecture = "mellum", .biases = "attn_q attn_k attn_v attn_qkv", .window_period = 4},
    {.architecture = "mimo2", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b"},
    {.architecture = "minicpm", .biases = "attn_q attn_k attn_v attn_qkv attn_output ffn_gate ffn_down ffn_up"},
    {.architecture = "minicpm3", .biases = ""},
    {.architecture = "minimax-m2", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b!", .asks_gating = true},
    {.architecture = "minimax-m3", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b!", .asks_gating = true},
    {.architecture = "mpt", .biases = "output_norm attn_norm attn_qkv attn_output ffn_norm ffn_down ffn_up attn_q_norm attn_k_norm", .heads_fill_width = true},
    {.architecture = "nemotron", .biases = "attn_q attn_k attn_v attn_qkv output_norm! attn_norm! attn_output ffn_norm! ffn_down ffn_up", .heads_fill_width = true},
    {.architecture = "nemotron_h", .biases = "attn_q attn_k attn_v attn_qkv ssm_conv1d ssm_dt! attn_output exp_probs_b! ffn_down ffn_up"},
    {.architecture = "nemotron_h_moe", .biases = "attn_q attn_k attn_v attn_qkv ssm_conv1d ssm_dt! attn_output exp_probs_b! ffn_down ffn_up"},
    {.architecture = "olmo", .biases = "attn_q attn_k attn_v attn_qkv", .heads_fill_width = true},
    {.architecture = "olmo2", .biases = "attn_q attn_k attn_v attn_qkv", .heads_fill_width = true, .window_period = 4},
    {.architecture = "olmoe", .biases = "attn_q attn_k attn_v attn_qkv", .heads_fill_width = true, .keys_as_queries = true},
    {.architecture = "phi2", .biases = "attn_q attn_k attn_v attn_qkv output_norm! output! attn_norm! attn_output! ffn_down! ffn_up!", .heads_fill_width = true},
    {.architecture = "phi3", .biases = "attn_q attn_k attn_v attn_qkv", .heads_fill_width = true},
    {.architecture = "phimoe", .biases = "attn_q attn_k attn_v attn_qkv output_norm! output! attn_norm! attn_output! ffn_norm!", .heads_fill_width = true},
    {.architecture = "qwen2", .biases = "attn_q attn_k attn_v attn_qkv output", .heads_fill_width = true},
    {.architecture = "qwen2moe", .biases = "attn_q attn_k attn_v attn_qkv", .heads_fill_width = true},
    {.architecture = "qwen2vl", .biases = "attn_q attn_k attn_v attn_qkv output", .heads_fill_width = true},
    {.architecture = "qwen3", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "qwen35", .biases = "attn_q attn_k attn_v attn_qkv ssm_dt!"},
    {.architecture = "qwen35moe", .biases = "attn_q attn_k attn_v attn_qkv ssm_dt!"},
    {.architecture = "qwen3moe", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "qwen3next", .biases = "attn_q attn_k attn_v attn_qkv ssm_dt!"},
    {.architecture = "qwen3vl", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "qwen3vlmoe", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "seed_oss", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "smollm3", .biases = "attn_q attn_k attn_v attn_qkv"},
    {.architecture = "stablelm", .biases = "attn_q attn_k attn_v attn_qkv output_norm! attn_norm! ffn_norm", .heads_fill_width = true},
    {.architecture = "starcoder", .biases = "output_norm! attn_norm! attn_qkv! attn_output! ffn_norm! ffn_down! ffn_up!", .heads_fill_width = true},
    {.architecture = "starcoder2", .biases = "attn_q attn_k attn_v attn_qkv output_norm! attn_norm! attn_output! ffn_norm! ffn_down! ffn_up!", .heads_fill_width = true},
    {.architecture = "step35", .biases = "attn_q attn_k attn_v attn_qkv exp_probs_b"},
};
// clang-format on

}  // namespace

std::span<const GgufLoaded> gguf_loaded_table() {
  return kLoaded;
}

}  // namespace assay
