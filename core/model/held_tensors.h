// The tensors that a serving engine holds of a checkpoint, byte for byte: fused, cut over ranks, experts in stacks.
//
//   as stored    every stored tensor; with tp, what `convert --tp` gives each rank
//   vllm         self_attn.qkv_proj.weight       a rank's rows of q, of k and of v, one under the other
//   sglang       mlp.gate_up_proj.weight         of gate and of up
//                self_attn.fused_qkv_a_proj…     q_a_proj and kv_a_proj_with_mqa, whole on each rank
//                mlp.experts.w13_weight          of each expert of the rank gate and up; w2_weight: down
//                model.embed_tokens.weight       the vocabulary padded with rows of zeros to a multiple of 64
//                …_scale_inv                     FP8's scales of blocks, put together as their weights are
//
// Sources: vLLM and SGLang, `stacked_params_mapping` and `packed_modules_mapping` of each model, QKVParallelLinear,
// MergedColumnParallelLinear, FusedMoE (w13: w1 over w3), VocabParallelEmbedding. What they repack after loading (packed
// integers, FP4, scales of a row or a tensor) has no bytes to hold against and is told as such; pipeline stages number
// layers as the model does, so that they need no rule; layers of multi-token prediction are another model to both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/open_model.h"
#include "core/model/parallel_cut.h"
#include "core/model/tensor_cut.h"

namespace assay {

enum class HeldNames : std::uint8_t { stored, vllm, sglang };

struct HeldAs {
  HeldNames names = HeldNames::stored;
  ParallelConfig grid;
  std::optional<ElementType> type;  // of plain float weights, rounded to nearest even (an engine's --dtype)
};

// Bytes of one stored tensor: of `rows` rows of row_bytes what `part` takes, and zeros after them.
struct HeldPiece {
  std::uint32_t place = 0;  // of Checkpoint::tensors
  TensorCut cut;            // one part; in bytes as stored
  std::uint64_t zeros = 0;  // in bytes as stored
};
struct HeldTensor {
  std::string name;
  ElementType type = ElementType::BF16;  // as held
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> ranks;  // all that hold these very bytes
  std::vector<HeldPiece> pieces;     // one after the other
};
// What different ranks hold of it: tensors that read the same places.
using HeldShares = std::vector<HeldTensor>;

struct NotHeld {
  std::string name, why;
};
struct HeldTensors {
  std::vector<HeldShares> tensors;  // sorted by name
  std::vector<NotHeld> not_told;
};

// Throws Error::input where nobody has described the model, Error::refused where the engine would not cut it so, or
// holds this family under names that are not known here.
HeldTensors held_tensors(const OpenedModel& model, const HeldAs& as);

}  // namespace assay
