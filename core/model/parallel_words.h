// The words in which vLLM and SGLang refuse a cut, and the arithmetic behind them.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/module_tree.h"

namespace assay {

// The config key whose value is the size being cut; the tensor's own words where it is a product.
std::string key_of(const TensorSpec& spec, std::uint64_t size);
std::string short_name(const TensorSpec& spec);  // "gate_proj"
// "576", or where ranks do not divide the size, "341.33".
std::string share_text(std::uint64_t size, std::uint64_t ranks);
// "intermediate_size 18432/32 = 576"
std::string cut_text(const TensorSpec& spec, std::uint64_t size, std::uint64_t ranks, std::uint64_t share);
// " = 4.5 × 128"
std::string multiple_text(std::uint64_t share, std::uint64_t of);

// vllm/config: verify_with_parallel_config.
std::string heads_refusal(std::uint64_t heads, std::uint64_t tp);
std::string key_heads_refusal(std::uint64_t key_heads, std::uint64_t tp);
std::string experts_refusal();  // SGLang's, where ep does not divide them
// vllm …/quantization/utils/fp8_utils.py, validate_fp8_block_shape; the fused MoE layers of vLLM and SGLang.
std::string block_refusal(const TensorSpec& spec, std::uint64_t share, std::uint64_t block);
// AWQ and GPTQ, where a group of inputs that share a scale would be cut.
std::string group_refusal();

}  // namespace assay
