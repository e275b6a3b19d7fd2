// Written by data/make_published_sizes.py.
#include "refimpl/fingerprint/published_sizes.h"

#include <array>

namespace assay {

std::span<const PublishedSize> published_sizes() {
  static constexpr std::array<PublishedSize, 29> kSizes = {{
      {"Qwen3-0.6B", 1024, 151936, 0},
      {"gpt2-large", 1280, 50257, 0},
      {"DeepSeek-V2-Lite", 2048, 102400, 0},
      {"Llama-3.2-1B-Instruct", 2048, 128256, 0},
      {"Qwen3-30B-A3B", 2048, 151936, 0},
      {"Qwen3-30B-A3B-FP8", 2048, 151936, 0},
      {"gemma-3-4b-it", 2560, 0, 0},
      {"MiniCPM3-4B", 2560, 73448, 0},
      {"gpt-oss-20b", 2880, 201088, 0},
      {"MiniMax-M2.5", 3072, 200064, 0},
      {"gemma-2-9b-it", 3584, 256000, 30},
      {"Qwen2.5-7B-Instruct", 3584, 152064, 0},
      {"Baichuan2-7B", 4096, 125696, 0},
      {"glm-4-9b-chat", 4096, 151552, 0},
      {"Llama-2-7b-hf", 4096, 32000, 0},
      {"Llama-3.1-8B", 4096, 128256, 0},
      {"Mistral-7B-Instruct-v0.3", 4096, 32768, 0},
      {"Mixtral-8x7B-v0.1", 4096, 32000, 0},
      {"Qwen-7B-Chat", 4096, 151936, 0},
      {"Qwen3-235B-A22B-FP8", 4096, 151936, 0},
      {"Qwen3-8B", 4096, 151936, 0},
      {"GLM-4.5", 5120, 151552, 0},
      {"Llama-4-Scout-17B-16E-Instruct", 5120, 202048, 0},
      {"phi-4", 5120, 100352, 0},
      {"DeepSeek-R1", 7168, 129280, 0},
      {"DeepSeek-V3", 7168, 129280, 0},
      {"DeepSeek-V3.1-NVFP4", 7168, 129280, 0},
      {"DeepSeek-V3.2", 7168, 129280, 0},
      {"Kimi-K2-Instruct", 7168, 163840, 0},
  }};
  return kSizes;
}

}  // namespace assay
