// Which matrices of a checkpoint engines put into one when they load it.
//
// vLLM, SGLang and TensorRT-LLM keep q, k and v, and gate and up, as one matrix: of a scale that stands for
// the whole tensor the fused matrix has room for one, and they take the largest of the members' (vLLM
// `packed_modules_mapping` and the linear methods of compressed_tensors and modelopt). What was quantized
// under a smaller one then decodes to other numbers. llm-compressor and ModelOpt (`preprocess_linear_fusion`)
// give all members the scale of their common largest magnitude.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/stored_form.h"

namespace assay {

struct FusedSet {
  std::string name;                    // "model.layers.0.self_attn.{q_proj, k_proj, v_proj}"
  std::vector<std::uint32_t> members;  // places in StoredTensors::tensors, ascending; at least two
};

// By the names that the known families give such matrices, whatever the architecture, and by equal inputs.
std::vector<FusedSet> find_fused_sets(std::span<const LogicalTensor> tensors);

}  // namespace assay
