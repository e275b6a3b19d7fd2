// What llama.cpp calls a tensor: "blk.7.attn_q.weight" for …layers.7.self_attn.q_proj.weight. Names follow
// from a tensor's role (gguf-py/gguf/constants.py, TENSOR_NAMES), but for those of GgufRules::names.
#pragma once

#include <string>
#include <vector>

#include "core/model/gguf_rules.h"
#include "core/model/module_tree.h"

namespace assay {

// Every name under which the tensor, or a part of it, may be found: kv_b_proj is stored as attn_kv_b, or in
// halves as attn_k_b and attn_v_b. All experts of a layer share one name: their matrices are stacked.
// Empty where GGUF has no such tensor.
std::vector<std::string> gguf_names(const TensorSpec& spec, std::uint64_t layer);
// Of a family that has names of its own; nullptr: of none.
std::vector<std::string> gguf_names(const TensorSpec& spec, std::uint64_t layer, const GgufFamily* family);
// The entry that the family has of its own for it; nullptr: none.
const GgufOwnName* own_gguf_name(const TensorSpec& spec, const GgufRules& rules);
// "blk.7.ssm_a", "blk.7.ssm_dt.bias": `stem` with the kind of tensor, where it does not say so itself.
std::string gguf_name_of(std::string_view stem, const std::string& layer, bool bias);

}  // namespace assay
