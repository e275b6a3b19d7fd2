// What becomes of weights when engines fuse them under one tensor-wide scale (core/model/fused_sets.h):
// decoded by their own scales they look right, and are not what runs.
//
//   NVFP4         every member's blocks under the largest global scale stored: w → w · f, f = g_max / g
//                 (multiplied) or g / g_max (divided by); relative error |f - 1|
//   FP8, tensor   decoded, and rounded again under the largest scale (vLLM `requantize_with_max_scale`)
//
// INT8 is not among them: engines spread its scale over the rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/stored_reader.h"
#include "core/system/finding.h"

namespace assay {

struct FusedError {
  std::string set;             // "model.layers.0.self_attn.{q_proj, k_proj, v_proj}"
  std::string tensor;          // the member that moves most
  double error = 0;            // its ‖w' - w‖ / ‖w‖; infinite where a scale is not a number
  bool rounded_again = false;  // as engines mean to (FP8); else the weights are other ones than were meant
};

struct FusedReport {
  std::uint64_t sets = 0;          // that have a scale for a whole tensor
  std::vector<FusedError> errors;  // of sets whose members' scales differ
  Findings mixed;  // fused.forms_differ: quantized beside unquantized, which engines refuse to fuse
};
FusedReport find_fused_errors(const CheckpointReader& source, const StoredTensors& stored, int jobs);

// fused.scales_differ: an error, or where it is only rounding a warning.
Finding to_finding(const FusedError& error);

}  // namespace assay
