// What llama.cpp calls a tensor: "blk.7.attn_q.weight" for …layers.7.self_attn.q_proj.weight. Names follow
// from a tensor's role, so a family needs no table of its own (gguf-py/gguf/constants.py, TENSOR_NAMES).
#pragma once

#include <string>
#include <vector>

#include "core/model/module_tree.h"

namespace assay {

// Every name under which the tensor, or a part of it, may be found: kv_b_proj is stored as attn_kv_b, or in
// halves as attn_k_b and attn_v_b. All experts of a layer share one name: their matrices are stacked.
// Empty where GGUF has no such tensor.
std::vector<std::string> gguf_names(const TensorSpec& spec, std::uint64_t layer);

}  // namespace assay
