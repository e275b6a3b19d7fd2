// {arch}.expert_gating_func: llama.cpp's llama_expert_gating_func_type.
#pragma once

#include <cstdint>

namespace assay {

inline constexpr std::uint64_t kGgufSoftmaxGating = 1, kGgufSigmoidGating = 2;

}  // namespace assay
