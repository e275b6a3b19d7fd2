// Static scales of activations, once engines have fused matrices (core/model/fused_sets.h): the members see
// the same inputs, and the fused matrix has room for one scale of them. Engines take the largest:
//
//   input_scale (FP8, INT8, ModelOpt's NVFP4)           x / s: steps are coarser than a member's own by s_max
//   / s input_global_scale (compressed-tensors' NVFP4)      x · g: what lies above g / g_max of a member's
//   range is
//                                                       cut off
//
// Of gate and up of an expert vLLM takes neither: compressed-tensors' that are more than 1e-5 apart it
// refuses to load. Sources: vLLM `CompressedTensorsW8A8Fp8`, `CompressedTensorsW4A4Fp4`,
// `ModelOptFp8LinearMethod`, `FusedMoE.weight_loader`.
//
// INT8 with zero points is not among them: there vLLM joins the ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/stored_reader.h"
#include "core/system/finding.h"

namespace assay {

struct FusedInput {
  std::string set;         // "model.layers.0.self_attn.{q_proj, k_proj, v_proj}"
  std::string tensor;      // the scale that is farthest from the largest
  double factor = 1;       // the largest over it; infinite where one is no positive number
  bool divides = false;    // input_global_scale
  bool is_expert = false;  // gate and up of one
};

struct FusedInputs {
  std::uint64_t sets = 0;  // with two static scales or more
  std::vector<FusedInput> differing;
};
FusedInputs find_fused_inputs(const CheckpointReader& source, const StoredTensors& stored);

// fused.input_scales_differ: a warning.
Finding to_finding(const FusedInput& input);

}  // namespace assay
